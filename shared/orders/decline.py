"""The end of an order that is not charged: by the payment step, or by a person with `make settle`."""

import msgspec

from shared.idempotency import Outcome

from .events import OrderDeclined, disclosed
from .row import DECLINED, Order
from .writes import record_declined


class Payment(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The result of the payment step. `total` is in minor units, `state` paid or declined, ids are the provider's."""

    order_id: str
    total: int
    currency: str
    state: str
    payment_intent: str
    charge: str | None = None
    reason: str | None = None  # of a decline, as the row has it


def declined_outcome(table: str, row: Order, intent_id: str | None, reason: str, *, now_ms: int) -> Outcome:
    """Return the outcome that declines a placed order, with its event.

    `intent_id`: the canceled intent on the row, or None if the row has none: then the commit fails if one was saved in
    the meantime. `reason`: the true one. The event has the one that may be disclosed.
    """
    facts = {"order_id": row.order_id, "total": row.total, "currency": row.currency, "payment_intent": intent_id or ""}
    write = record_declined(table, row.order_id, intent_id=intent_id, reason=reason, now_ms=now_ms)
    return Outcome(
        msgspec.convert({**facts, "state": DECLINED, "reason": reason}, Payment),
        [write],
        [msgspec.convert({**facts, "reason": disclosed(reason)}, OrderDeclined)],
    )
