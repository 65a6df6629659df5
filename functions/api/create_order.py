"""POST /orders: the order row, its record and its event in one transaction. A repeated request gets the same answer."""

import os

import msgspec

from functions.api.request import (
    KEY_HELP,
    RETRY_AFTER,
    Problem,
    Request,
    Response,
    caller_of,
    idempotency_key_of,
    order_id_of,
    posted_order,
)
from shared.idempotency import (
    Attempt,
    Busy,
    Conflict,
    Effect,
    KeyReused,
    NotWritten,
    Outcome,
    RequestInDoubt,
    StepResult,
    current_engine,
    epoch_ms,
    logger,
    step,
    telemetry,
    trace_header,
)
from shared.orders import REQUESTED, OrderRequested, record_request

OPERATION = "order.request"

# An HTTP API answers for its function after 30 s. A cold start before the handler may have taken some of them.
GATEWAY_WAITS_S = 25.0


class Accepted(msgspec.Struct, frozen=True):
    """The step's stored result and the body of the answer. `total` is in minor units."""

    order_id: str
    state: str
    total: int
    currency: str


@step(OPERATION, event=OrderRequested, key=lambda order: order.order_id, effect=Effect.NONE)
def request_order(order: OrderRequested, attempt: Attempt) -> Outcome:
    """Record the order as requested by its caller."""
    write = record_request(
        os.environ["ORDERS_TABLE"],
        order,
        caller=attempt.context["caller"],
        correlation_id=attempt.correlation_id,
        now_ms=attempt.now_ms,
    )
    return Outcome(Accepted(order.order_id, REQUESTED, order.total, order.currency), [write], [order])


def create_order(request: Request, correlation_id: str, remaining_ms: int) -> Response:
    """Create the order that a client posted. `remaining_ms`: the time that Lambda leaves this invocation.

    Raises Problem, and Damaged if a person must repair the record.
    """
    caller = caller_of(request)
    key = idempotency_key_of(request.headers.get("idempotency-key"))
    order_id = order_id_of(caller, "POST", "/orders", key)
    logger.thread_safe_append_keys(order_id=order_id)
    posted = posted_order(request)
    order = msgspec.convert({**msgspec.to_builtins(posted), "order_id": order_id}, OrderRequested)
    try:
        result = _run(order, caller, correlation_id, remaining_ms)
    except (KeyReused, Busy, RequestInDoubt, NotWritten) as error:
        logger.thread_safe_append_keys(error=type(error).__name__, reason=str(error))
        raise _problem(error) from error
    telemetry.count(OPERATION, {telemetry.DUPLICATE_REPLAYED if result.replayed else telemetry.FIRST_RUN: 1})
    logger.thread_safe_append_keys(outcome="replayed" if result.replayed else "accepted")
    headers = {"Location": f"{request.path.rstrip('/')}/{order_id}"}
    if result.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(202, "application/json", msgspec.json.encode(result.result).decode(), headers)


def _run(order: OrderRequested, caller: str, correlation_id: str, remaining_ms: int) -> StepResult:
    engine = current_engine()
    deadline_ms = epoch_ms() + min(remaining_ms, int(GATEWAY_WAITS_S * 1000))
    left_s = engine.left_s(deadline_ms)
    if left_s < engine.step_needs_s:
        telemetry.count(OPERATION, {telemetry.NOT_STARTED: 1})
        raise NotWritten(f"not started with {left_s:.1f} s left")
    return engine.run(
        request_order,
        order,
        deadline_ms,
        correlation_id=correlation_id,
        trace=trace_header(),
        context={"caller": caller},
    )


def _problem(error: KeyReused | Busy | RequestInDoubt | NotWritten) -> Problem:
    """Convert an error of the engine into an HTTP answer. Conflict is a NotWritten, so it comes first."""
    match error:
        case KeyReused():
            telemetry.count(OPERATION, {telemetry.KEY_REUSED: 1})
            return Problem(
                422,
                "key-reused",
                "Idempotency-Key is already used",
                "This key belongs to another order, which is unchanged. A new order needs a new key.",
                headers=KEY_HELP,
            )
        case Conflict() | Busy():
            return Problem(
                409,
                "in-flight",
                "A request is outstanding for this Idempotency-Key",
                "Another write to this order is in flight. This request changed nothing. Repeat it with the same key.",
                headers=KEY_HELP | RETRY_AFTER,
            )
        case RequestInDoubt():
            return Problem(
                504,
                "outcome-unknown",
                "Outcome unknown",
                "The order may have been created. Repeat the request with the same key: the order is created once.",
                headers=RETRY_AFTER,
            )
        case NotWritten():
            return Problem(
                503,
                "not-created",
                "Service unavailable",
                "The order was not created, and nothing was stored. Repeat the request with the same key.",
                headers=RETRY_AFTER,
            )
