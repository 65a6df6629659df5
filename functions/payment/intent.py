"""The parts of a payment intent that a payment needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import stripe

from shared.idempotency import Unknown

# Decline reasons for intents to which the provider gives none.
_REASONS = {
    "requires_payment_method": "card_declined",
    "requires_action": "authentication_required",
    "canceled": "canceled",
}


_ID = re.compile(r"[A-Za-z0-9_]{1,255}", re.ASCII)
_CODE = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)


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
    reason: str  # of an intent that is not paid
    livemode: bool | None = None  # whether the intent moves real money. https://docs.stripe.com/test-mode


def parse_intent(found: stripe.PaymentIntent) -> Intent:
    """Parse an answer. Raises Unknown if the answer is not a payment intent, such as the page of a proxy."""
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
        charge_id=_match(_ID, fields.get("latest_charge")),
        reason=code_of(failure.get("decline_code")) or code_of(failure.get("code")) or _REASONS.get(status, ""),
        livemode=_flag(fields.get("livemode")),
    )


def code_of(value: object) -> str | None:
    """Return a code of the provider, or None if the value is not a code. Row and event contain the code."""
    return _match(_CODE, value)


def _match(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    """Return a whole number. A bool is an int in Python, and a float may be NaN: both are refused."""
    return value if type(value) is int else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def intent_in_error(error: stripe.StripeError) -> Intent | None:
    """Return the intent in an error that answers the call: a declined card, or a state that forbids the call.

    Returns None for any other error: an unconfirmed intent does not explain what was refused.
    """
    detail = error.error
    if detail is None or detail.payment_intent is None:
        return None
    intent = parse_intent(detail.payment_intent)
    waits = intent.status == "requires_confirmation"
    if isinstance(error, stripe.CardError):
        reason = code_of(detail.decline_code) or code_of(detail.code) or intent.reason
        return replace(intent, status="requires_payment_method" if waits else intent.status, reason=reason)
    return None if waits else intent
