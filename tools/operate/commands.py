"""The commands with which an operator changes one thing: pause and resume, forget, discard, recover."""

import base64
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from shared.idempotency import Image, epoch_ms, iso, runtime, text
from shared.idempotency.records import INPROGRESS, number
from shared.orders.audit import OPERATIONS
from shared.orders.row import PLACED, REQUESTED
from tools.account import Stop
from tools.domain import EMAIL_OPERATION, parse_record_key
from tools.operate.deployment import Deployment
from tools.operate.dlq import look
from tools.operate.redrive import copy_request
from tools.progress import stderr
from tools.queues import depth, parse_parked, queue_arn, walk
from tools.tables import Tables


def consent(phrase: str, question: str, *, given: bool) -> None:
    """Ask on standard error and read a line. Raises Stop unless the line is `phrase`, or consent was `given` before."""
    if given:
        return
    stderr.print(f"\n{question}\nType `{phrase}` to continue:", markup=False)
    if sys.stdin.readline().strip() != phrase:
        raise Stop("The text is different: nothing was done.")


# Pause and resume: the event source mapping of a queue, disabled and enabled. Messages stay in the queue.

# Lambda takes "a few minutes" at most: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
SWITCH_DEADLINE_S = 300
SWITCH_POLL_S = 1.0
STATES = {True: "Enabled", False: "Disabled"}  # all other states are on the way to one of these


@dataclass(frozen=True)
class Switched:
    """A queue whose mapping has the requested state. `was`: its state before. `waiting`: the messages in the queue."""

    queue: str
    was: str
    now: str
    waiting: int


def switch(deployment: Deployment, queue: str, *, on: bool) -> Switched:
    """Enable or disable the mapping, and wait until Lambda reports it. Raises Stop if that takes too long."""
    client, mapping = deployment.client("lambda"), _mapping(deployment, queue)
    before, target = mapping["State"], STATES[on]
    deadline_ms = epoch_ms() + SWITCH_DEADLINE_S * 1000
    while mapping["State"] != target:
        if epoch_ms() > deadline_ms:
            raise Stop(f"The mapping of {queue} is still {mapping['State']} after {SWITCH_DEADLINE_S} s. Run it again.")
        answer = _update(client, mapping["UUID"], on) if mapping["State"] in STATES.values() else None
        if answer is None:
            runtime.current().clock.sleep(SWITCH_POLL_S)
            answer = client.get_event_source_mapping(UUID=mapping["UUID"])
        mapping = answer
    return Switched(queue, before, target, depth(deployment.client("sqs"), deployment.queue_url(queue)).total)


def mapping_state(deployment: Deployment, queue: str) -> str:
    """Return Lambda's state of a queue's mapping: Enabled, Disabled, or on the way to one of them."""
    state: str = _mapping(deployment, queue)["State"]
    return state


def _mapping(deployment: Deployment, queue: str) -> Any:
    arn = queue_arn(deployment.client("sqs"), deployment.queue_url(queue))
    mappings = deployment.client("lambda").list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    if len(mappings) != 1:
        raise Stop(f"{arn} has {len(mappings)} event source mappings instead of one. Is the stage deployed?")
    return mappings[0]


def _update(client: Any, uuid: str, on: bool) -> Any:
    """Return the mapping after the update, or None while Lambda still works on an earlier update."""
    try:
        return client.update_event_source_mapping(UUID=uuid, Enabled=on)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
        return None


# Forget: delete one idempotency record, so that its step runs again against the order row.

# Attributes of a record that are shown. None of them can name a person. Of the others only the names are shown.
SHOWN = (
    "id", "status", "owner", "attempt", "uncertain", "unsettled", "in_progress_expiration", "expiration",
    "correlation_id",
)  # fmt: skip
NAMED = ("validation", "data", "outbox", "effect")


def find_record(deployment: Deployment, key: str) -> Image | None:
    """Return the record under this key. Raises Stop if no record of an order can have the key."""
    if parse_record_key(key) is None:
        raise Stop(f"{key!r} is not the key of a record. KEY=payment.charge#ord_1; operations: {', '.join(OPERATIONS)}")
    return deployment.tables().record(key)


def visible_attributes(image: Image) -> dict[str, Any]:
    """Return the attributes of a record that a person may see."""
    values = {name: next(iter(image[name].values())) for name in SHOWN if name in image}
    return values | {"holds": [name for name in NAMED if name in image]}


def require_forgettable(image: Image, *, second_mail: bool) -> None:
    """Raise Stop if a worker holds the record, or if deleting the record may cause a second email."""
    key, until_ms = text(image, "id") or "", number(image, "in_progress_expiration")
    if text(image, "status") == INPROGRESS and until_ms is not None and until_ms > epoch_ms():
        raise Stop(f"{key} is in progress, and its lease ends at {iso(until_ms)}. Wait until then.")
    if key.startswith(f"{EMAIL_OPERATION}#") and not second_mail:
        raise Stop(f"{key}: a second email may be sent. If that is better than none: SECOND_MAIL=1.")


