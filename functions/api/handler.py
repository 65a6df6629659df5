"""The orders API: POST /orders creates an order, GET /orders/{order_id} returns it.

Environment: ORDERS_TABLE, and the variables that shared/idempotency reads.
"""

import re
import traceback
from typing import Any

from functions.api.create_order import create_order
from functions.api.get_order import get_order
from functions.api.request import Problem, Request, Response, parse_request
from shared.idempotency import StepError, logger

# A subset of what events may carry, and shorter, because a stranger sends it.
_CORRELATION_ID = re.compile(r"[!-~]{1,128}")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one HTTP request."""
    request = parse_request(event)
    sent = request.headers.get("x-correlation-id", "")
    correlation_id = sent if _CORRELATION_ID.fullmatch(sent) else request.id
    logger.thread_safe_append_keys(correlation_id=correlation_id)
    try:
        answer = _answer(request, correlation_id, context.get_remaining_time_in_millis())
        logger.info("request", method=request.method, status=answer.status)
        # Errors are cacheable by default too: a cached 404 would hide an order that arrives later.
        return answer.to_lambda(**{"X-Correlation-Id": correlation_id, "Cache-Control": "no-store"})
    finally:
        logger.thread_safe_clear_keys()


def _answer(request: Request, correlation_id: str, remaining_ms: int) -> Response:
    try:
        return _route(request, correlation_id, remaining_ms)
    except Problem as error:
        problem = error
    except Exception as error:  # damaged records, too: no detail for the caller, no values in the log
        logger.error(
            "failed",
            error=type(error).__name__,
            reason=str(error) if isinstance(error, StepError) else None,  # botocore's text may name a person
            stack=traceback.format_tb(error.__traceback__),
        )
        detail = "The failure was logged. Repeating the request with the same key is safe."
        problem = Problem(500, "failed", "Internal server error", detail)
    logger.thread_safe_append_keys(outcome=problem.name)
    return problem.response


def _route(request: Request, correlation_id: str, remaining_ms: int) -> Response:
    """Call the route that API Gateway matched. Raises Problem for any other route, which only a deploy can add."""
    match request.route:
        case "POST /orders":
            return create_order(request, correlation_id, remaining_ms)
        case "GET /orders/{id}":
            return get_order(request, request.parameters.get("id", ""), remaining_ms)
    raise Problem(404, "no-route", "Not found", "The routes are POST /orders and GET /orders/{id}.")
