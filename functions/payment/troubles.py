"""What went wrong with a request, in the core's words: is it known that nothing was charged?"""

import stripe

from functions.payment.intent import Intent
from shared.idempotency import EffectWithoutState, NotDone, Permanent, StepError, Unknown
from shared.orders.events import OrderPlaced

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


class Missing(NotDone):
    """The provider does not know the intent that the call names."""


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
    if what != "create" and code == "resource_missing" and error.http_status == 404:
        return Missing(text)
    if not charges or isinstance(error, _NOT_EXECUTED):
        return NotDone(text)
    return Unknown(text)


def mismatch(what: str, intent: Intent, order: OrderPlaced, intent_id: str | None) -> StepError | None:
    """The error for an answer that does not fit the order; None if the answer fits.

    `intent_id`: the intent that the call named; None for create. A succeeded intent fits only if a charge received the
    total. Create charges nobody, so the status in its answer proves nothing and is not compared.
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
