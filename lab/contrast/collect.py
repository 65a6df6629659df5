"""Asks a lane's witnesses."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tools.local.observe import QUEUES, Ledger, Mailbox, Queues, Tables
from tools.local.running import Running

from lab.contrast.verdict import Witnessed
from lab.demo.lanes import Lane


def collect(lane: Lane, running: Running) -> Witnessed:
    """What the ledger, the mailbox, the order rows and the queues of a lane say now."""
    here = lane.of(running)
    queues = Queues(here)
    return Witnessed(
        charges=Ledger(here).charges(),
        mails=lane.mails(Mailbox(here).mails()),
        orders=Tables(here).orders(),
        waiting=orders_of(message for name in QUEUES for message in queues.messages(name)),
        parked=orders_of(message for name in QUEUES for message in queues.messages(f"{name}Dlq")),
    )


def orders_of(messages: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The ids of the orders that messages are of, at the same place in every lane; what names none is left out."""
    found = (_order_of(str(message["Body"])) for message in messages)
    return frozenset(order_id for order_id in found if order_id)


def _order_of(body: str) -> str | None:
    try:
        order_id = json.loads(body)["data"]["order_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return order_id if isinstance(order_id, str) else None
