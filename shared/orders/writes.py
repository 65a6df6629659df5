"""The writes that change an order's state: each with its condition, and the error if the row does not meet it.

Steps return these writes. The engine performs them in one transaction with the step's record.
"""

from collections.abc import Callable
from typing import Any

from shared.idempotency import Image, KeyReused, NotDone, Permanent, StepError, Write, fingerprint, iso

from .events import OrderRequested
from .row import (
    API_ID_PREFIX,
    DECLINED,
    PAID,
    PLACED,
    REQUESTED,
    Order,
    facts_of,
    open_marks,
    parse_row,
    values,
)

DIRECT_CALLER = "queue"  # any principal that the queue policy admits


def record_request(table: str, order: OrderRequested, *, caller: str, correlation_id: str, now_ms: int) -> Write:
    """Create the row of an order that the API accepts. KeyReused if the id belongs to another order."""
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

    def on_conflict(found: Order | None) -> StepError | None:
        same = found is not None and found.fingerprint == mark and found.caller == caller
        return None if same else KeyReused(f"order {order.order_id} is another request")

    put = {"TableName": table, "Item": values(row), "ConditionExpression": "attribute_not_exists(order_id)"}
    return Write({"Put": put}, _on_row(on_conflict))


def record_placed(table: str, order: OrderRequested, *, correlation_id: str, now_ms: int) -> Write:
    """requested → placed. The row of an order that came by the queue starts as placed.

    KeyReused if the id belongs to another order. Permanent if the id has the API's prefix and there is no row.
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

    def on_conflict(found: Order | None) -> StepError | None:
        if found is None:
            return Permanent("reserved_order_id", f"{order.order_id} was not made by the API")
        return None if found.fingerprint == mark else KeyReused(f"order {order.order_id} is another request")

    return Write(_update(table, order.order_id, moved, condition, conditioned), _on_row(on_conflict))


def record_paid(table: str, order_id: str, *, intent_id: str, charge_id: str, now_ms: int) -> Write:
    """placed → paid, by the intent on the row."""
    moved = {"state": PAID, "paid_at": iso(now_ms), "charge_id": charge_id, **open_marks(order_id, now_ms)}
    return _settle(table, order_id, PAID, intent_id, moved)


def record_declined(table: str, order_id: str, *, intent_id: str | None, reason: str, now_ms: int) -> Write:
    """placed → declined. A decline is final. `intent_id`: the canceled intent on the row, None if the row has none."""
    moved = {"state": DECLINED, "declined_at": iso(now_ms), "decline_reason": reason, **open_marks(order_id, now_ms)}
    return _settle(table, order_id, DECLINED, intent_id, moved)


def record_mailed(table: str, order_id: str, *, state: str, mail: str, mail_id: str, now_ms: int) -> Write:
    """Record that the email about this state was sent. The order is final, and the sweep's marks are removed."""

    def on_conflict(found: Order | None) -> StepError | None:
        same = found is not None and found.mailed_at is not None and found.mail == mail
        return None if same else _refused(order_id, found)

    moved = {"mailed_at": iso(now_ms), "mail": mail, "mail_id": mail_id}
    condition = "#state = :state AND attribute_not_exists(mailed_at)"
    update = _update(table, order_id, moved, condition, {":state": state})
    update["Update"]["UpdateExpression"] += " REMOVE open_shard, open_since, sweeps"
    update["Update"]["ExpressionAttributeNames"]["#state"] = "state"
    return Write(update, _on_row(on_conflict))


def _settle(table: str, order_id: str, state: str, intent_id: str | None, moved: dict[str, Any]) -> Write:
    def on_conflict(found: Order | None) -> StepError | None:
        same = found is not None and found.state == state and found.intent_id == intent_id
        return None if same else _refused(order_id, found)

    on_row = "intent_id = :intent" if intent_id else "attribute_not_exists(intent_id)"
    conditioned = {":placed": PLACED, ":intent": intent_id}
    update = _update(table, order_id, moved, f"#state = :placed AND {on_row}", conditioned)
    return Write(update, _on_row(on_conflict))


def _refused(order_id: str, found: Order | None) -> StepError:
    return NotDone(f"order {order_id} is {found.state if found else 'missing'}")


def _update(
    table: str, order_id: str, moved: dict[str, Any], condition: str, conditioned: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Build an update that sets attributes under a condition. `#name` and `:name` stand for each attribute."""
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


def _on_row(on_conflict: Callable[[Order | None], StepError | None]) -> Callable[[Image | None], StepError | None]:
    return lambda image: on_conflict(parse_row(image) if image else None)
