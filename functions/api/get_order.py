"""GET /orders/{order_id}: the order as it is now, for the caller who created it."""

import re

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from functions.api.request import RETRY_AFTER, Problem, Request, Response, caller_of
from shared.idempotency import epoch_ms, logger, request_s, reserve_s
from shared.orders import API_ID_PREFIX, Item, Order, disclosed, orders

_ID = re.compile(rf"{API_ID_PREFIX}[a-z2-7]{{26}}")
TRIES = 2  # the first may use a connection that died while Lambda had frozen the worker


class PaymentView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of the charge."""

    charge_id: str | None = None
    decline_reason: str | None = None


class OrderView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of the answer, without the customer. Amounts are in minor units."""

    order_id: str
    state: str
    total: int
    currency: str
    items: tuple[Item, ...]
    timeline: list[dict[str, str]]
    payment: PaymentView | None = None


def get_order(request: Request, order_id: str, remaining_ms: int) -> Response:
    """Return an order. `remaining_ms`: the time that Lambda leaves this invocation.

    Raises the same Problem for an unknown order and for an order of another caller.
    """
    deadline_ms = epoch_ms() + remaining_ms - int(reserve_s() * 1000)
    caller = caller_of(request)
    if not _ID.fullmatch(order_id):
        raise _no_such_order()
    logger.thread_safe_append_keys(order_id=order_id)
    order = _read(order_id, deadline_ms)
    if order is None or order.caller != caller:
        raise _no_such_order()
    logger.thread_safe_append_keys(outcome="shown", state=order.state)
    return Response(200, "application/json", msgspec.json.encode(_view(order)).decode())


def _no_such_order() -> Problem:
    return Problem(404, "no-such-order", "No such order", "You have no order under this id.")


def _read(order_id: str, deadline_ms: int) -> Order | None:
    failure: Exception | None = None
    for _ in range(TRIES):
        if deadline_ms - epoch_ms() < request_s() * 1000:
            break
        try:
            return orders().get(order_id)
        except (BotoCoreError, ClientError) as error:
            failure = error
    logger.thread_safe_append_keys(error=type(failure).__name__ if failure else "no time left")
    detail = "The order cannot be read now."
    raise Problem(503, "not-read", "Service unavailable", detail, headers=RETRY_AFTER) from failure


def _view(order: Order) -> OrderView:
    reason = order.decline_reason
    payment = PaymentView(order.charge_id, None if reason is None else disclosed(reason))
    return OrderView(
        order.order_id,
        order.state,
        order.total,
        order.currency,
        order.items,
        order.timeline,
        None if payment == PaymentView() else payment,
    )
