"""What a consumed queue needs so that no message is lost: a DLQ that takes it, keeps it and is watched.

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
    """The redrive target is another queue of this app, and lets the source in."""
    for queue, _ in consumed_queues(model):
        target = queue.get("RedrivePolicy", "deadLetterTargetArn")
        dlq = dlq_of(model, queue)
        if target is None:
            says = "is consumed and has no DLQ"
        elif dlq is None:
            says = f"has the redrive target {model.show(target)}, which is not another queue of this app"
        elif not _lets_in(model, dlq, queue):
            says = f"has the DLQ {dlq.path}, whose RedriveAllowPolicy {shown(dlq.get('RedriveAllowPolicy'))} refuses it"
        else:
            continue
        yield Finding(
            queue.path,
            says,
            "A message that always fails would be retried until its retention ends, and then be gone; of a DLQ "
            "elsewhere, nothing here can tell retention or alarm.",
            "Give it a DLQ of its own (dead_letter_queue=), which the redrive-allow policy of that one admits.",
        )


def _lets_in(model: Model, dlq: Resource, queue: Resource) -> bool:
    permission = dlq.get("RedriveAllowPolicy", "redrivePermission")
    if permission != "byQueue":
        return bool(permission != "denyAll")
    admitted = list(listed(dlq.get("RedriveAllowPolicy", "sourceQueueArns")))
    return queue in map(model.find, admitted) or any("${" in str(arn).rsplit(":", 1)[-1] for arn in admitted)


def dlq_is_of_the_same_type(model: Model) -> Iterator[Finding]:
    """The DLQ of a FIFO queue must be FIFO, of a standard queue standard."""
    for queue, dlq in _pairs(model):
        if _type(queue) != _type(dlq):
            yield Finding(
                queue.path,
                f"is a {_type(queue)} queue, its DLQ {dlq.path} a {_type(dlq)} one",
                "SQS takes no such pair, so nothing would ever be parked.",
                "Set `fifo` on both or on neither.",
            )


def dlq_keeps_messages_longer(model: Model) -> Iterator[Finding]:
    """A message moved to a standard queue's DLQ keeps its age, so the DLQ must keep longer than the source."""
    for queue, dlq in _pairs(model):
        source_s, dlq_s = retention_s(queue), retention_s(dlq)
        if source_s is None or dlq_s is None:
            bad = queue if source_s is None else dlq
            yield Finding(
                bad.path,
                f"MessageRetentionPeriod {bad.get('MessageRetentionPeriod')} is not known before the deployment",
                "Whether the DLQ keeps messages longer than its source can not be told.",
                "Write the number of seconds.",
            )
        elif dlq_s <= source_s:
            yield Finding(
                queue.path,
                f"keeps messages {shown(source_s)} s, its DLQ {dlq.path} {shown(dlq_s)} s",
                "A parked message keeps its age: it may be deleted the moment it is parked, before a person saw it.",
                f"Set MessageRetentionPeriod of the DLQ above {shown(source_s)} s (at most {14 * DAY_S}).",
            )


def messages_get_at_least_three_receives(model: Model) -> Iterator[Finding]:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html: at least 5 are advised; we need 3."""
    for queue, _ in consumed_queues(model):
        if queue.get("RedrivePolicy") is None:
            continue  # consumed_queue_has_a_dlq says so
        count = queue.number("RedrivePolicy", "maxReceiveCount", default=0)
        if count is None or count < RECEIVES_LEAST:
            yield Finding(
                queue.path,
                f"maxReceiveCount {queue.get('RedrivePolicy', 'maxReceiveCount')}, needed {RECEIVES_LEAST} or more",
                "One throttle and one killed worker cost two receives; a message that is in order would be parked.",
                "Write a larger number.",
            )


def dlq_alarm_counts_visible_messages(model: Model) -> Iterator[Finding]:
    """Every DLQ and on-failure queue has an alarm that goes off at one visible message.

    Not on NumberOfMessagesSent, which does not count what SQS itself moves into a DLQ.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html
    """
    for queue in _failure_queues(model):
        seen = [what for alarm in model.of_type("AWS::CloudWatch::Alarm") for what in _watches(model, alarm, queue)]
        if None not in seen:
            yield Finding(
                queue.path,
                "takes parked messages and has no alarm that one of them sets off"
                + (f" (there is {'; '.join(filter(None, seen))})" if seen else ""),
                "Parked orders would wait, unseen, until their retention ends.",
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
                f"takes parked messages, and MaximumMessageSize is {queue.get('MaximumMessageSize')}",
                "A message that this queue refuses can never be parked.",
                f"Set MaximumMessageSize to {SQS_MESSAGE_LIMIT_BYTES}, the largest that SQS has.",
            )


def _watches(model: Model, alarm: Resource, queue: Resource) -> Iterator[str | None]:
    """For each metric of the queue in the alarm: None if one visible message sets it off, else what is wrong.

    A formula of one metric is judged by its threshold; what a formula of several does at one message can not be told.
    """
    queries = [query for query in listed(alarm.get("Metrics")) if within(query, "MetricStat")]
    stats = [(within(q, "MetricStat", "Metric"), within(q, "MetricStat", "Stat")) for q in queries]
    for metric, stat in stats or [(alarm.body.get("Properties"), alarm.get("Statistic"))]:
        of = {within(d, "Name"): model.find(within(d, "Value")) for d in listed(within(metric, "Dimensions"))}
        if within(metric, "Namespace") != "AWS/SQS" or of.get("QueueName") != queue:
            continue
        name, threshold = within(metric, "MetricName"), alarm.number("Threshold", default=0)
        operator = alarm.get("ComparisonOperator")
        goes_off = threshold is None or (
            (operator == "GreaterThanThreshold" and 0 <= threshold < 1)
            or (operator == "GreaterThanOrEqualToThreshold" and 0 < threshold <= 1)
        )
        if name != "ApproximateNumberOfMessagesVisible":
            yield f"{alarm.path} on {name}"
        elif len(queries) > 1:
            yield f"{alarm.path} on a formula of several metrics"
        elif not goes_off:
            yield f"{alarm.path} with {operator} {shown(threshold)}"
        elif stat == "Minimum":
            yield f"{alarm.path} on the {stat}"
        elif alarm.get("ActionsEnabled") is False:
            yield f"{alarm.path} with ActionsEnabled false"
        elif not _tells(model, alarm):
            yield f"{alarm.path} without AlarmActions, so that nobody is told"
        else:
            yield None


def _tells(model: Model, alarm: Resource) -> bool:
    """Whether somebody is told: by the alarm itself, or by a composite alarm whose rule names it."""
    rules = [
        shown(composite.get("AlarmRule"))
        for composite in model.of_type("AWS::CloudWatch::CompositeAlarm")
        if composite.get("AlarmActions")
    ]
    named = [f"|{alarm.id}", *([alarm.get("AlarmName")] if isinstance(alarm.get("AlarmName"), str) else [])]
    return bool(alarm.get("AlarmActions")) or any(name in rule for rule in rules for name in named)


def retention_s(queue: Resource) -> float | None:
    """Seconds, None if it is not known."""
    return queue.number("MessageRetentionPeriod", default=RETENTION_DEFAULT_S)


def message_size(queue: Resource) -> float | None:
    """MaximumMessageSize in bytes, None if it is not known."""
    return queue.number("MaximumMessageSize", default=SQS_MESSAGE_LIMIT_BYTES)


def _failure_queues(model: Model) -> list[Resource]:
    """Each DLQ of a consumed queue, and each queue that is the on-failure destination of a mapping."""
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
