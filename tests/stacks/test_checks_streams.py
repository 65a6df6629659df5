"""Stream mappings and the relay's filter, on a copier's plain constructs; the filter against what the core writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_kinesis

from stacks.checks.sample_record import completed_records, ttl_attribute
from stacks.checks.streams import dropped_stream_records_are_kept, relay_sees_what_the_core_writes
from stacks.constructs.senders import OUTBOX_FILTER
from tests.stacks.minimal_app import Break, Fine, MinimalApp

KEPT, RELAY = dropped_stream_records_are_kept, relay_sees_what_the_core_writes
HERE = "small/Stream"


def filtered(app: MinimalApp, *patterns: Any) -> None:
    texts = [pattern if isinstance(pattern, str) else json.dumps(pattern) for pattern in patterns]
    app.override(app.stream, "FilterCriteria", {"Filters": [{"Pattern": text} for text in texts]})


def new_image(**attributes: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": attributes}}


def kinesis(app: MinimalApp, hours: int | None) -> None:
    stream = aws_kinesis.CfnStream(app.stack, "Events", shard_count=1, retention_period_hours=hours)
    app.override(app.stream, "EventSourceArn", stream.attr_arn)
    app.override(app.stream, "FilterCriteria", None)
    app.override(app.stream, "MaximumRecordAgeInSeconds", 100_000)


BREAKS = [
    Break(
        KEPT,
        "no on-failure destination",
        lambda app: app.override(app.stream, "DestinationConfig", None),
        HERE,
        ("on-failure destination null",),
    ),
    Break(
        KEPT,
        "an on-failure destination that does not exist",
        lambda app: app.override(
            app.stream, "DestinationConfig.OnFailure.Destination", {"Fn::GetAtt": ["Gone", "Arn"]}
        ),
        HERE,
        ("Gone (missing)",),
    ),
    Break(
        KEPT,
        "no bisecting",
        lambda app: app.override(app.stream, "BisectBatchOnFunctionError", False),
        HERE,
        ("BisectBatchOnFunctionError false",),
    ),
    Break(
        KEPT,
        "bisecting left out",
        lambda app: app.override(app.stream, "BisectBatchOnFunctionError", None),
        HERE,
        ("BisectBatchOnFunctionError null",),
    ),
    Break(
        KEPT,
        "no maximum age",
        lambda app: app.override(app.stream, "MaximumRecordAgeInSeconds", None),
        HERE,
        ("MaximumRecordAgeInSeconds unlimited", "86400 s"),
    ),
    Break(
        KEPT,
        "an unlimited age",
        lambda app: app.override(app.stream, "MaximumRecordAgeInSeconds", -1),
        HERE,
        ("MaximumRecordAgeInSeconds -1", "86400 s"),
    ),
    Break(
        KEPT,
        "an age past what the stream keeps",
        lambda app: app.override(app.stream, "MaximumRecordAgeInSeconds", 86401),
        HERE,
        ("MaximumRecordAgeInSeconds 86401", "86400 s"),
    ),
    Break(
        KEPT,
        "an age known only when it is deployed",
        lambda app: app.override(app.stream, "MaximumRecordAgeInSeconds", app.parameter()),
        HERE,
        ("MaximumRecordAgeInSeconds ${Unknown}",),
    ),
    Break(
        KEPT,
        "an age past what a Kinesis stream keeps by default",
        lambda app: kinesis(app, None),
        HERE,
        ("100000", "86400 s"),
    ),
    Break(
        KEPT,
        "a start at the latest record",
        lambda app: app.override(app.stream, "StartingPosition", "LATEST"),
        HERE,
        ("StartingPosition LATEST",),
    ),
    Break(
        RELAY,
        "a filter on an attribute that is not written",
        lambda app: filtered(app, new_image(events={"S": [{"exists": True}]})),
        HERE,
        ("dynamodb.NewImage.events.S is missing",),
    ),
    Break(
        RELAY,
        "a filter on another type",
        lambda app: filtered(app, new_image(outbox={"L": [{"exists": True}]})),
        HERE,
        ("dynamodb.NewImage.outbox.L is missing",),
    ),
    Break(
        RELAY,
        "a filter on an attribute instead of its leaf",
        lambda app: filtered(app, new_image(outbox=[{"exists": True}])),
        HERE,
        ("dynamodb.NewImage.outbox is {",),
    ),
    Break(
        RELAY,
        "a filter on another status",
        lambda app: filtered(app, new_image(status={"S": ["DONE"]})),
        HERE,
        ("dynamodb.NewImage.status.S is COMPLETED", "DONE"),
    ),
    Break(
        RELAY,
        "a filter on inserted records only",
        lambda app: filtered(app, {"eventName": ["INSERT"]}),
        HERE,
        ("eventName is MODIFY", "INSERT"),
    ),
    Break(RELAY, "a filter that is not JSON", lambda app: filtered(app, "outbox"), HERE, ("outbox", "cannot be read")),
    Break(
        RELAY,
        "a filter known only when it is deployed",
        lambda app: app.override(app.stream, "FilterCriteria.Filters.0.Pattern", app.parameter()),
        HERE,
        ("${Unknown}", "cannot be read before the deployment"),
    ),
    Break(
        RELAY,
        "a stream without new images",
        lambda app: app.override(app.records, "StreamSpecification.StreamViewType", "KEYS_ONLY"),
        "data/Records",
        ("StreamViewType KEYS_ONLY",),
    ),
]

FINE = [
    Fine("no filter", lambda app: app.override(app.stream, "FilterCriteria", None)),
    Fine(
        "two filters, one of which lets it through",
        lambda app: filtered(app, new_image(kind={"S": ["x"]}), new_image(outbox={"S": [{"prefix": "["}]})),
    ),
    Fine(
        "old images beside the new",
        lambda app: app.override(app.records, "StreamSpecification.StreamViewType", "NEW_AND_OLD_IMAGES"),
    ),
    Fine("a Kinesis stream that keeps longer", lambda app: kinesis(app, 48)),
]


def test_the_constructs_filter_matches_what_the_core_writes(tmp_path: Path) -> None:
    Fine("ours", lambda app: filtered(app, OUTBOX_FILTER)).assert_fine(tmp_path)


def test_the_core_was_really_asked_and_writes_what_the_relay_reads() -> None:
    once, committed = completed_records()
    for record in (once, committed):
        assert record["status"] == {"S": "COMPLETED"}
        assert record["outbox"] == {"S": "[]"}
    assert ttl_attribute() == "expiration"


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
