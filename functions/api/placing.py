"""POST /orders: the order row, its record and its event in one transaction; the same request again, the same answer."""

import os

import msgspec

from functions.api.http import Response
from functions.api.problems import KEY_HELP, LATER, Problem
from shared.idempotency import telemetry
from shared.idempotency import (
    Attempt,
    Busy,
    Conflict,
    Effect,
    KeyReused,
    NotWritten,
    Outcome,
    OutcomeUnknown,
    Step,
    runtime,
    step,
)
from shared.idempotency.engine import Message
from shared.orders import writes
from shared.orders.events import NewOrder, OrderRequested
from shared.orders.row import REQUESTED
from shared.idempotency.telemetry import logger

OPERATION = "order.request"

# An HTTP API answers for its function after 30 s; a cold start before the handler may have taken some of them.
GATEWAY_WAITS_S = 25.0
ANSWER_S = 0.25  # for the answer itself, its log line and its metric


class Accepted(msgspec.Struct, frozen=True):
    """The step's stored result and the body of the answer; `total` in minor units."""

    order_id: str
    state: str
    total: int
    currency: str


def request_step(caller: str) -> Step[OrderRequested]:
    """The step as it runs for one caller, who is kept on the row."""

    @step(OPERATION, event=OrderRequested, key=lambda order: order.order_id, effect=Effect.NONE)
    def request(order: OrderRequested, attempt: Attempt) -> Outcome:
        write = writes.request(
            os.environ["ORDERS_TABLE"],
            order,
            caller=caller,
            correlation_id=attempt.correlation_id,
            now_ms=attempt.now_ms,
        )
        return Outcome(Accepted(order.order_id, REQUESTED, order.total, order.currency), [write], [order])

    return request


def place(caller: str, order_id: str, new: NewOrder, correlation_id: str, remaining_ms: int) -> Response:
    """`remaining_ms`: what Lambda leaves this invocation. Raises Problem, and Damaged for a person to see to."""
    order = OrderRequested(
        order_id=order_id,
        customer=new.customer,
        currency=new.currency,
        items=new.items,
        payment_method=new.payment_method,
    )
    left_s = min(remaining_ms / 1000, GATEWAY_WAITS_S) - ANSWER_S
    try:
        if left_s < float(os.environ["STEP_NEEDS_S"]):
            telemetry.count(OPERATION, {telemetry.NOT_STARTED: 1})
            raise NotWritten(f"not started with {left_s:.1f} s left")
        engine = runtime.engine()
        ran = engine.run(
            request_step(caller),
            Message(order, correlation_id, telemetry.trace_header()),
            engine.clock.now_ms() + int(left_s * 1000),
        )
    except (KeyReused, Busy, OutcomeUnknown, NotWritten) as error:
        logger.thread_safe_append_keys(error=type(error).__name__, reason=str(error))
        raise _problem(error) from error
    telemetry.count(OPERATION, {telemetry.DUPLICATE_REPLAYED if ran.replayed else telemetry.FIRST_RUN: 1})
    logger.thread_safe_append_keys(outcome="replayed" if ran.replayed else "accepted")
    headers = {"Location": f"/orders/{order_id}"}
    if ran.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(202, "application/json", msgspec.json.encode(ran.result).decode(), headers)


def _problem(error: KeyReused | Busy | OutcomeUnknown | NotWritten) -> Problem:
    """The design's table of HTTP answers. Conflict is a NotWritten, so it comes first."""
    match error:
        case KeyReused():
            telemetry.count(OPERATION, {telemetry.KEY_REUSED: 1})
            return Problem(
                422,
                "key-reused",
                "Idempotency-Key is already used",
                "This key belongs to another order, which is untouched. A new order needs a new key.",
                headers=KEY_HELP,
            )
        case Conflict() | Busy():
            return Problem(
                409,
                "in-flight",
                "A request is outstanding for this Idempotency-Key",
                "Another write to this order is in flight, and this one was not made. Repeat it with the same key.",
                headers=KEY_HELP | LATER,
            )
        case OutcomeUnknown():
            return Problem(
                504,
                "outcome-unknown",
                "Outcome unknown",
                "The order may have been placed. Repeat the request with the same key: it is placed once.",
                headers=LATER,
            )
        case NotWritten():
            return Problem(
                503,
                "not-placed",
                "Service unavailable",
                "The order was not placed, and nothing was stored. Repeat the request with the same key.",
                headers=LATER,
            )
