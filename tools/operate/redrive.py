"""Redrive: move parked messages back to their queue. Moving too many is safe, because finished work is replayed.

Without a move task of SQS, each message is sent first and deleted second. If the redrive is interrupted, no message is
lost, and one may be in both queues.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from shared.idempotency import epoch_ms, iso, runtime
from tools.account import Stop
from tools.operate.deployment import RELAY, Deployment
from tools.operate.dlq import LIMIT, DlqContents, look
from tools.queues import Parked, depth, parse_parked, queue_arn, walk

POLL_S = 2.0
UNLISTED_POLLS = 15
FAILURES_MAX = 10  # more failures are not caused by single messages
# The error of an endpoint without StartMessageMoveTask: MiniStack sends the first code, other emulators the second.
NO_SUCH_ACTION = {"InvalidAction", "UnknownOperationException"}

Tell = Callable[[int, int], None]  # number moved, number in total


@dataclass(frozen=True)
class Selection:
    """The messages to move. Without `everything` and `reason`: those that no step called permanent."""

    queue: str
    everything: bool = False
    reason: str | None = None
    limit: int | None = None
    dry_run: bool = False

    def includes(self, message: Parked) -> bool:
        """Return whether to move this message."""
        if self.reason is not None:
            return message.reason == self.reason
        return self.everything or not message.permanent


@dataclass
class Redriven:
    """The result, as counts by reason. With `by_task`, SQS moved the messages and counts `moved` as a whole."""

    moved: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)  # not selected
    returned: int = 0  # parked since the redrive began; may be messages that it moved
    failed: Counter[str] = field(default_factory=Counter)  # by error code; they stay parked
    by_task: bool = False
    complete: bool = True

    @property
    def succeeded(self) -> bool:
        """No message failed. Messages that were not selected may be left."""
        return not self.failed


def redrive(deployment: Deployment, selection: Selection, tell: Tell = lambda *_: None, limit: int = LIMIT) -> Redriven:
    """Move the selected messages. `limit`: messages read before deciding how. Raises Stop for the relay's queue."""
    if selection.queue == RELAY:
        raise Stop("Messages of the relay cannot be redriven. `make audit REPAIR=1` sends the events of its orders.")
    deployment.require_queue(selection.queue)
    result = Redriven()
    if not selection.dry_run and selection.limit is None and selection.reason is None:
        contents = None if selection.everything else look(deployment, selection.queue, limit)
        may_use_task = contents is None or _includes_all(selection, contents)
        if may_use_task and _move_by_task(deployment, selection, result, tell):
            return result
    _move_one_by_one(deployment, selection, result, tell)
    return result


def _includes_all(selection: Selection, contents: DlqContents) -> bool:
    """Return whether all messages are selected. A message that another reader hides is unknown, so it is not."""
    read_all = contents.complete and len(contents.messages) >= contents.total
    return read_all and all(selection.includes(message) for message in contents.messages)


def _move_by_task(deployment: Deployment, selection: Selection, result: Redriven, tell: Tell) -> bool:
    """Let SQS move all messages. Returns False if the endpoint cannot.

    The request names the destination, because a message that a function sent to the DLQ has no source of its own.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
    """
    sqs, url = deployment.client("sqs"), deployment.dlq_url(selection.queue)
    source, destination = queue_arn(sqs, url), queue_arn(sqs, deployment.queue_url(selection.queue))
    if not depth(sqs, url).total:
        return False
    try:
        before = _latest_task(sqs, source)
        if not _is_running(before):  # a running task is left from a redrive that was interrupted
            sqs.start_message_move_task(SourceArn=source, DestinationArn=destination)
    except ClientError as error:
        if error.response["Error"]["Code"].rpartition(".")[2] in NO_SUCH_ACTION:
            return False
        raise
    result.by_task = True
    unlisted = 0
    while True:
        task = _latest_task(sqs, source)
        moved = int(task.get("ApproximateNumberOfMessagesMoved", 0))
        if not _is_running(before) and task.get("StartedTimestamp") == before.get("StartedTimestamp"):
            unlisted += 1  # the list is eventually consistent
            if unlisted > UNLISTED_POLLS:
                raise Stop("SQS accepted the move task and does not list it. See `make dlq` in a minute.")
        elif not _is_running(task):
            break
        else:
            tell(moved, int(task.get("ApproximateNumberOfMessagesToMove", moved)))
        runtime.current().clock.sleep(POLL_S)
    result.moved["all"] = moved
    if task.get("Status") != "COMPLETED":
        result.failed[str(task.get("FailureReason") or task.get("Status"))] += 1
    return True


def _latest_task(sqs: Any, source: str) -> Mapping[str, Any]:
    tasks = sqs.list_message_move_tasks(SourceArn=source, MaxResults=1).get("Results", [])
    return tasks[0] if tasks else {}


def _is_running(task: Mapping[str, Any]) -> bool:
    return task.get("Status") in ("RUNNING", "CANCELLING")


def _move_one_by_one(deployment: Deployment, selection: Selection, result: Redriven, tell: Tell) -> None:
    sqs = deployment.client("sqs")
    source, destination = deployment.dlq_url(selection.queue), deployment.queue_url(selection.queue)
    began_at = iso(epoch_ms())
    total = depth(sqs, source).total
    with walk(sqs, source) as walking:
        for message in walking.messages():
            at_limit = selection.limit is not None and result.moved.total() >= selection.limit
            if at_limit or result.failed.total() >= FAILURES_MAX:
                result.complete = False
                return
            parked = parse_parked(message)
            if parked.sent_at > began_at:
                result.returned += 1  # left, because a message that is parked again at once would circle forever
            elif not selection.includes(parked):
                result.left[parked.reason] += 1
            elif selection.dry_run:
                result.moved[parked.reason] += 1
            else:
                try:
                    sqs.send_message(**copy_request(message, destination))
                except ClientError as error:
                    result.failed[error.response["Error"]["Code"]] += 1
                else:
                    walking.remove(message)
                    result.moved[parked.reason] += 1
            tell(result.moved.total(), total)


def copy_request(message: Mapping[str, Any], destination: str) -> dict[str, Any]:
    """Return the SendMessage request that copies a message with its attributes and its trace."""
    attributes = {
        name: {kind: value[kind] for kind in ("DataType", "StringValue", "BinaryValue") if value.get(kind) is not None}
        for name, value in message.get("MessageAttributes", {}).items()
    }
    request: dict[str, Any] = {
        "QueueUrl": destination,
        "MessageBody": message["Body"],
        "MessageAttributes": attributes,
    }
    if trace := message.get("Attributes", {}).get("AWSTraceHeader"):
        request["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    return request
