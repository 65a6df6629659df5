"""GET /orders/{order_id}: the row as it is now, for the caller who placed it."""

import re

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from functions.api.http import Response
from functions.api.problems import LATER, Problem, no_such_order
from shared.orders import repository
from shared.orders.events import Item
from shared.orders.row import API_ID_PREFIX, Order
from shared.idempotency.telemetry import logger

_ID = re.compile(rf"{API_ID_PREFIX}[a-z2-7]{{26}}")
TRIES = 2  # the first may go down a connection that died while Lambda had the worker frozen


class Payment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of charging the card."""

    charge_id: str | None = None
    decline_reason: str | None = None


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of the answer: no customer, who is known to the caller; amounts in minor units."""

    order_id: str
    state: str
    total: int
    currency: str
    items: tuple[Item, ...]
    timeline: list[dict[str, str]]
    payment: Payment | None = None


def show(caller: str, order_id: str) -> Response:
    """Raises Problem; it is the same for an order of somebody else as for none."""
    if not _ID.fullmatch(order_id):
        raise no_such_order()
    logger.thread_safe_append_keys(order_id=order_id)
    order = _get(order_id)
    if order is None or order.caller != caller:
        raise no_such_order()
    logger.thread_safe_append_keys(outcome="shown", state=order.state)
    return Response(200, "application/json", msgspec.json.encode(_shown(order)).decode())


def _get(order_id: str) -> Order | None:
    for left in reversed(range(TRIES)):
        try:
            return repository.orders().get(order_id)
        except (BotoCoreError, ClientError) as error:
            if not left:
                logger.thread_safe_append_keys(error=type(error).__name__)
                raise Problem(
                    503, "not-read", "Service unavailable", "The order can not be read now.", headers=LATER
                ) from error
    return None


def _shown(order: Order) -> Shown:
    payment = Payment(order.charge_id, order.decline_reason)
    return Shown(
        order.order_id,
        order.state,
        order.total,
        order.currency,
        order.items,
        order.timeline,
        None if payment == Payment() else payment,
    )
