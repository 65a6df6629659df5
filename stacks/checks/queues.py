"""Consumed queues lose no message: each has a DLQ that accepts messages, keeps them, and has an alarm.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
"""

from collections.abc import Iterator

from shared.idempotency.events import BODY_LIMIT_BYTES
from stacks.checks.model import Finding, Model, Resource, listed, number, shown, within
from stacks.checks.wiring import QUEUE, consumed_queues, dlq_of, environment
from stacks.constructs.queues import SQS_MESSAGE_LIMIT_BYTES, message_limit_bytes
from stacks.times import DAY_S

RETENTION_DEFAULT_S = 4 * DAY_S
RECEIVES_LEAST = 3


def consumed_queue_has_a_dlq(model: Model) -> Iterator[Finding]:
    """The redrive target is another queue of this app, and its redrive allow policy admits the source."""
    for queue, _ in consumed_queues(model):
        target = queue.get("RedrivePolicy", "deadLetterTargetArn")
        dlq = dlq_of(model, queue)
        if target is None:
            says = "is consumed and has no DLQ"
        elif dlq is None:
            says = f"has the redrive target {model.show(target)}, which is not another queue of this app"
        elif not _admits(model, dlq, queue):
            says = f"has the DLQ {dlq.path}, whose RedriveAllowPolicy {shown(dlq.get('RedriveAllowPolicy'))} refuses it"
        else:
            continue
        yield Finding(
            queue.path,
            says,
            "A message that always fails would be lost when its retention ends. The retention and the alarm of a DLQ "
            "outside this app cannot be checked.",
            "Set dead_letter_queue to a DLQ of this app whose RedriveAllowPolicy admits this queue.",
        )


def _admits(model: Model, dlq: Resource, queue: Resource) -> bool:
    permission = dlq.get("RedriveAllowPolicy", "redrivePermission")
    if permission != "byQueue":
        return bool(permission != "denyAll")
    admitted = list(listed(dlq.get("RedriveAllowPolicy", "sourceQueueArns")))
    return queue in map(model.find, admitted) or any("${" in str(arn).rsplit(":", 1)[-1] for arn in admitted)


def dlq_is_of_the_same_type(model: Model) -> Iterator[Finding]:
    """The DLQ of a FIFO queue is FIFO, and the DLQ of a standard queue is standard."""
    for queue, dlq in _pairs(model):
        if _type(queue) != _type(dlq):
            yield Finding(
                queue.path,
                f"is a {_type(queue)} queue, its DLQ {dlq.path} a {_type(dlq)} queue",
                "SQS does not accept such a pair, so no message could be parked.",
                "Set `fifo` on both or on neither.",
            )


def dlq_keeps_messages_longer(model: Model) -> Iterator[Finding]:
    """The DLQ keeps messages longer than the source, because a message keeps its age when SQS moves it."""
    for queue, dlq in _pairs(model):
        source_s, dlq_s = retention_s(queue), retention_s(dlq)
        if source_s is None or dlq_s is None:
            bad = queue if source_s is None else dlq
            yield Finding(
                bad.path,
                f"MessageRetentionPeriod {bad.get('MessageRetentionPeriod')} is not known before the deployment",
                "The retentions of the DLQ and of its source cannot be compared.",
                "Write the number of seconds.",
            )
        elif dlq_s <= source_s:
            yield Finding(
                queue.path,
                f"keeps messages {shown(source_s)} s, its DLQ {dlq.path} {shown(dlq_s)} s",
                "A parked message keeps its age: SQS may delete it immediately, before a person sees it.",
                f"Set MessageRetentionPeriod of the DLQ above {shown(source_s)} s (at most {14 * DAY_S}).",
            )


def messages_get_at_least_three_receives(model: Model) -> Iterator[Finding]:
    """maxReceiveCount >= 3. AWS advises 5: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html"""
    for queue, _ in consumed_queues(model):
        if queue.get("RedrivePolicy") is None:
            continue  # consumed_queue_has_a_dlq says so
        count = queue.number("RedrivePolicy", "maxReceiveCount", default=0)
        if count is None or count < RECEIVES_LEAST:
            yield Finding(
                queue.path,
                f"maxReceiveCount {queue.get('RedrivePolicy', 'maxReceiveCount')}, required: {RECEIVES_LEAST} or more",
                "One throttle and one killed worker cost two receives, so a correct message would be parked.",
                "Write a larger number.",
            )


