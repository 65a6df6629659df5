"""The payment intent, as far as a payment needs it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import stripe

# Where the provider names no reason.
_REASONS = {
    "requires_payment_method": "card_declined",
    "requires_action": "authentication_required",
    "canceled": "canceled",
}


@dataclass(frozen=True, slots=True)
class Intent:
    """A payment intent; `amount` in minor units. https://docs.stripe.com/api/payment_intents/object"""

    id: str
    status: str
    amount: int
    currency: str  # upper case, as our events have it
    order_id: str | None
    charge_id: str | None  # of the last charge, paid or not
    reason: str  # why it is not paid, where that is so


def read(found: stripe.PaymentIntent) -> Intent:
    """From the SDK's spelling."""
    fields: Mapping[str, Any] = found.to_dict()
    failure = fields.get("last_payment_error") or {}
    return Intent(
        id=fields["id"],
        status=fields["status"],
        amount=fields["amount"],
        currency=fields["currency"].upper(),
        order_id=(fields.get("metadata") or {}).get("order_id"),
        charge_id=fields.get("latest_charge"),
        reason=failure.get("decline_code") or failure.get("code") or _REASONS.get(fields["status"], ""),
    )


def read_from(error: stripe.StripeError) -> Intent | None:
    """The intent in an error that is an answer: its card was declined, or its state forbids the call.

    None for any other error: an intent that only waits to be confirmed says nothing of what was refused.
    """
    detail = error.error
    if detail is None or detail.payment_intent is None:
        return None
    intent = read(detail.payment_intent)
    waits = intent.status == "requires_confirmation"
    if isinstance(error, stripe.CardError):
        reason = detail.decline_code or detail.code or intent.reason
        return replace(intent, status="requires_payment_method" if waits else intent.status, reason=reason)
    return None if waits else intent
