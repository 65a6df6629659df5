"""Pauses a queue and resumes it: its event source mapping, off and on. Messages stay where they are meanwhile."""

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from shared.idempotency import epoch_ms, runtime
from tools.account import Stop
from tools.operate.deployment import Deployment
from tools.operate.parked import depth

# Lambda takes "a few minutes" at most: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
WITHIN_S = 300
POLL_S = 1.0
STATE = {True: "Enabled", False: "Disabled"}
SETTLED = frozenset(STATE.values())  # all others are on the way to one of these


@dataclass(frozen=True)
class Switched:
    """A queue whose mapping is as it was wished. `was` is its state before, `waiting` its messages by SQS's count."""

    queue: str
    was: str
    now: str
    waiting: int


def switch(deployment: Deployment, queue: str, *, on: bool) -> Switched:
    """Turn the mapping on or off, and wait until Lambda says that it is. Raises Stop if it is not in time."""
    mappings, found = deployment.client("lambda"), _mapping(deployment, queue)
    was, wanted = found["State"], STATE[on]
    until_ms = epoch_ms() + WITHIN_S * 1000
    while found["State"] != wanted:
        if epoch_ms() > until_ms:
            raise Stop(f"The mapping of {queue} is still {found['State']} after {WITHIN_S} s: run it again.")
        answer = _ask(mappings, found["UUID"], on) if found["State"] in SETTLED else None
        if answer is None:
            runtime.current().clock.sleep(POLL_S)
            answer = mappings.get_event_source_mapping(UUID=found["UUID"])
        found = answer
    return Switched(queue, was, wanted, sum(depth(deployment.client("sqs"), deployment.queue_url(queue)).values()))


def state_of(deployment: Deployment, queue: str) -> str:
    """Of a queue's mapping, as Lambda says it: Enabled, Disabled, or on the way to one."""
    found: str = _mapping(deployment, queue)["State"]
    return found


def _mapping(deployment: Deployment, queue: str) -> Any:
    sqs = deployment.client("sqs")
    attributes = sqs.get_queue_attributes(QueueUrl=deployment.queue_url(queue), AttributeNames=["QueueArn"])
    arn = attributes["Attributes"]["QueueArn"]
    found = deployment.client("lambda").list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    if len(found) != 1:
        raise Stop(f"{arn} has {len(found)} event source mappings, and should have one: is the stage deployed?")
    return found[0]


def _ask(mappings: Any, uuid: str, on: bool) -> Any:
    """The mapping as Lambda answers; None while an earlier update is under way, when it takes no other."""
    try:
        return mappings.update_event_source_mapping(UUID=uuid, Enabled=on)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
        return None


def report(deployment: Deployment, done: Switched) -> dict[str, Any]:
    """Machine-readable."""
    return {
        "stage": deployment.stage,
        "queue": done.queue,
        "was": done.was,
        "now": done.now,
        "waiting": done.waiting,
    }
