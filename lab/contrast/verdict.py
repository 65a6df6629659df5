"""The verdict over a lane. Pure: from what was ordered and what the lane's witnesses say, to how many it wronged.

Every lane is judged alike, ours too, which lab/demo/audit.py judges more strictly besides. Only witnesses that every
lane has count: the provider's ledger, the mailbox, order rows, messages in queues and DLQs. Judge when a lane is at
rest: an order that only needs more time would be called stuck.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tools.local.observe import Mail

from lab.demo.audit import Expected

Ids = tuple[str, ...]


@dataclass(frozen=True)
class Witnessed:
    """What a lane's witnesses say. `waiting` and `parked`: the orders of which messages are in queues, in DLQs."""

    charges: Sequence[Mapping[str, Any]]
    mails: Sequence[Mail]
    orders: Sequence[Mapping[str, Any]]
    waiting: Collection[str]
    parked: Collection[str]


@dataclass(frozen=True)
class Verdict:
    """The orders' ids, in the order in which they were placed. One order may have suffered more than one wrong.

    An order is final when its row says paid or declined, and mailed.
    """

    orders: Ids  # all that were accepted
    charged_twice: Ids  # the customer paid more than once
    charged_not_recorded: Ids  # the customer paid, and the row does not say so
    lost: Ids  # not final, and no message is left that could change it
    parked: Ids  # a message lies in a DLQ
    mailed_twice: Ids  # more than one mail
    not_mailed: Ids  # no mail
    stuck: Ids  # not final, and a message is still on its way

    @property
    def counts(self) -> dict[str, int]:
        """How many of each."""
        return {field.name: len(getattr(self, field.name)) for field in fields(self)}


def judge(expected: Sequence[Expected], witnessed: Witnessed) -> Verdict:
    """Judge a lane by its own addresses (`Lane.expected`)."""
    rows = {row["order_id"]: row for row in witnessed.orders}
    paid = Counter(
        charge["metadata"].get("order_id") for charge in witnessed.charges if charge["status"] == "succeeded"
    )
    mailed = Counter(address for mail in witnessed.mails for address in mail.to)

    def state(order: Expected) -> Any:
        return rows.get(order.order_id, {}).get("state")

    def is_final(order: Expected) -> bool:
        return state(order) in ("paid", "declined") and "mailed_at" in rows[order.order_id]

    def those(wronged: Collection[Expected]) -> Ids:
        return tuple(order.order_id for order in wronged)

    unfinished = [order for order in expected if not is_final(order)]
    waiting, parked = set(witnessed.waiting), set(witnessed.parked)
    return Verdict(
        orders=those(expected),
        charged_twice=those([order for order in expected if paid[order.order_id] > 1]),
        charged_not_recorded=those([order for order in expected if paid[order.order_id] and state(order) != "paid"]),
        lost=those([order for order in unfinished if order.order_id not in waiting | parked]),
        parked=those([order for order in expected if order.order_id in parked]),
        mailed_twice=those([order for order in expected if mailed[order.email] > 1]),
        not_mailed=those([order for order in expected if not mailed[order.email]]),
        stuck=those([order for order in unfinished if order.order_id in waiting]),
    )
