"""Answers that are not a success, in Stripe's form: https://docs.stripe.com/api/errors"""

from typing import Any

from functions.payment_sandbox.wire import Answer


class ApiError(Exception):
    """An answer other than success. `stored`: it is the result of the request, kept and replayed under its key."""

    stored = False

    def __init__(self, status: int, kind: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.answer = Answer(status, {"error": {"type": kind, "message": message, **fields}})


class Invalid(ApiError):
    """The request can not be served as it is: 400 unless said otherwise."""

    def __init__(self, message: str, status: int = 400, **fields: Any) -> None:
        super().__init__(status, "invalid_request_error", message, **fields)


class Missing(Invalid):
    """No object has this id: 404 if the URL names it, 400 if a parameter does, as at Stripe."""

    def __init__(self, kind: str, id_: str, param: str, status: int = 400) -> None:
        super().__init__(f"No such {kind}: '{id_}'", status, code="resource_missing", param=param)


class UnexpectedState(Invalid):
    """The intent's state forbids it. The endpoint was executing by then, so the answer is stored, as at Stripe."""

    stored = True

    def __init__(self, message: str, intent: dict[str, Any]) -> None:
        super().__init__(message, code="payment_intent_unexpected_state", payment_intent=intent)


class Unauthorised(Invalid):
    """No API key, or a wrong one. The key is not repeated, not even in part."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 401)


class KeyInUse(Invalid):
    """A request with this idempotency key is executing; or it has taken over from this one, which did nothing."""

    def __init__(self) -> None:
        super().__init__(
            "Another request with this idempotency key is in progress. Please try again later.",
            409,
            code="idempotency_key_in_use",
        )


class KeyReused(ApiError):
    """The idempotency key belongs to another request."""

    def __init__(self, what: str) -> None:
        message = f"Keys for idempotent requests can only be used with the same {what} as the first time."
        super().__init__(400, "idempotency_error", message)


class Contended(Invalid):
    """Somebody else changed the object meanwhile, and again on each try. Stripe says so with the same code.

    https://docs.stripe.com/rate-limits#object-lock-timeouts
    """

    def __init__(self) -> None:
        message = "Another request is accessing this object right now. Please try again later."
        super().__init__(message, 429, code="lock_timeout")


class Failed(ApiError):
    """Something went wrong on the provider's side: of no use to tell whether anything was done."""

    def __init__(self) -> None:
        super().__init__(500, "api_error", "An unknown error occurred.")
