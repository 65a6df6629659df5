"""What each error of the provider means for the order: it is declined, parked under a name, or tried again.

`REFUSALS` lists the answers with which the provider says that it did not execute the call. Any other error (409, 5xx, a
timeout, a closed connection) does not show whether the provider executed the call.
https://docs.stripe.com/error-low-level, https://docs.stripe.com/error-handling
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from stripe import (
    AuthenticationError,
    CardError,
    IdempotencyError,
    InvalidRequestError,
    PermissionError,
    RateLimitError,
    StripeError,
)

from functions.payment.intent import Intent, code_of
from shared.idempotency import EffectWithoutState, NotDone, Permanent, StepError, Unknown
from shared.orders import Order


class Declined(Permanent):
    """The provider refuses the order because of what the customer sent. The order ends as declined."""


class StoredFailure(NotDone):
    """The provider stores an earlier failure under this idempotency key and returns only that for a day."""


class UnknownIntent(NotDone):
    """The provider does not know the intent that the call names."""


class End(Enum):
    """What happens to an order whose call was refused."""

    DECLINED = "declined"  # provably the customer's fault
    PARKED = "parked"  # a person decides, because the operator may have caused it
    RETRIED = "retried"  # the next attempt may succeed


CODES = "https://docs.stripe.com/error-codes"
TYPES = "https://docs.stripe.com/error-handling"
KEYS = "https://docs.stripe.com/keys"
ANY = "*"
UNUSABLE = "payment_method_unusable"
WRONG_MODE = "wrong_mode"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row of REFUSALS. `code` and `param`: the answer's; None matches an answer without one, ANY matches each.

    `reason`: of the decline, or of the parked message. `another_key`: the same call may succeed with another API key.
    `patience_s`: for so many seconds after the order was placed, the call is tried again before the message is parked.
    """

    error: type[StripeError]
    code: str | None
    param: str | None
    end: End
    reason: str
    source: str
    another_key: bool = False
    patience_s: int = 0

    def matches(self, error: StripeError, code: str | None, param: str | None) -> bool:
        """Return whether this row describes the answer."""
        return isinstance(error, self.error) and self.code in (ANY, code) and self.param in (ANY, param)


# All orders meet a wrong key at the same time. For an hour they wait for the right key, and nobody must redrive them.
KEY_PATIENCE_S = 3600

# The first row that matches counts. The last row parks what Stripe may add: a code that is not listed is not guessed.
REFUSALS: Sequence[Refusal] = (
    Refusal(RateLimitError, ANY, ANY, End.RETRIED, "rate_limit", "https://docs.stripe.com/rate-limits"),
    # Create then uses another key (provider.py). Each confirmation has a key of its own.
    Refusal(IdempotencyError, ANY, ANY, End.RETRIED, "idempotency_error", TYPES),
    Refusal(
        AuthenticationError, ANY, ANY, End.PARKED, "api_key_refused", KEYS, another_key=True, patience_s=KEY_PATIENCE_S
    ),
    Refusal(PermissionError, ANY, ANY, End.PARKED, "permission_denied", KEYS, another_key=True),
    Refusal(CardError, ANY, ANY, End.DECLINED, "card_declined", "https://docs.stripe.com/declines/codes"),
    Refusal(InvalidRequestError, "amount_too_small", ANY, End.DECLINED, "amount_too_small", CODES),
    Refusal(InvalidRequestError, "amount_too_large", ANY, End.DECLINED, "amount_too_large", CODES),
    # The method is in the wrong state, of the wrong type, or of another currency.
    Refusal(InvalidRequestError, "payment_method_unexpected_state", ANY, End.DECLINED, UNUSABLE, CODES),
    Refusal(InvalidRequestError, "payment_intent_incompatible_payment_method", ANY, End.DECLINED, UNUSABLE, CODES),
    Refusal(InvalidRequestError, "payment_method_currency_mismatch", ANY, End.DECLINED, UNUSABLE, CODES),
    # The method was used before, or belongs to a customer: https://docs.stripe.com/api/payment_methods/attach
    Refusal(InvalidRequestError, None, "payment_method", End.DECLINED, UNUSABLE, TYPES),
    # The key of another account looks the same as a method that does not exist.
    Refusal(
        InvalidRequestError,
        "resource_missing",
        "payment_method",
        End.PARKED,
        "payment_method_missing",
        CODES,
        another_key=True,
    ),
    Refusal(
        InvalidRequestError, ANY, "currency", End.PARKED, "currency_not_supported", "https://docs.stripe.com/currencies"
    ),
    Refusal(InvalidRequestError, ANY, ANY, End.PARKED, "refused_by_provider", TYPES),
)


