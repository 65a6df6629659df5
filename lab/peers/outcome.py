"""Classify the outcome of an order by the provider's ledger, the order row and the queue.

No idempotency record is read: each peer has another format. A schedule may have several outcomes.
"""

from collections.abc import Iterator

from tests.schedules.explorer import STUCK
from tests.schedules.invariants import Invariant, charges_of, orders_of
from tests.schedules.run import Run
from tests.schedules.scenarios import Scenario


def double_charge(_: Scenario, run: Run) -> Iterator[str]:
    """The customer has paid more than once."""
    for order_id, charges in charges_of(run).items():
        paid = sum(bool(charge["paid"]) for charge in charges)
        if paid > 1:
            yield f"order {order_id} was charged {paid} times"


def charged_not_recorded(_: Scenario, run: Run) -> Iterator[str]:
    """The customer has paid, and the order row does not say so."""
    charges = charges_of(run)
    for order_id, row in orders_of(run).items():
        if any(charge["paid"] for charge in charges[order_id]) and row["state"] != {"S": "paid"}:
            yield f"order {order_id} was charged, its row is {row['state']}"


def lost(_: Scenario, run: Run) -> Iterator[str]:
    """The message was acknowledged, nothing was charged, and nothing waits or is parked that could change it."""
    charges = charges_of(run)
    left = any(run.model.queues.waiting[queue] for queue in ("payments", "payments-dlq"))
    for order_id, row in orders_of(run).items():
        if not left and not charges[order_id] and row["state"] != {"S": "paid"}:
            yield f"order {order_id} was acknowledged and never charged"


OUTCOME: tuple[Invariant, ...] = (double_charge, charged_not_recorded, lost)
KINDS = (*(rule.__name__ for rule in OUTCOME), STUCK)
