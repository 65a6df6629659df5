"""Payment methods: one card pays, three cards decline, one is refused at create, and four pay after one fault.

Those without `sandbox` in their names are test cards of Stripe: https://docs.stripe.com/testing#cards
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
    """A payment method. A card with a decline code declines every charge. A method that is not usable is refused."""

    decline_code: str | None = None
    message: str | None = None
    fault: Fault | None = None
    usable: bool = True


CARDS = {
    "pm_card_visa": Card(),
    "pm_card_chargeDeclined": Card("generic_decline", "Your card was declined."),
    "pm_card_chargeDeclinedInsufficientFunds": Card("insufficient_funds", "Your card has insufficient funds."),
    "pm_card_chargeDeclinedStolenCard": Card("stolen_card", "Your card was declined."),
    "pm_sandbox_unusable": Card(usable=False),
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
    """Return the payment method that the request names, or None.

    Raises NoSuchObject for an unknown name, InvalidRequest for a method that cannot be used. Like Stripe, the refusal
    of a method that was used before has no code.
    """
    name = params.get("payment_method")
    if name is not None and name not in CARDS:
        raise NoSuchObject("PaymentMethod", name, "payment_method")
    if name is not None and not CARDS[name].usable:
        message = "The provided PaymentMethod was previously used without a customer, and cannot be used again."
        raise InvalidRequest(message, param="payment_method")
    return name
