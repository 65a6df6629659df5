"""Error answers in Stripe's form: https://docs.stripe.com/api/errors"""

from typing import Any

from functions.payment_sandbox.wire import Answer


class ApiError(Exception):
    """Base class: an answer that is not a success.

    `stored`: True if the endpoint had begun to execute. The answer is then stored and replayed under the request's key.
    """

    stored = False

    def __init__(self, status: int, kind: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.answer = Answer(status, {"error": {"type": kind, "message": message, **fields}})


class InvalidRequest(ApiError):
    """The request is refused. The default status is 400."""

    def __init__(self, message: str, status: int = 400, **fields: Any) -> None:
        super().__init__(status, "invalid_request_error", message, **fields)


class NoSuchObject(InvalidRequest):
    """No object has this id. Like Stripe, 404 for an id in the URL and 400 for an id in a parameter."""

    def __init__(self, kind: str, id_: str, param: str, status: int = 400) -> None:
        super().__init__(f"No such {kind}: '{id_}'", status, code="resource_missing", param=param)


class UnexpectedState(InvalidRequest):
    """The status of the intent forbids the request. Like Stripe, the answer is stored: the endpoint had begun."""

    stored = True

    def __init__(self, message: str, intent: dict[str, Any]) -> None:
        super().__init__(message, code="payment_intent_unexpected_state", payment_intent=intent)


class Unauthorised(InvalidRequest):
    """The API key is missing or wrong. The answer contains no part of the key."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 401)


class KeyInUse(InvalidRequest):
    """Another request with this idempotency key is executing. This request did nothing."""

    def __init__(self) -> None:
        super().__init__(
            "Another request with this idempotency key is in progress. Please try again later.",
            409,
            code="idempotency_key_in_use",
        )


class KeyOfOtherRequest(ApiError):
    """The idempotency key belongs to a request with another endpoint or other parameters."""

    def __init__(self, what: str) -> None:
        message = f"Keys for idempotent requests can only be used with the same {what} as the first time."
        super().__init__(400, "idempotency_error", message)


class LockTimeout(InvalidRequest):
    """Another request changed the object between read and write, in every attempt. The code is Stripe's.

    https://docs.stripe.com/rate-limits#object-lock-timeouts
    """

    def __init__(self) -> None:
        message = "Another request is accessing this object right now. Please try again later."
        super().__init__(message, 429, code="lock_timeout")


class InternalError(ApiError):
    """A failure of the provider. The answer does not say whether anything was done."""

    def __init__(self) -> None:
        super().__init__(500, "api_error", "An unknown error occurred.")
