"""Payment sandbox: a Lambda function URL that speaks Stripe's wire protocol and keeps a ledger, the witness of demos.

Environment: LEDGER_TABLE; SLOW_S (seconds that `pm_sandbox_slow` takes); API_KEY_SECRET_ARN (optional, see auth.py);
ANSWER_S (optional: seconds that a request takes besides, as at a provider that asks card schemes and banks).
"""

import os
import re
import secrets
from collections.abc import Callable
from typing import Any

from functions.payment_sandbox import host, intents, keys, lists, params, wire
from functions.payment_sandbox.auth import authorise
from functions.payment_sandbox.errors import ApiError, Failed, Invalid
from functions.payment_sandbox.wire import Answer, Request
from shared.idempotency import logger


def prune_keys(request: Request) -> Answer:
    """Not Stripe's, hence under /v1/sandbox: forget all idempotency keys now. Call again while it `has_more`."""
    params.only(request.params)
    count, more = keys.prune(request.deadline)
    return Answer(200, {"object": "sandbox.pruned_idempotency_keys", "count": count, "has_more": more})


ROUTES: dict[str, Callable[..., Answer]] = {
    r"POST /v1/payment_intents": intents.create,
    r"GET /v1/payment_intents": lists.payment_intents,
    r"GET /v1/payment_intents/([^/]+)": intents.retrieve,
    r"POST /v1/payment_intents/([^/]+)/confirm": intents.confirm,
    r"POST /v1/payment_intents/([^/]+)/cancel": intents.cancel,
    r"GET /v1/charges": lists.charges,
    r"DELETE /v1/sandbox/idempotency_keys": prune_keys,
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
        # The caller can not tell whether anything was done, and is not told more.
        logger.exception("request failed")
        answer = Failed().answer
    _log(event, answer)
    return wire.response(answer, request_id)


def _answer(event: dict[str, Any], deadline: float) -> Answer:
    authorise(wire.authorization(event))
    try:
        request = wire.read(event, deadline)
    except ValueError as error:
        raise Invalid(f"Invalid request: {error}") from error
    if "ANSWER_S" in os.environ:
        host.wait(float(os.environ["ANSWER_S"]))
    for route, endpoint in ROUTES.items():
        match = re.fullmatch(route, f"{request.method} {request.path}")
        if match:
            return endpoint(request, *match.groups())
    raise Invalid(f"Unrecognized request URL ({request.method}: {request.path}).", 404)


def _log(event: dict[str, Any], answer: Answer) -> None:
    """One line a request: ids, states and codes; no metadata but the order's id, no description, no key."""
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