def forget(deployment: Deployment, image: Image) -> None:
    """Delete the record if it did not change since it was shown. Raises Stop if it changed."""
    names = sorted({*SHOWN, *NAMED, *image})
    unchanged = [f"#{n} = :{n}" if name in image else f"attribute_not_exists(#{n})" for n, name in enumerate(names)]
    tables = deployment.tables()
    try:
        tables.client.delete_item(
            TableName=tables.records,
            Key={"id": image["id"]},
            ConditionExpression=" AND ".join(unchanged),
            ExpressionAttributeNames={f"#{n}": name for n, name in enumerate(names)},
            ExpressionAttributeValues={f":{n}": image[name] for n, name in enumerate(names) if name in image},
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        raise Stop("The record has changed since it was shown: nothing was done. Run it again.") from None


# Discard: move parked messages of one reason from a DLQ into a file. They are written first and deleted second.


@dataclass(frozen=True)
class Discarded:
    """The number of messages that were moved from the DLQ into the file. `open_orders`: placed orders among them."""

    queue: str
    reason: str
    discarded: int
    file: str
    open_orders: Sequence[str] = ()


def discard_file(deployment: Deployment) -> Path:
    """Return the file for discarded messages. It is outside the clone, so that git and `make down` do not touch it."""
    return Path.home() / f"effectively-once-{deployment.stage}-discarded.jsonl"


def discardable(deployment: Deployment, queue: str, reason: str) -> list[str]:
    """Return the ids of the messages that are parked for this reason now."""
    return [message.message_id for message in look(deployment, queue).messages if message.reason == reason]


def discard(deployment: Deployment, queue: str, reason: str, message_ids: Collection[str]) -> Discarded:
    """Move these messages into the file. If it is interrupted, a message may be in the file twice, and none is lost."""
    sqs, url, path = deployment.client("sqs"), deployment.dlq_url(queue), discard_file(deployment)
    left, order_ids = set(message_ids), set[str]()
    with walk(sqs, url) as walking:
        for message in walking.messages():
            if message["MessageId"] in left:
                _append(path, json.dumps(copy_request(message, url), default=_base64))
                walking.remove(message)
                order_ids.add(parse_parked(message).order_id or "")
                left.remove(message["MessageId"])
            if not left:
                break
    tables = deployment.tables()
    rows = {order_id: tables.order(order_id) or {} for order_id in sorted(order_ids - {""})}
    open_orders = [order_id for order_id, row in rows.items() if text(row, "state") == PLACED]
    return Discarded(queue, reason, len(message_ids) - len(left), str(path), open_orders)


def _append(path: Path, line: str) -> None:
    """Append a line to a file that only its owner may read, and flush it to the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(file, "a", encoding="utf-8") as out:
        os.fchmod(out.fileno(), 0o600)  # the file may exist with other rights
        out.write(line + "\n")
        out.flush()
        os.fsync(out.fileno())


def _base64(value: bytes) -> str:
    """Encode binary attributes as the AWS CLI expects them."""
    return base64.b64encode(value).decode()


# Recover: put missing order rows back from a copy of the table, as point-in-time recovery makes it.
# The copy is older than the ledger: a row of the copy may not show that its order was charged. Such a row gets the
# intent of that charge before any step can see the row, so that the order is not charged again.


def recover(deployment: Deployment, copy: str, tell: Callable[[int], None] = lambda _: None) -> Counter[str]:
    """Put missing rows back. Counts `put_back`, of these `known_to_be_charged`, and `there_already`.

    Safe to repeat: existing rows are not changed. Raises Stop unless all queues are paused.
    """
    if running := [queue for queue in deployment.queues if mapping_state(deployment, queue) != "Disabled"]:
        raise Stop(f"Pause {', '.join(running)} first: no step may work on a row before it is complete.")
    tables, counts = deployment.tables(), Counter[str]()
    if copy == tables.orders:
        raise Stop(f"{copy} is the orders table itself. Name the copy.")
    intents = _charged_intents(deployment)
    for rows in tables.scan(copy):
        for row in rows:
            _put_back(tables, row, intents, counts)
        tell(counts["put_back"] + counts["there_already"])
    return counts


def _charged_intents(deployment: Deployment) -> Mapping[str, str]:
    """Return the intent of the oldest standing charge, by order."""
    intents: dict[str, str] = {}
    for order_id, charge in deployment.ledger().charges_by_order():  # newest first
        if charge.stands:
            intents[order_id] = charge.intent_id
    return intents


def _put_back(tables: Tables, row: Image, intents: Mapping[str, str], counts: Counter[str]) -> None:
    charged = intents.get(text(row, "order_id") or "")
    add_intent = charged and text(row, "state") in (REQUESTED, PLACED) and text(row, "intent_id") is None
    item = {**row, "intent_id": {"S": charged}} if add_intent else row
    try:
        tables.client.put_item(TableName=tables.orders, Item=item, ConditionExpression="attribute_not_exists(order_id)")
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        counts["there_already"] += 1
        return
    counts["put_back"] += 1
    counts["known_to_be_charged"] += bool(add_intent)
