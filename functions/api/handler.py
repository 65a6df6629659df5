"""API: orders come in and are shown.

Environment: ORDERS_TABLE, STEP_NEEDS_S, and what shared/idempotency/runtime.py reads.
"""

import re
import traceback
from typing import Any

from functions.api.body import order_of
from functions.api.caller import caller_of
from functions.api.http import Request, Response, request_of
from functions.api.keys import key_of, order_id_of
from functions.api.placing import place
from functions.api.problems import Problem
from functions.api.showing import show
from shared.idempotency import StepError
from shared.idempotency.telemetry import logger

# Shorter than what our events may carry, since it is a stranger's; otherwise the same characters.
_CORRELATION_ID = re.compile(r"[!-~]{1,128}")


def post_order(request: Request, remaining_ms: int) -> Response:
    """Place an order."""
    caller = caller_of(request)
    key = key_of(request.headers.get("idempotency-key"))
    order_id = order_id_of(caller, "POST", "/orders", key)
    logger.thread_safe_append_keys(order_id=order_id)
    return place(caller, order_id, order_of(request), _correlation_id(request), remaining_ms)


def get_order(request: Request, order_id: str) -> Response:
    """Show an order to the caller who placed it."""
    return show(caller_of(request), order_id)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one HTTP request."""
    request = request_of(event)
    correlation_id = _correlation_id(request)
    logger.thread_safe_append_keys(correlation_id=correlation_id)
    try:
        answer = _answer(request, context.get_remaining_time_in_millis())
        logger.info("request", method=request.method, status=answer.status)
        # Errors are heuristically cacheable as well: a 404 must not outlive the order's arrival.
        return answer.to_lambda(**{"X-Correlation-Id": correlation_id, "Cache-Control": "no-store"})
    finally:
        logger.thread_safe_clear_keys()


def _answer(request: Request, remaining_ms: int) -> Response:
    try:
        return _routed(request, remaining_ms)
    except Problem as problem:
        return _refused(problem)
    except Exception as error:  # damaged records included: the caller is told nothing, and the log no values
        logger.error(
            "failed",
            error=type(error).__name__,
            reason=str(error) if isinstance(error, StepError) else None,  # ours name no one, botocore's may
            stack=traceback.format_tb(error.__traceback__),
        )
        return _refused(
            Problem(
                500, "failed", "Internal server error", "The failure was noted. To repeat with the same key is safe."
            )
        )


def _routed(request: Request, remaining_ms: int) -> Response:
    """Raises Problem: 404 where there is no such path, 405 where there is, with another method."""
    match request.path.split("/"):
        case "", "orders":
            _only("POST", request)
            return post_order(request, remaining_ms)
        case "", "orders", order_id if order_id:
            _only("GET", request)
            return get_order(request, order_id)
    raise Problem(404, "no-route", "Not found", "There is POST /orders and GET /orders/{order_id}.")


def _only(method: str, request: Request) -> None:
    if request.method != method:
        raise Problem(405, "no-method", "Method not allowed", f"Here it is {method}.", headers={"Allow": method})


def _refused(problem: Problem) -> Response:
    logger.thread_safe_append_keys(outcome=problem.name)
    return problem.response


def _correlation_id(request: Request) -> str:
    given = request.headers.get("x-correlation-id", "")
    return given if _CORRELATION_ID.fullmatch(given) else request.id
