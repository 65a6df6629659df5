"""Read ledger, mailbox, order rows and queues of a variant."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES, Ledger, Mail, Mailbox, Queues, Tables

from lab.variants import Variant


@dataclass(frozen=True)
class Observation:
    """The state of a variant. `waiting` and `parked` are the ids of orders with messages in queues and in DLQs."""

    charges: Sequence[Mapping[str, Any]]
    mails: Sequence[Mail]
    orders: Sequence[Mapping[str, Any]]
    waiting: Collection[str]
    parked: Collection[str]


def observe(variant: Variant, running: LocalDeployment) -> Observation:
    """Read the present state of a variant. Raises urllib's and botocore's errors."""
    here = variant.of(running)
    queues = Queues(here)
    return Observation(
        charges=Ledger(here).charges(),
        mails=variant.mails(Mailbox(here).mails()),
        orders=Tables(here).orders(),
        waiting=orders_of(message for name in QUEUES for message in queues.messages(name)),
        parked=orders_of(message for name in QUEUES for message in queues.messages(f"{name}Dlq")),
    )


def orders_of(messages: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The order ids of messages. A message that names no order is left out."""
    order_ids = (_order_of(str(message["Body"])) for message in messages)
    return frozenset(order_id for order_id in order_ids if order_id)


def _order_of(body: str) -> str | None:
    try:
        order_id = json.loads(body)["data"]["order_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return order_id if isinstance(order_id, str) else None
