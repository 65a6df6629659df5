"""Classify the orders of a variant by outcome. Pure: from expected orders and an observation.

All variants are classified by the same rules. lab/demo/audit.py applies stricter rules to this repository as well. The
rules use only what every variant has: the provider's ledger, the mailbox, order rows, messages in queues and in DLQs.
Classify a variant that is at rest: an order that only needs more time counts as stuck.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lab.variants import ExpectedOrder
from lab.variants.observation import Observation

Ids = tuple[str, ...]


@dataclass(frozen=True)
class Outcomes:
    """Order ids by outcome. One order may be in several lists.

    An order is final if its row has the state paid or declined, and the time of the email.
    """

    orders: Ids  # all accepted orders
    charged_twice: Ids  # more than one successful charge
    charged_not_recorded: Ids  # a successful charge, and a row whose state is not paid
    lost: Ids  # not final, and no message left
    parked: Ids  # a message in a DLQ
    mailed_twice: Ids  # more than one email
    not_mailed: Ids  # no email
    stuck: Ids  # not final, and a message in a queue

    @property
    def counts(self) -> dict[str, int]:
        """The number of orders by outcome."""
        return {field.name: len(getattr(self, field.name)) for field in fields(self)}


def classify(expected: Sequence[ExpectedOrder], observation: Observation) -> Outcomes:
    """Classify orders. `expected` has the addresses of the variant: see `Variant.expected`."""
    rows = {row["order_id"]: row for row in observation.orders}
    paid = Counter(
        charge["metadata"].get("order_id") for charge in observation.charges if charge["status"] == "succeeded"
    )
    mailed = Counter(address for mail in observation.mails for address in mail.to)

    def state(order: ExpectedOrder) -> Any:
        return rows.get(order.order_id, {}).get("state")

    def is_final(order: ExpectedOrder) -> bool:
        return state(order) in ("paid", "declined") and "mailed_at" in rows[order.order_id]

    def ids(orders: Collection[ExpectedOrder]) -> Ids:
        return tuple(order.order_id for order in orders)

    unfinished = [order for order in expected if not is_final(order)]
    waiting, parked = set(observation.waiting), set(observation.parked)
    return Outcomes(
        orders=ids(expected),
        charged_twice=ids([order for order in expected if paid[order.order_id] > 1]),
        charged_not_recorded=ids([order for order in expected if paid[order.order_id] and state(order) != "paid"]),
        lost=ids([order for order in unfinished if order.order_id not in waiting | parked]),
        parked=ids([order for order in expected if order.order_id in parked]),
        mailed_twice=ids([order for order in expected if mailed[order.email] > 1]),
        not_mailed=ids([order for order in expected if not mailed[order.email]]),
        stuck=ids([order for order in unfinished if order.order_id in waiting]),
    )
