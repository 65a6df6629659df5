"""The payment intent, as far as a payment needs it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import stripe

from shared.idempotency import Unknown

# Where the provider names no reason.
_REASONS = {
    "requires_payment_method": "card_declined",
    "requires_action": "authentication_required",
    "canceled": "canceled",
}


_ID = re.compile(r"[A-Za-z0-9_]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Intent:
    """A payment intent. https://docs.stripe.com/api/payment_intents/object

    `amount` and `received` are in minor units. A fact is None if the answer lacks it or has it in another type.
    """

    id: str
    status: str
    amount: int | None
    received: int | None  # what was really charged
    currency: str | None  # upper case, as in the pipeline's events
    order_id: str | None
    charge_id: str | None  # of the last charge, paid or not
    reason: str  # why it is not paid, where that is so


def read(found: stripe.PaymentIntent) -> Intent:
    """Read the intent in an answer. Raises Unknown if the answer is not a payment intent, but a proxy's own page."""
    fields: Mapping[str, Any] = found.to_dict()
    id_, status, currency = (_text(fields.get(name)) for name in ("id", "status", "currency"))
    if fields.get("object") != "payment_intent" or not _ID.fullmatch(id_ or "") or not status:
        raise Unknown("the provider's answer is not a payment intent")
    metadata, failure = _fields(fields.get("metadata")), _fields(fields.get("last_payment_error"))
    return Intent(
        id=id_ or "",
        status=status,
        amount=_whole(fields.get("amount")),
        received=_whole(fields.get("amount_received")),
        currency=currency.upper() if currency else None,
        order_id=_text(metadata.get("order_id")),
        charge_id=_text(fields.get("latest_charge")),
        reason=_text(failure.get("decline_code")) or _text(failure.get("code")) or _REASONS.get(status, ""),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    """Not a bool, which is an int to Python, and not a float, which may be NaN."""
    return value if type(value) is int else None


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


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
        reason = _text(detail.decline_code) or _text(detail.code) or intent.reason
        return replace(intent, status="requires_payment_method" if waits else intent.status, reason=reason)
    return None if waits else intent