def dlq_alarm_counts_visible_messages(model: Model) -> Iterator[Finding]:
    """Every DLQ and on-failure queue has an alarm that goes off at one visible message.

    NumberOfMessagesSent is not enough: it does not count messages that SQS moves to a DLQ.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    for queue in _failure_queues(model):
        reasons = [what for alarm in model.of_type("AWS::CloudWatch::Alarm") for what in _watches(model, alarm, queue)]
        if None not in reasons:
            yield Finding(
                queue.path,
                "receives parked messages and has no alarm that goes off at one message"
                + (f" (found: {'; '.join(filter(None, reasons))})" if reasons else ""),
                "Nobody would notice a parked order until its retention ends.",
                "Add an alarm on ApproximateNumberOfMessagesVisible of this queue alone, Maximum > 0, with an action.",
            )


def queues_accept_what_is_sent_to_them(model: Model) -> Iterator[Finding]:
    """A source queue accepts the largest body that its function reads and 8 KB of attributes. A DLQ accepts all.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
    """
    for queue, source in consumed_queues(model):
        variables = environment(source.function)
        if "IDEMPOTENCY_TABLE" not in variables:
            continue  # the function does not use the idempotency layer
        limit = number(variables.get("BODY_LIMIT_BYTES", BODY_LIMIT_BYTES))
        size = message_size(queue)
        if limit is None or size is None:
            says = f"MaximumMessageSize {queue.get('MaximumMessageSize')} and BODY_LIMIT_BYTES "
            says += f"{variables.get('BODY_LIMIT_BYTES')}: one of them is not known before the deployment"
        elif size != (needed := message_limit_bytes(int(limit))):
            says = f"MaximumMessageSize {shown(size)}, but BODY_LIMIT_BYTES {shown(limit)} + 8192 = {needed}"
        else:
            continue
        yield Finding(
            queue.path,
            says,
            "A larger size admits messages that are only parked. A smaller one refuses a redrive, because a parked "
            "message has three more attributes.",
            "Set MaximumMessageSize to BODY_LIMIT_BYTES + 8192 (BODY_LIMIT_BYTES is 65536 if the function does not set "
            "it).",
        )
    for queue in _failure_queues(model):
        if message_size(queue) != SQS_MESSAGE_LIMIT_BYTES:
            yield Finding(
                queue.path,
                f"receives parked messages, and MaximumMessageSize is {queue.get('MaximumMessageSize')}",
                "A message that this queue refuses cannot be parked.",
                f"Set MaximumMessageSize to {SQS_MESSAGE_LIMIT_BYTES}, the maximum of SQS.",
            )


def _watches(model: Model, alarm: Resource, queue: Resource) -> Iterator[str | None]:
    """For each metric of the queue in the alarm: None if one visible message sets it off, else what is wrong.

    For a formula of one metric, the threshold decides. A formula of several metrics cannot be evaluated here.
    """
    queries = [query for query in listed(alarm.get("Metrics")) if within(query, "MetricStat")]
    stats = [(within(q, "MetricStat", "Metric"), within(q, "MetricStat", "Stat")) for q in queries]
    for metric, stat in stats or [(alarm.body.get("Properties"), alarm.get("Statistic"))]:
        of = {within(d, "Name"): model.find(within(d, "Value")) for d in listed(within(metric, "Dimensions"))}
        if within(metric, "Namespace") != "AWS/SQS" or of.get("QueueName") != queue:
            continue
        name, threshold = within(metric, "MetricName"), alarm.number("Threshold", default=0)
        operator = alarm.get("ComparisonOperator")
        is_triggered = threshold is None or (
            (operator == "GreaterThanThreshold" and 0 <= threshold < 1)
            or (operator == "GreaterThanOrEqualToThreshold" and 0 < threshold <= 1)
        )
        if name != "ApproximateNumberOfMessagesVisible":
            yield f"{alarm.path} on {name}"
        elif len(queries) > 1:
            yield f"{alarm.path} on a formula of several metrics"
        elif not is_triggered:
            yield f"{alarm.path} with {operator} {shown(threshold)}"
        elif stat == "Minimum":
            yield f"{alarm.path} on the {stat}"
        elif alarm.get("ActionsEnabled") is False:
            yield f"{alarm.path} with ActionsEnabled false"
        elif not _notifies(model, alarm):
            yield f"{alarm.path} without AlarmActions, so it notifies nobody"
        else:
            yield None


def _notifies(model: Model, alarm: Resource) -> bool:
    """Whether the alarm has an action, or a composite alarm with an action names it in its rule."""
    rules = [
        shown(composite.get("AlarmRule"))
        for composite in model.of_type("AWS::CloudWatch::CompositeAlarm")
        if composite.get("AlarmActions")
    ]
    named = [f"|{alarm.id}", *([alarm.get("AlarmName")] if isinstance(alarm.get("AlarmName"), str) else [])]
    return bool(alarm.get("AlarmActions")) or any(name in rule for rule in rules for name in named)


def retention_s(queue: Resource) -> float | None:
    """Return the retention in seconds, or None if it is unknown."""
    return queue.number("MessageRetentionPeriod", default=RETENTION_DEFAULT_S)


def message_size(queue: Resource) -> float | None:
    """Return MaximumMessageSize in bytes, or None if it is unknown."""
    return queue.number("MaximumMessageSize", default=SQS_MESSAGE_LIMIT_BYTES)


def _failure_queues(model: Model) -> list[Resource]:
    """Return the DLQs of consumed queues and the on-failure queues of mappings."""
    found = {dlq.path: dlq for _, dlq in _pairs(model)}
    for mapping in model.of_type("AWS::Lambda::EventSourceMapping"):
        target = model.find(mapping.get("DestinationConfig", "OnFailure", "Destination"))
        if target and target.type == QUEUE:
            found[target.path] = target
    return list(found.values())


def _type(queue: Resource) -> str:
    return "FIFO" if queue.get("FifoQueue") in (True, "true") else "standard"


def _pairs(model: Model) -> Iterator[tuple[Resource, Resource]]:
    for queue, _ in consumed_queues(model):
        if dlq := dlq_of(model, queue):
            yield queue, dlq


CHECKS = (
    consumed_queue_has_a_dlq,
    dlq_is_of_the_same_type,
    dlq_keeps_messages_longer,
    messages_get_at_least_three_receives,
    dlq_alarm_counts_visible_messages,
    queues_accept_what_is_sent_to_them,
)
