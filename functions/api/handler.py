"""API: orders come in and are shown. One request at a time, as Lambda gives them: Powertools keeps it in a global.

Environment: ORDERS_TABLE, STEP_NEEDS_S, and what shared/idempotency/runtime.py reads.
"""

import re
import traceback
from typing import Any

from aws_lambda_powertools.event_handler.api_gateway import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.body import order_of
from functions.api.caller import caller_of
from functions.api.keys import key_of, order_id_of
from functions.api.placing import place
from functions.api.problems import Problem
from functions.api.showing import show
from shared.idempotency import StepError
from shared.telemetry import logger

# Shorter than what our events may carry, since it is a stranger's; otherwise the same characters.
_CORRELATION_ID = re.compile(r"[!-~]{1,128}")
_ALLOWED = {re.compile(r"/orders"): "POST", re.compile(r"/orders/[^/]+"): "GET"}

app = APIGatewayHttpResolver()


@app.post("/orders")
def post_order() -> Response[str]:
    """Place an order."""
    event = app.current_event
    caller = caller_of(event)
    key = key_of(event.headers.get("Idempotency-Key"))
    order_id = order_id_of(caller, "POST", "/orders", key)
    logger.thread_safe_append_keys(order_id=order_id)
    remaining_ms = app.lambda_context.get_remaining_time_in_millis()
    return place(caller, order_id, order_of(event), _correlation_id(event), remaining_ms)


@app.get("/orders/<order_id>")
def get_order(order_id: str) -> Response[str]:
    """Show an order to the caller who placed it."""
    return show(caller_of(app.current_event), order_id)


def refused(problem: Problem) -> Response[str]:
    """An answer that was thought of."""
    logger.thread_safe_append_keys(outcome=problem.name)
    return problem.response


def failed(error: Exception) -> Response[str]:
    """One that was not, damaged records included: the caller is told nothing, and the log no values."""
    logger.error(
        "failed",
        error=type(error).__name__,
        reason=str(error) if isinstance(error, StepError) else None,  # ours name no one; botocore's quote the request
        stack=traceback.format_tb(error.__traceback__),
    )
    return refused(
        Problem(500, "failed", "Internal server error", "The failure was noted. To repeat with the same key is safe.")
    )


def no_route(_: NotFoundError) -> Response[str]:
    """404, or 405 where the path is one of ours."""
    asked = app.current_event
    for path, method in _ALLOWED.items():
        if path.fullmatch(asked.path) and method != asked.http_method:
            return refused(
                Problem(405, "no-method", "Method not allowed", f"Here it is {method}.", headers={"Allow": method})
            )
    return refused(Problem(404, "no-route", "Not found", "There is POST /orders and GET /orders/{order_id}."))


app.exception_handler(Problem)(refused)
app.exception_handler(Exception)(failed)
app.not_found(no_route)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one HTTP request, payload format 2.0.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    correlation_id = _correlation_id(APIGatewayProxyEventV2(event))
    logger.thread_safe_append_keys(correlation_id=correlation_id)
    try:
        answer = app.resolve(event, context)
        # Errors are heuristically cacheable as well: a 404 must not outlive the order's arrival.
        answer["headers"] |= {"X-Correlation-Id": correlation_id, "Cache-Control": "no-store"}
        logger.info("request", method=event["requestContext"]["http"]["method"], status=answer["statusCode"])
        return answer
    finally:
        logger.thread_safe_clear_keys()


def _correlation_id(event: APIGatewayProxyEventV2) -> str:
    given = event.headers.get("X-Correlation-Id") or ""
    return given if _CORRELATION_ID.fullmatch(given) else event.request_context.request_id
