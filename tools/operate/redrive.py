"""Moves parked messages back to their queue. Too much is harmless: what is done is replayed.

Message by message: sent first, deleted second, so that whenever it ends, no message is lost; one may be there twice.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from shared.idempotency import epoch_ms, iso, runtime
from tools.account import Stop
from tools.operate.deployment import RELAY, Deployment
from tools.operate.dlq import MOST, Letters, look
from tools.operate.parked import Parked, depth, read, visit

POLL_S = 2.0
UNLISTED_POLLS = 15
ENOUGH_FAILURES = 10  # it is not the messages then
# An endpoint without StartMessageMoveTask: MiniStack says the first, others the second.
NO_SUCH_ACTION = {"InvalidAction", "UnknownOperationException"}

Tell = Callable[[int, int], None]  # done, of so many


@dataclass(frozen=True)
class Wish:
    """What is to be moved: without `everything` or a `reason`, only what no step has called permanent."""

    queue: str
    everything: bool = False
    reason: str | None = None
    most: int | None = None
    dry_run: bool = False

    def takes(self, message: Parked) -> bool:
        """Whether this message is to be moved."""
        if self.reason is not None:
            return message.reason == self.reason
        return self.everything or not message.permanent


@dataclass
class Redriven:
    """What became of it; counts by reason. With `by_task` SQS moved them itself, and counts `moved` as a whole."""

    moved: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)  # not asked for
    returned: int = 0  # parked since this began, perhaps one of those that were moved
    failed: Counter[str] = field(default_factory=Counter)  # by error code: they stay parked
    by_task: bool = False
    complete: bool = True

    @property
    def is_well(self) -> bool:
        """Nothing failed. What was not asked for may be left."""
        return not self.failed


def redrive(deployment: Deployment, wish: Wish, tell: Tell = lambda *_: None, most: int = MOST) -> Redriven:
    """Move what is wished for. Raises Stop where there is no way back."""
    if wish.queue == RELAY:
        raise Stop("Nothing of the relay's is redriven: `make audit REPAIR=1` sends the events of its orders again.")
    deployment.require_queue(wish.queue)
    done = Redriven()
    if not wish.dry_run and wish.most is None and wish.reason is None:
        seen = None if wish.everything else look(deployment, wish.queue, most)
        if (seen is None or _all_wanted(seen, wish)) and _by_task(deployment, wish, done, tell):
            return done
    _one_by_one(deployment, wish, done, tell)
    return done


def _all_wanted(seen: Letters, wish: Wish) -> bool:
    """All, also those that another look hides at this moment, and of which nothing is known."""
    seen_all = seen.whole and len(seen.messages) >= seen.total
    return seen_all and all(wish.takes(message) for message in seen.messages)


def _by_task(deployment: Deployment, wish: Wish, done: Redriven, tell: Tell) -> bool:
    """Let SQS move all there is. Answers False where it does not know how.

    The destination is always named: a message that was sent to the DLQ, as parked ones are, has no source of its own.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html
    """
    sqs = deployment.client("sqs")
    source, destination = (_arn(sqs, url) for url in (deployment.dlq_url(wish.queue), deployment.queue_url(wish.queue)))
    if not sum(depth(sqs, deployment.dlq_url(wish.queue)).values()):
        return False
    try:
        before = _latest(sqs, source)
        if not _is_running(before):  # one that is running was begun by a redrive that was interrupted
            sqs.start_message_move_task(SourceArn=source, DestinationArn=destination)
    except ClientError as error:
        if error.response["Error"]["Code"].rpartition(".")[2] in NO_SUCH_ACTION:
            return False
        raise
    done.by_task = True
    unlisted = 0
    while True:
        task = _latest(sqs, source)
        moved = int(task.get("ApproximateNumberOfMessagesMoved", 0))
        if not _is_running(before) and task.get("StartedTimestamp") == before.get("StartedTimestamp"):
            unlisted += 1  # the list lags behind
            if unlisted > UNLISTED_POLLS:
                raise Stop("SQS took the move task and does not list it: see `make dlq` in a while.")
        elif not _is_running(task):
            break
        else:
            tell(moved, int(task.get("ApproximateNumberOfMessagesToMove", moved)))
        runtime.current().clock.sleep(POLL_S)
    done.moved["all"] = moved
    if task.get("Status") != "COMPLETED":
        done.failed[str(task.get("FailureReason") or task.get("Status"))] += 1
    return True


def _latest(sqs: Any, source: str) -> Mapping[str, Any]:
    tasks = sqs.list_message_move_tasks(SourceArn=source, MaxResults=1).get("Results", [])
    return tasks[0] if tasks else {}


def _is_running(task: Mapping[str, Any]) -> bool:
    return task.get("Status") in ("RUNNING", "CANCELLING")


def _arn(sqs: Any, url: str) -> str:
    found: str = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return found


def _one_by_one(deployment: Deployment, wish: Wish, done: Redriven, tell: Tell) -> None:
    sqs, source, target = (
        deployment.client("sqs"),
        deployment.dlq_url(wish.queue),
        deployment.queue_url(wish.queue),
    )
    began_at = iso(epoch_ms())
    total = sum(depth(sqs, source).values())
    with visit(sqs, source) as walk:
        for message in walk.messages():
            asked_for = wish.most is not None and done.moved.total() >= wish.most
            if asked_for or done.failed.total() >= ENOUGH_FAILURES:
                done.complete = False
                return
            parked = read(message)
            if parked.sent_at > began_at:
                done.returned += 1  # left, or a message that is parked at once would go round for ever
            elif not wish.takes(parked):
                done.left[parked.reason] += 1
            elif wish.dry_run:
                done.moved[parked.reason] += 1
            else:
                try:
                    sqs.send_message(**resent(message, target))
                except ClientError as error:
                    done.failed[error.response["Error"]["Code"]] += 1
                else:
                    walk.remove(message)
                    done.moved[parked.reason] += 1
            tell(done.moved.total(), total)


def resent(message: Mapping[str, Any], target: str) -> dict[str, Any]:
    """The request that sends a message on as it is, with its attributes and its trace."""
    kept = {
        name: {kind: value[kind] for kind in ("DataType", "StringValue", "BinaryValue") if value.get(kind) is not None}
        for name, value in message.get("MessageAttributes", {}).items()
    }
    request: dict[str, Any] = {"QueueUrl": target, "MessageBody": message["Body"], "MessageAttributes": kept}
    if trace := message.get("Attributes", {}).get("AWSTraceHeader"):
        request["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace}}
    return request


def report(deployment: Deployment, wish: Wish, done: Redriven) -> dict[str, Any]:
    """Machine-readable."""
    return {
        "stage": deployment.stage,
        "queue": wish.queue,
        "dry_run": wish.dry_run,
        "by_task": done.by_task,
        "moved": dict(done.moved),
        "left": dict(done.left),
        "returned": done.returned,
        "failed": dict(done.failed),
        "complete": done.complete,
    }
