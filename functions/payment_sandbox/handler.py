"""Payment sandbox: a Lambda function behind a URL that speaks Stripe's wire protocol and keeps a ledger of charges.

Environment variables:

    LEDGER_TABLE        the name of the ledger table
    SLOW_S              seconds by which `pm_sandbox_slow` delays its answer
    API_KEY_SECRET_ARN  optional: the secret with the API key. Without this variable, any key is accepted (`local`).
    ANSWER_S            optional: seconds that each request waits, like a provider that calls card networks and banks
"""

import hmac
import os
import re
import secrets
from collections.abc import Callable
from typing import Any

from functions.payment_sandbox import endpoints, host, wire
from functions.payment_sandbox.errors import ApiError, InternalError, InvalidRequest, Unauthorised
from functions.payment_sandbox.wire import Answer
from shared.idempotency import logger

ROUTES: dict[str, Callable[..., Answer]] = {
    r"POST /v1/payment_intents": endpoints.create_intent,
    r"GET /v1/payment_intents": endpoints.list_intents,
    r"GET /v1/payment_intents/([^/]+)": endpoints.retrieve_intent,
    r"POST /v1/payment_intents/([^/]+)/confirm": endpoints.confirm_intent,
    r"POST /v1/payment_intents/([^/]+)/cancel": endpoints.cancel_intent,
    r"GET /v1/charges": endpoints.list_charges,
    r"DELETE /v1/sandbox/idempotency_keys": endpoints.prune_keys,
}


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one HTTP request."""
    request_id = f"req_{secrets.token_hex(7)}"
    logger.append_keys(request_id=request_id)
    try:
        answer = _answer(event, host.now() + context.get_remaining_time_in_millis() / 1000)
    except ApiError as error:
        answer = error.answer
    except Exception:
        # The caller cannot know whether anything was done. The answer has no details.
        logger.exception("request failed")
        answer = InternalError().answer
    _log_request(event, answer)
    return wire.to_lambda(answer, request_id)


def _answer(event: dict[str, Any], deadline: float) -> Answer:
    _authorise(wire.authorization_of(event))
    try:
        request = wire.parse_request(event, deadline)
    except ValueError as error:
        raise InvalidRequest(f"Invalid request: {error}") from error
    if "ANSWER_S" in os.environ:
        host.wait(float(os.environ["ANSWER_S"]))
    for route, endpoint in ROUTES.items():
        match = re.fullmatch(route, f"{request.method} {request.path}")
        if match:
            return endpoint(request, *match.groups())
    raise InvalidRequest(f"Unrecognized request URL ({request.method}: {request.path}).", 404)


def _authorise(authorization: str) -> None:
    """Raise Unauthorised unless the header has the API key: https://docs.stripe.com/api/authentication"""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthorised("You did not provide an API key. Send it as a bearer token.")
    arn = os.environ.get("API_KEY_SECRET_ARN")
    if arn and not hmac.compare_digest(key.strip().encode(), host.secret(arn).encode()):
        raise Unauthorised("Invalid API key.")


def _log_request(event: dict[str, Any], answer: Answer) -> None:
    """Log ids, states and codes in one line. Descriptions, keys and metadata except the order id are not logged."""
    error = answer.body.get("error", {})
    intent = error.get("payment_intent") or answer.body
    logger.info(
        "request",
        method=event["requestContext"]["http"]["method"],
        path=event["rawPath"],
        status=answer.status,
        replayed=answer.replayed,
        error_code=error.get("code"),
        object_id=intent.get("id"),
        object_status=intent.get("status"),
        order_id=intent.get("metadata", {}).get("order_id"),
    )
