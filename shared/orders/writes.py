"""The moves of an order: each a write with its condition, and what a row that refuses it says.

Steps return these; the core performs them in one transaction with the step's record.
"""

from collections.abc import Callable
from typing import Any

from shared.idempotency import KeyReused, NotDone, Permanent, StepError, Write
from shared.idempotency.clock import iso
from shared.idempotency.events import fingerprint
from shared.idempotency.records import Image
from shared.orders.events import OrderRequested
from shared.orders.row import (
    API_ID_PREFIX,
    DECLINED,
    PAID,
    PLACED,
    REQUESTED,
    Order,
    facts_of,
    open_marks,
    read,
    values,
)

DIRECT_CALLER = "queue"  # whoever the queue policy lets in


def request(table: str, order: OrderRequested, *, caller: str, correlation_id: str, now_ms: int) -> Write:
    """An order that came by the API: the row is new. Refused by another order under this id: KeyReused."""
    mark = fingerprint(order)
    row = {
        "order_id": order.order_id,
        "state": REQUESTED,
        "fingerprint": mark,
        "caller": caller,
        "correlation_id": correlation_id,
        "requested_at": iso(now_ms),
        **facts_of(order),
        **open_marks(order.order_id, now_ms),
    }

    def judge(found: Order | None) -> StepError | None:
        same = found is not None and found.fingerprint == mark and found.caller == caller
        return None if same else KeyReused(f"order {order.order_id} is another request")

    put = {"TableName": table, "Item": values(row), "ConditionExpression": "attribute_not_exists(order_id)"}
    return Write({"Put": put}, _judged(judge))


def place(table: str, order: OrderRequested, *, correlation_id: str, now_ms: int) -> Write:
    """requested → placed; an order that came straight to the queue starts here.

    Refused by another order under this id: KeyReused; by no row under an id of the API's: Permanent.
    """
    mark = fingerprint(order)
    moved: dict[str, Any] = {"state": PLACED, "placed_at": iso(now_ms), **open_marks(order.order_id, now_ms)}
    if order.order_id.startswith(API_ID_PREFIX):
        condition, conditioned = (
            "#state = :requested AND fingerprint = :mark",
            {":requested": REQUESTED, ":mark": mark},
        )
    else:
        condition, conditioned = "attribute_not_exists(order_id)", {}
        moved |= {"fingerprint": mark, "caller": DIRECT_CALLER, "correlation_id": correlation_id, **facts_of(order)}

    def judge(found: Order | None) -> StepError | None:
        if found is None:
            return Permanent("reserved_order_id", f"{order.order_id} was not made by the API")
        return None if found.fingerprint == mark else KeyReused(f"order {order.order_id} is another request")

    return Write(_update(table, order.order_id, moved, condition, conditioned), _judged(judge))


def mark_paid(table: str, order_id: str, *, intent_id: str, charge_id: str, now_ms: int) -> Write:
    """placed → paid, by the intent that stands on the row."""
    moved = {"state": PAID, "paid_at": iso(now_ms), "charge_id": charge_id, **open_marks(order_id, now_ms)}
    return _settle(table, order_id, PAID, intent_id, moved)


def mark_declined(table: str, order_id: str, *, intent_id: str, reason: str, now_ms: int) -> Write:
    """placed → declined, for good."""
    moved = {"state": DECLINED, "declined_at": iso(now_ms), "decline_reason": reason, **open_marks(order_id, now_ms)}
    return _settle(table, order_id, DECLINED, intent_id, moved)


def mark_mailed(table: str, order_id: str, *, state: str, mail: str, mail_id: str, now_ms: int) -> Write:
    """The customer was told of this state: the order is final, and the sweep's marks go."""

    def judge(found: Order | None) -> StepError | None:
        same = found is not None and found.mailed_at is not None and found.mail == mail
        return None if same else _refused(order_id, found)

    moved = {"mailed_at": iso(now_ms), "mail": mail, "mail_id": mail_id}
    condition = "#state = :told AND attribute_not_exists(mailed_at)"
    update = _update(table, order_id, moved, condition, {":told": state})
    update["Update"]["UpdateExpression"] += " REMOVE open_shard, open_since, sweeps"
    update["Update"]["ExpressionAttributeNames"]["#state"] = "state"
    return Write(update, _judged(judge))


def _settle(table: str, order_id: str, state: str, intent_id: str, moved: dict[str, Any]) -> Write:
    def judge(found: Order | None) -> StepError | None:
        same = found is not None and found.state == state and found.intent_id == intent_id
        return None if same else _refused(order_id, found)

    condition = "#state = :placed AND intent_id = :intent"
    return Write(_update(table, order_id, moved, condition, {":placed": PLACED, ":intent": intent_id}), _judged(judge))


def _refused(order_id: str, found: Order | None) -> StepError:
    return NotDone(f"order {order_id} is {found.state if found else 'missing'}")


def _update(
    table: str, order_id: str, moved: dict[str, Any], condition: str, conditioned: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """An update that sets attributes under a condition; `#name` and `:name` stand for each attribute set."""
    return {
        "Update": {
            "TableName": table,
            "Key": values({"order_id": order_id}),
            "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in moved),
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {f"#{name}": name for name in moved},
            "ExpressionAttributeValues": values({f":{name}": value for name, value in moved.items()} | conditioned),
        }
    }


def _judged(judge: Callable[[Order | None], StepError | None]) -> Callable[[Image | None], StepError | None]:
    return lambda image: judge(read(image) if image else None)
