"""Converts the provider's errors into errors of the engine: is it known that nothing was charged?"""

import stripe

from functions.payment.intent import Intent
from shared.idempotency import EffectWithoutState, NotDone, Permanent, StepError, Unknown
from shared.orders import OrderPlaced

# Answers to requests that were not executed: https://docs.stripe.com/error-low-level
_NOT_EXECUTED = (
    stripe.AuthenticationError,
    stripe.PermissionError,
    stripe.RateLimitError,
    stripe.InvalidRequestError,
    stripe.IdempotencyError,
)


class Replayed(NotDone):
    """The provider stores an earlier failure under this idempotency key and returns only that for a day."""


class Missing(NotDone):
    """The provider does not know the intent that the call names."""


def to_step_error(what: str, error: stripe.StripeError, *, charges: bool) -> StepError:
    """Convert an error. `charges`: the call charges somebody if the provider executes it.

    409, 5xx, a timeout and a closed connection do not show whether the provider executed the call. The error of a
    charging call is then Unknown. The text contains codes and ids only, because the provider's own text may quote the
    request.
    """
    code = error.error.code if error.error else error.code
    known = (str(each) for each in (type(error).__name__, error.http_status, code, error.request_id) if each)
    text = f"{what}: {' '.join(known)}"
    if not charges and (_is_replayed(error) or isinstance(error, stripe.IdempotencyError)):
        return Replayed(text)
    if isinstance(error, stripe.InvalidRequestError) and (reason := _permanent(code, error.param)):
        return Permanent(reason, text)
    if what != "create" and code == "resource_missing" and error.http_status == 404:
        return Missing(text)
    if not charges or isinstance(error, _NOT_EXECUTED):
        return NotDone(text)
    return Unknown(text)


def mismatch(what: str, intent: Intent, order: OrderPlaced, intent_id: str | None) -> StepError | None:
    """Return the error for an answer that does not fit the order, or None if the answer fits.

    `intent_id`: the intent that the call named; None for create. A succeeded intent fits only if a charge received the
    total. Create charges no card, so the status in its answer proves nothing and is not compared.
    """
    same_intent = intent_id in (None, intent.id)
    same_facts = (intent.order_id, intent.amount, intent.currency) == (order.order_id, order.total, order.currency)
    succeeded = intent_id is not None and intent.status == "succeeded"
    received = intent.charge_id is not None and intent.received == order.total
    if same_intent and same_facts and (received or not succeeded):
        return None
    text = (
        f"{what} {intent_id or 'of a new intent'}: the answer is {intent.id} of {intent.order_id or 'no order':.80}, "
        f"{intent.amount} {intent.currency or 'of no currency':.3}, {intent.status:.40}, received {intent.received}"
    )
    if what == "confirm":
        return Unknown(text)  # the intent may have been charged: the next attempt retrieves it
    if what == "cancel":
        return NotDone(text)  # the next attempt retrieves the intent, and cancels it if it is still open
    if same_intent and succeeded:
        return EffectWithoutState(text)
    return Permanent("intent_mismatch", text)


def _permanent(code: str | None, param: str | None) -> str | None:
    """Return the reason of a refusal that no retry can change. https://docs.stripe.com/error-codes"""
    match code, param:
        case "amount_too_small" | "amount_too_large", _:
            return code
        case "resource_missing", "payment_method":
            return "payment_method_missing"
        case _, "currency":
            return "currency_not_supported"
    return None


def _is_replayed(error: stripe.StripeError) -> bool:
    """Return whether the answer is a replay, by its header. https://docs.stripe.com/error-low-level"""
    return (error.headers or {}).get("Idempotent-Replayed") == "true"
