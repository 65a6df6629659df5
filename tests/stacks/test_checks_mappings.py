"""Event source mappings, on a copier's plain constructs."""

from pathlib import Path

import pytest
from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs

from stacks.checks.mappings import (
    failed_records_are_reported_singly,
    mappings_fit_the_reserved_concurrency,
    queue_mapping_has_no_filter,
    visibility_outlasts_the_retries_of_a_batch,
)
from tests.stacks.minimal_app import TIMES, Break, Fine, MinimalApp

FILTERS = {"Filters": [{"Pattern": '{"body": {"type": ["order.requested"]}}'}]}


def second_mapping(app: MinimalApp, max_concurrency: int | None) -> None:
    other = sqs.Queue(
        app.stack,
        "Second",
        retention_period=Duration.days(7),
        max_message_size_bytes=64 * 1024 + 8 * 1024,
        visibility_timeout=Duration.seconds(60),
        dead_letter_queue=sqs.DeadLetterQueue(queue=app.dlq, max_receive_count=TIMES.max_receives(60)),
    )
    app.function.add_event_source(
        sources.SqsEventSource(other, report_batch_item_failures=True, max_concurrency=max_concurrency)
    )


def reserve(app: MinimalApp, reserved: int, *concurrency: int | None) -> MinimalApp:
    app.override(app.function, "ReservedConcurrentExecutions", reserved)
    app.override(app.mapping, "ScalingConfig.MaximumConcurrency", concurrency[0])
    for each in concurrency[1:]:
        second_mapping(app, each)
    return app


def by_alias(app: MinimalApp) -> None:
    alias = lambda_.Alias(app.stack, "Live", alias_name="live", version=app.function.current_version)
    app.override(app.mapping, "FunctionName", alias.function_arn)


def alias_too_slow(app: MinimalApp) -> None:
    by_alias(app)
    app.override(app.function, "Timeout", 11)


def source_by_literal_arn(app: MinimalApp) -> None:
    app.override(app.mapping, "EventSourceArn", "arn:aws:sqs:eu-west-1:123456789012:work")


def arn_and_short(app: MinimalApp) -> None:
    source_by_literal_arn(app)
    app.override(app.queue, "VisibilityTimeout", 59)


VISIBILITY, SINGLY = visibility_outlasts_the_retries_of_a_batch, failed_records_are_reported_singly
FILTER, CONCURRENCY = queue_mapping_has_no_filter, mappings_fit_the_reserved_concurrency

BREAKS = [
    Break(
        VISIBILITY,
        "a visibility timeout too short by a second",
        lambda app: app.override(app.queue, "VisibilityTimeout", 59),
        "small/Queue",
        ("59 s", "6 x 10 s timeout of small/Worker", "0 s batching window = 60 s"),
    ),
    Break(
        VISIBILITY,
        "the default visibility timeout",
        lambda app: app.override(app.queue, "VisibilityTimeout", None),
        "small/Queue",
        ("30 s", "= 60 s"),
    ),
    Break(
        VISIBILITY,
        "a longer function timeout",
        lambda app: app.override(app.function, "Timeout", 20),
        "small/Queue",
        ("60 s", "6 x 20 s", "= 120 s"),
    ),
    Break(
        VISIBILITY,
        "a batching window that is not counted",
        lambda app: app.override(app.mapping, "MaximumBatchingWindowInSeconds", 5),
        "small/Queue",
        ("60 s", "5 s batching window = 65 s"),
    ),
    Break(VISIBILITY, "a slow function behind an alias", alias_too_slow, "small/Queue", ("60 s", "6 x 11 s")),
    Break(VISIBILITY, "a queue that is read by its literal ARN", arn_and_short, "small/Queue", ("59 s", "= 60 s")),
    Break(
        VISIBILITY,
        "a visibility timeout known only when it is deployed",
        lambda app: app.override(app.queue, "VisibilityTimeout", app.parameter()),
        "small/Queue",
        ("VisibilityTimeout ${Unknown} is not known before the deployment",),
    ),
    Break(
        VISIBILITY,
        "a function timeout that depends on a condition",
        lambda app: app.override(app.function, "Timeout", app.condition(900, 10)),
        "small/Queue",
        ("Timeout ${Fn::If} is not known before the deployment",),
    ),
    Break(
        SINGLY,
        "a queue mapping without ReportBatchItemFailures",
        lambda app: app.override(app.mapping, "FunctionResponseTypes", None),
        "small/Mapping",
        ("[]", "without ReportBatchItemFailures"),
    ),
    Break(
        SINGLY,
        "a stream mapping without ReportBatchItemFailures",
        lambda app: app.override(app.stream, "FunctionResponseTypes", []),
        "small/Stream",
        ("[]",),
    ),
    Break(
        SINGLY,
        "a mapping on a queue outside the app",
        lambda app: (
            app.override(app.mapping, "EventSourceArn", "arn:aws:sqs:eu-west-1:123456789012:elsewhere"),
            app.override(app.mapping, "FunctionResponseTypes", None),
        ),
        "small/Mapping",
        ("[]",),
    ),
    Break(
        SINGLY,
        "a mapping on who knows what",
        lambda app: (
            app.override(app.mapping, "EventSourceArn", app.parameter()),
            app.override(app.mapping, "FunctionResponseTypes", None),
        ),
        "small/Mapping",
        ("[]",),
    ),
    Break(
        FILTER,
        "a filter by an override",
        lambda app: app.override(app.mapping, "FilterCriteria", FILTERS),
        "small/Mapping",
        ("small/Queue", "order.requested"),
    ),
    Break(
        FILTER,
        "a filter that is known only when it is deployed",
        lambda app: app.override(app.mapping, "FilterCriteria", {"Filters": [{"Pattern": app.parameter()}]}),
        "small/Mapping",
        ("${Unknown}",),
    ),
    Break(
        CONCURRENCY,
        "one mapping above the reserved concurrency",
        lambda app: reserve(app, 4, 5),
        "small/Worker",
        ("reserved concurrency 4", "5 (small/Mapping)"),
    ),
    Break(
        CONCURRENCY,
        "two mappings above it together",
        lambda app: reserve(app, 4, 2, 3),
        "small/Worker",
        ("reserved concurrency 4", "2 (small/Mapping)", "3 (small/Worker/SqsEventSource:"),
    ),
    Break(
        CONCURRENCY,
        "a mapping without a maximum beside a reserve",
        lambda app: reserve(app, 4, None),
        "small/Worker",
        ("reserved concurrency 4", "none (small/Mapping)"),
    ),
    Break(
        CONCURRENCY,
        "a reserve known only when it is deployed",
        lambda app: (
            reserve(app, 4, 2),
            app.override(app.function, "ReservedConcurrentExecutions", app.parameter()),
        ),
        "small/Worker",
        ("${Unknown}", "is not known before the deployment"),
    ),
]

FINE = [
    Fine("a function behind an alias", by_alias),
    Fine("a queue that is read by its literal ARN", source_by_literal_arn),
    Fine("mappings that use up the reserve exactly", lambda app: reserve(app, 5, 2, 3)),
]


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
