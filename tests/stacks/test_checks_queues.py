"""Queues and DLQs, on a copier's plain constructs."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Duration, NestedStack, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs

from stacks.checks.queues import (
    consumed_queue_has_a_dlq,
    dlq_alarm_counts_visible_messages,
    dlq_is_of_the_same_type,
    dlq_keeps_messages_longer,
    messages_get_at_least_three_receives,
    queues_accept_what_is_sent_to_them,
)
from tests.stacks.minimal_app import ALARM_TOPIC, Break, Fine, MinimalApp

ELSEWHERE = "arn:aws:sqs:eu-west-1:123456789012:of-another-app"


def target(app: MinimalApp, arn: Any) -> None:
    app.override(app.queue, "RedrivePolicy.deadLetterTargetArn", arn)


def nested_dlq(app: MinimalApp) -> None:
    """The DLQ in a nested stack, with an alarm in the parent."""
    nested = NestedStack(app.stack, "Nested")
    dlq = sqs.Queue(nested, "Dlq", retention_period=Duration.days(14))
    target(app, dlq.queue_arn)
    app.watch("NestedAlarm", dlq)


def dlq_of_another_stack(app: MinimalApp, days: int) -> None:
    other = Stack(app.app, "other")
    dlq = sqs.Queue(other, "Dlq", retention_period=Duration.days(days))
    app.watch("OtherAlarm", dlq)
    target(app, dlq.queue_arn)


def other_metric(app: MinimalApp, metric: str) -> None:
    app.override(app.alarm, "MetricName", metric)


def as_json(app: MinimalApp) -> None:
    app.override(app.dlq, "QueueName", "parked")
    text = '{"deadLetterTargetArn": "arn:aws:sqs:eu-west-1:123456789012:parked", "maxReceiveCount": 245}'
    app.override(app.queue, "RedrivePolicy", text)


def metric_math(app: MinimalApp, expression: str = "FILL(v, 0)", threshold: int = 1, **others: sqs.Queue) -> None:
    app.alarm.node.scope.node.try_remove_child("Alarm")  # type: ignore[union-attr]
    metrics = {
        name: queue.metric_approximate_number_of_messages_visible() for name, queue in {"v": app.dlq, **others}.items()
    }
    alarm = cloudwatch.MathExpression(expression=expression, using_metrics=metrics).create_alarm(
        app.stack, "Formula", threshold=threshold, evaluation_periods=1
    )
    app.override(alarm, "AlarmActions", [ALARM_TOPIC])


def composite(app: MinimalApp, tells: bool = True) -> None:
    app.override(app.alarm, "AlarmActions", None)
    rule = cloudwatch.AlarmRule.from_alarm(app.alarm, cloudwatch.AlarmState.ALARM)
    made = cloudwatch.CompositeAlarm(app.stack, "Any", alarm_rule=rule)
    if tells:
        app.override(made, "AlarmActions", [ALARM_TOPIC])


DLQ, TYPE, LONGER = consumed_queue_has_a_dlq, dlq_is_of_the_same_type, dlq_keeps_messages_longer
SIZE = queues_accept_what_is_sent_to_them
RECEIVES, ALARM = messages_get_at_least_three_receives, dlq_alarm_counts_visible_messages

BREAKS = [
    Break(DLQ, "no DLQ", lambda app: app.override(app.queue, "RedrivePolicy", None), "small/Queue", ("has no DLQ",)),
    Break(DLQ, "a DLQ of another app", lambda app: target(app, ELSEWHERE), "small/Queue", (ELSEWHERE, "of this app")),
    Break(
        DLQ,
        "a DLQ that does not exist",
        lambda app: target(app, {"Fn::GetAtt": ["Gone", "Arn"]}),
        "small/Queue",
        ("Gone (missing)",),
    ),
    Break(
        DLQ,
        "a queue as its own DLQ",
        lambda app: target(app, app.queue.queue_arn),
        "small/Queue",
        ("small/Queue, which is not another queue",),
    ),
    Break(
        DLQ,
        "a table as DLQ",
        lambda app: target(app, app.records.table_arn),
        "small/Queue",
        ("data/Records",),
    ),
    Break(
        DLQ,
        "a DLQ known only when it is deployed",
        lambda app: target(app, app.parameter()),
        "small/Queue",
        ("${Unknown}",),
    ),
    Break(
        DLQ,
        "a DLQ that refuses all sources",
        lambda app: app.override(app.dlq, "RedriveAllowPolicy", {"redrivePermission": "denyAll"}),
        "small/Queue",
        ("small/Dlq", "denyAll"),
    ),
    Break(
        DLQ,
        "a DLQ that admits another source",
        lambda app: app.override(
            app.dlq, "RedriveAllowPolicy", {"redrivePermission": "byQueue", "sourceQueueArns": [ELSEWHERE]}
        ),
        "small/Queue",
        ("small/Dlq", ELSEWHERE),
    ),
    Break(
        TYPE,
        "a FIFO queue with a standard DLQ",
        lambda app: (app.override(app.queue, "FifoQueue", True), app.override(app.queue, "QueueName", "work.fifo")),
        "small/Queue",
        ("is a FIFO queue", "small/Dlq a standard queue"),
    ),
    Break(
        TYPE,
        "a standard queue with a FIFO DLQ",
        lambda app: (app.override(app.dlq, "FifoQueue", True), app.override(app.dlq, "QueueName", "dlq.fifo")),
        "small/Queue",
        ("is a standard queue", "small/Dlq a FIFO queue"),
    ),
    Break(
        LONGER,
        "a DLQ that keeps messages as long as its source",
        lambda app: app.override(app.dlq, "MessageRetentionPeriod", 604800),
        "small/Queue",
        ("keeps messages 604800 s", "small/Dlq 604800 s"),
    ),
    Break(
        LONGER,
        "a DLQ with the default retention",
        lambda app: app.override(app.dlq, "MessageRetentionPeriod", None),
        "small/Queue",
        ("604800 s", "345600 s"),
    ),
    Break(
        LONGER,
        "a source that keeps messages as long as its DLQ",
        lambda app: app.override(app.queue, "MessageRetentionPeriod", 1209600),
        "small/Queue",
        ("keeps messages 1209600 s", "1209600 s"),
    ),
    Break(
        LONGER,
        "a short DLQ in another stack",
        lambda app: dlq_of_another_stack(app, 4),
        "small/Queue",
        ("604800 s", "other/Dlq 345600 s"),
    ),
    Break(
        LONGER,
        "a retention known only when it is deployed",
        lambda app: app.override(app.dlq, "MessageRetentionPeriod", app.parameter()),
        "small/Dlq",
        ("MessageRetentionPeriod ${Unknown}",),
    ),
    Break(
        RECEIVES,
        "two receives",
        lambda app: app.override(app.queue, "RedrivePolicy.maxReceiveCount", 2),
        "small/Queue",
        ("maxReceiveCount 2", "3 or more"),
    ),
    Break(
        RECEIVES,
        "no receive count",
        lambda app: app.override(app.queue, "RedrivePolicy.maxReceiveCount", {"Ref": "AWS::NoValue"}),
        "small/Queue",
        ("maxReceiveCount None",),
    ),
    Break(
        RECEIVES,
        "a receive count known only when it is deployed",
        lambda app: app.override(app.queue, "RedrivePolicy.maxReceiveCount", app.parameter()),
        "small/Queue",
        ("maxReceiveCount ${Unknown}",),
    ),
    Break(ALARM, "no alarm", lambda app: app.stack.node.try_remove_child("Alarm"), "small/Dlq", ("has no alarm",)),
    Break(
        ALARM,
        "no alarm on the failure queue of a stream",
        lambda app: app.stack.node.try_remove_child("FailuresAlarm"),
        "small/Failures",
        ("has no alarm",),
    ),
    Break(
        ALARM,
        "an alarm on messages sent",
        lambda app: other_metric(app, "NumberOfMessagesSent"),
        "small/Dlq",
        ("small/Alarm on NumberOfMessagesSent",),
    ),
    Break(
        ALARM,
        "an alarm on the queue instead of its DLQ",
        lambda app: app.override(app.alarm, "Dimensions", [{"Name": "QueueName", "Value": app.queue.queue_name}]),
        "small/Dlq",
        ("has no alarm",),
    ),
    Break(
        ALARM,
        "an alarm at two messages",
        lambda app: app.override(app.alarm, "Threshold", 1),
        "small/Dlq",
        ("small/Alarm with GreaterThanThreshold 1",),
    ),
    Break(
        ALARM,
        "an alarm that goes off when the DLQ is empty",
        lambda app: app.override(app.alarm, "ComparisonOperator", "LessThanOrEqualToThreshold"),
        "small/Dlq",
        ("small/Alarm with LessThanOrEqualToThreshold 0",),
    ),
    Break(
        ALARM,
        "an alarm on the minimum",
        lambda app: app.override(app.alarm, "Statistic", "Minimum"),
        "small/Dlq",
        ("small/Alarm on the Minimum",),
    ),
    Break(
        ALARM,
        "an alarm that is switched off",
        lambda app: app.override(app.alarm, "ActionsEnabled", False),
        "small/Dlq",
        ("small/Alarm with ActionsEnabled false",),
    ),
    Break(
        ALARM,
        "an alarm that tells nobody",
        lambda app: app.override(app.alarm, "AlarmActions", None),
        "small/Dlq",
        ("small/Alarm without AlarmActions",),
    ),
    Break(
        ALARM,
        "an alarm in a composite alarm that tells nobody",
        lambda app: composite(app, tells=False),
        "small/Dlq",
        ("small/Alarm without AlarmActions",),
    ),
    Break(
        ALARM,
        "a formula that rings at a thousand messages",
        lambda app: metric_math(app, threshold=1000),
        "small/Dlq",
        ("small/Formula with GreaterThanOrEqualToThreshold 1000",),
    ),
    Break(
        ALARM,
        "a formula of two queues",
        lambda app: metric_math(app, "v + w", w=app.queue),
        "small/Dlq",
        ("small/Formula on a formula of several metrics",),
    ),
    Break(
        SIZE,
        "a source queue that accepts the maximum of SQS",
        lambda app: app.override(app.queue, "MaximumMessageSize", None),
        "small/Queue",
        ("MaximumMessageSize 1048576", "BODY_LIMIT_BYTES 65536", "73728"),
    ),
    Break(
        SIZE,
        "a source queue without room for attributes",
        lambda app: app.override(app.queue, "MaximumMessageSize", 64 * 1024),
        "small/Queue",
        ("MaximumMessageSize 65536", "73728"),
    ),
    Break(
        SIZE,
        "a function that reads more than its queue accepts",
        lambda app: app.env("BODY_LIMIT_BYTES", "131072"),
        "small/Queue",
        ("BODY_LIMIT_BYTES 131072", "139264"),
    ),
    Break(
        SIZE,
        "a size known only when it is deployed",
        lambda app: app.override(app.queue, "MaximumMessageSize", app.parameter()),
        "small/Queue",
        ("not known",),
    ),
    Break(
        SIZE,
        "a DLQ that refuses large messages",
        lambda app: app.override(app.dlq, "MaximumMessageSize", 256 * 1024),
        "small/Dlq",
        ("262144",),
    ),
    Break(
        SIZE,
        "a failure queue that refuses large messages",
        lambda app: app.override(app.failures, "MaximumMessageSize", 256 * 1024),
        "small/Failures",
        ("262144",),
    ),
]

FINE = [
    Fine("a DLQ in another stack", lambda app: dlq_of_another_stack(app, 14)),
    Fine("a DLQ in a nested stack", nested_dlq),
    Fine("a redrive policy as JSON text with a literal ARN", as_json),
    Fine(
        "a DLQ that admits its source by name",
        lambda app: app.override(
            app.dlq,
            "RedriveAllowPolicy",
            {
                "redrivePermission": "byQueue",
                "sourceQueueArns": [{"Fn::Sub": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:work"}],
            },
        ),
    ),
    Fine(
        "a pair of FIFO queues",
        lambda app: [
            app.override(queue, name, value)
            for queue, called in ((app.queue, "work.fifo"), (app.dlq, "dlq.fifo"))
            for name, value in (("FifoQueue", True), ("QueueName", called))
        ],
    ),
    Fine(
        "an alarm at one message or more",
        lambda app: (
            app.override(app.alarm, "ComparisonOperator", "GreaterThanOrEqualToThreshold"),
            app.override(app.alarm, "Threshold", 1),
        ),
    ),
    Fine("an alarm on a formula of one metric", metric_math),
    Fine("an alarm that tells through a composite alarm", composite),
    Fine(
        "a threshold known only when it is deployed", lambda app: app.override(app.alarm, "Threshold", app.parameter())
    ),
    Fine(
        "a function and its queue with another limit",
        lambda app: (app.env("BODY_LIMIT_BYTES", "131072"), app.override(app.queue, "MaximumMessageSize", 139264)),
    ),
    Fine("a queue that nobody consumes", lambda app: sqs.Queue(app.stack, "Idle")),
]


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
