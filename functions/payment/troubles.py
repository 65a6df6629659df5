"""What went wrong with a request, in the core's words: is it known that nothing was charged?"""

import stripe

from shared.idempotency import NotDone, Permanent, StepError, Unknown

# Answered without being executed: https://docs.stripe.com/error-low-level
_NOT_EXECUTED = (
    stripe.AuthenticationError,
    stripe.PermissionError,
    stripe.RateLimitError,
    stripe.InvalidRequestError,
    stripe.IdempotencyError,
)


class Replayed(NotDone):
    """The provider keeps an earlier failure under this idempotency key and answers nothing else for a day."""


def trouble(what: str, error: stripe.StripeError, *, charges: bool) -> StepError:
    """What an error of the provider means. `charges`: the call is one that charges somebody if it is executed.

    409, 5xx, a timeout and a cut connection do not say whether it was: a charge is then Unknown. The text holds
    nothing but codes and ids, since the provider's own may quote what it was sent.
    """
    code = error.error.code if error.error else error.code
    known = (str(each) for each in (type(error).__name__, error.http_status, code, error.request_id) if each)
    text = f"{what}: {' '.join(known)}"
    if not charges and (_is_replayed(error) or isinstance(error, stripe.IdempotencyError)):
        return Replayed(text)
    if isinstance(error, stripe.InvalidRequestError) and (reason := _permanent(code, error.param)):
        return Permanent(reason, text)
    if not charges or isinstance(error, _NOT_EXECUTED):
        return NotDone(text)
    return Unknown(text)


def _permanent(code: str | None, param: str | None) -> str | None:
    """The refusals that no retry can change: https://docs.stripe.com/error-codes"""
    match code, param:
        case "amount_too_small" | "amount_too_large", _:
            return code
        case "resource_missing", "payment_method":
            return "payment_method_missing"
        case _, "currency":
            return "currency_not_supported"
    return None


def _is_replayed(error: stripe.StripeError) -> bool:
    """https://docs.stripe.com/error-low-level: replays say so in a header."""
    return (error.headers or {}).get("Idempotent-Replayed") == "true"
