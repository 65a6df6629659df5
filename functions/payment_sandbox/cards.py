"""Payment methods: one card pays, two cards decline, and four cards pay after one fault.

The first three are test cards of Stripe: https://docs.stripe.com/testing#cards
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from functions.payment_sandbox.errors import InvalidRequest, NoSuchObject


class Fault(StrEnum):
    """Faults of the first confirmation of an order. The second confirmation of the order has no fault."""

    SLOW = "slow"  # the card is charged and the answer is late
    ERROR_BEFORE = "error_before"  # the answer is 500 and nothing is charged
    ERROR_AFTER = "error_after"  # the answer is 500 and the card is charged
    DROP = "drop"  # the card is charged and the answer is lost


@dataclass(frozen=True)
class Card:
    """A payment method. A card with a decline code declines every charge."""

    decline_code: str | None = None
    message: str | None = None
    fault: Fault | None = None


CARDS = {
    "pm_card_visa": Card(),
    "pm_card_chargeDeclined": Card("generic_decline", "Your card was declined."),
    "pm_card_chargeDeclinedInsufficientFunds": Card("insufficient_funds", "Your card has insufficient funds."),
    **{f"pm_sandbox_{fault}": Card(fault=fault) for fault in Fault},
}


def require_card_types(params: Mapping[str, str]) -> None:
    """Raise InvalidRequest if the request allows a type of payment method other than card.

    Stripe has a current and an older parameter for these types. Both are checked.
    """
    for name, value in params.items():
        if name.startswith(("allowed_payment_method_types", "payment_method_types")) and value != "card":
            raise InvalidRequest(f"The payment method type {value!r} is invalid: only 'card' is served.", param=name)


def payment_method_of(params: Mapping[str, str]) -> str | None:
    """Return the payment method that the request names, or None. Raises NoSuchObject for an unknown name."""
    name = params.get("payment_method")
    if name is not None and name not in CARDS:
        raise NoSuchObject("PaymentMethod", name, "payment_method")
    return name