def refusal_of(error: StripeError) -> Refusal | None:
    """Return the row of REFUSALS for an error, or None if the error does not show whether the call was executed."""
    code, param = _code(error), error.error.param if error.error else None
    return next((refusal for refusal in REFUSALS if refusal.matches(error, code, param)), None)


def to_step_error(what: str, error: StripeError, *, charges: bool, waited_s: float) -> StepError:
    """Convert an error of the call `what`. The text has codes and ids only: the provider's text may quote the request.

    `charges`: the call charges somebody if the provider executes it. `waited_s`: seconds since the order was placed.
    """
    code = _code(error)
    known = (str(each) for each in (type(error).__name__, error.http_status, code, error.request_id) if each)
    text = f"{what}: {' '.join(known)}"
    if not charges and (_is_stored(error) or isinstance(error, IdempotencyError)):
        return StoredFailure(text)
    refusal = refusal_of(error)
    if what != "create" and code == "resource_missing" and refusal and refusal.reason != "payment_method_missing":
        return UnknownIntent(text)
    if refusal is None:
        return Unknown(text) if charges else NotDone(text)
    if refusal.end is End.RETRIED or (refusal.end is End.PARKED and waited_s < refusal.patience_s):
        return NotDone(text)
    if refusal.end is End.PARKED:
        return Permanent(refusal.reason, text)
    return Declined(_decline_code(error) or refusal.reason, text)


def mismatch(what: str, intent: Intent, order: Order, intent_id: str | None, livemode: bool) -> StepError | None:
    """Return the error for an answer that does not fit the order, or None if the answer fits.

    `intent_id`: the intent that the call named; None for create. `livemode`: the mode in which this stage charges.
    A succeeded intent fits only if a charge received the total. Create charges no card, so the status in its answer
    proves nothing and is not compared.
    """
    same_intent = intent_id in (None, intent.id)
    same_facts = (intent.order_id, intent.amount, intent.currency) == (order.order_id, order.total, order.currency)
    same_mode = intent.livemode is livemode
    succeeded = intent_id is not None and intent.status == "succeeded"
    received = intent.charge_id is not None and intent.received == order.total
    if same_intent and same_facts and same_mode and (received or not succeeded):
        return None
    text = (
        f"{what} {intent_id or 'of a new intent'}: the answer is {intent.id} of {intent.order_id or 'no order':.80}, "
        f"{intent.amount} {intent.currency or 'of no currency':.3}, {intent.status:.40}, received {intent.received}, "
        f"livemode {intent.livemode}"
    )
    if what == "confirm" or (what == "cancel" and intent.status == "succeeded"):
        return Unknown(text)  # the intent may have been charged: the next attempt retrieves it
    if what == "cancel":
        return NotDone(text)  # the next attempt retrieves the intent, and cancels it if it is still open
    if same_intent and same_facts and not same_mode:
        return Permanent(WRONG_MODE, text)
    if same_intent and succeeded:
        return EffectWithoutState(text)
    return Permanent("intent_mismatch", text)


def _code(error: StripeError) -> str | None:
    return (error.error.code if error.error else None) or error.code


def _decline_code(error: StripeError) -> str | None:
    """Return the bank's reason of a card error, such as `insufficient_funds`, or Stripe's, such as `expired_card`."""
    if not isinstance(error, CardError):
        return None
    return code_of(error.error.decline_code if error.error else None) or code_of(_code(error))


def _is_stored(error: StripeError) -> bool:
    """Return whether the answer is a replay, by its header. https://docs.stripe.com/error-low-level"""
    return (error.headers or {}).get("Idempotent-Replayed") == "true"
