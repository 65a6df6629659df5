"""Stripe's objects as JSON.

https://docs.stripe.com/api/payment_intents/object, https://docs.stripe.com/api/charges/object
"""

import secrets
from typing import Any

from functions.payment_sandbox import host
from functions.payment_sandbox.cards import CARDS

JsonObject = dict[str, Any]


def new_id(prefix: str) -> str:
    """Make an id that sorts by creation time (microseconds in hex of fixed width), so that lists need no index."""
    return f"{prefix}_{int(host.now() * 1_000_000):014x}{secrets.token_hex(5)}"


def new_payment_intent(
    amount: int, currency: str, method: str | None, description: str | None, metadata: dict[str, str]
) -> JsonObject:
    """Return a new intent, not confirmed. `amount` is in minor units."""
    return {
        "id": new_id("pi"),
        "object": "payment_intent",
        "amount": amount,
        "amount_capturable": 0,
        "amount_received": 0,
        "canceled_at": None,
        "cancellation_reason": None,
        "capture_method": "automatic",
        "client_secret": None,  # no browser confirms an intent of the sandbox
        "confirmation_method": "automatic",
        "created": int(host.now()),
        "currency": currency,
        "customer": None,
        "description": description,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "metadata": metadata,
        "next_action": None,
        "payment_method": method,
        "payment_method_types": ["card"],
        "processing": None,
        "status": "requires_confirmation" if method else "requires_payment_method",
    }


def new_charge(intent: JsonObject, method: str) -> JsonObject:
    """Return the charge that a confirmation of this intent with this payment method makes."""
    card = CARDS[method]
    paid = card.decline_code is None
    return {
        "id": new_id("ch"),
        "object": "charge",
        "amount": intent["amount"],
        "amount_captured": intent["amount"] if paid else 0,
        "amount_refunded": 0,
        "captured": paid,
        "created": int(host.now()),
        "currency": intent["currency"],
        "description": intent["description"],
        "disputed": False,
        "failure_code": None if paid else "card_declined",
        "failure_message": card.message,
        "livemode": False,
        "metadata": intent["metadata"],
        "outcome": {
            "network_status": "approved_by_network" if paid else "declined_by_network",
            "reason": card.decline_code,
            "seller_message": "Payment complete." if paid else "The bank declined the payment.",
            "type": "authorized" if paid else "issuer_declined",
        },
        "paid": paid,
        "payment_intent": intent["id"],
        "payment_method": method,
        "refunded": False,
        "status": "succeeded" if paid else "failed",
    }


def apply_charge(intent: JsonObject, charge: JsonObject) -> JsonObject:
    """Return the intent after a charge. Like Stripe, a decline removes the payment method from the intent."""
    if charge["paid"]:
        return intent | {
            "status": "succeeded",
            "amount_received": charge["amount"],
            "last_payment_error": None,
            "latest_charge": charge["id"],
            "payment_method": charge["payment_method"],
        }
    return intent | {
        "status": "requires_payment_method",
        "last_payment_error": card_error_of(charge),
        "latest_charge": charge["id"],
        "payment_method": None,
    }


def card_error_of(charge: JsonObject) -> JsonObject:
    """Return the card error of a failed charge."""
    return {
        "type": "card_error",
        "charge": charge["id"],
        "code": charge["failure_code"],
        "decline_code": charge["outcome"]["reason"],
        "message": charge["failure_message"],
        "payment_method": {"id": charge["payment_method"], "object": "payment_method", "type": "card"},
    }


def apply_cancellation(intent: JsonObject, reason: str | None) -> JsonObject:
    """Return the intent after its cancellation."""
    return intent | {"status": "canceled", "canceled_at": int(host.now()), "cancellation_reason": reason}
