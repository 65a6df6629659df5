"""Payment methods: two of Stripe's test cards that decline, one that pays, and four that pay but misbehave first.

https://docs.stripe.com/testing#cards
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from functions.payment_sandbox.errors import Invalid, Missing


class Fault(StrEnum):
    """What goes wrong on the first confirmation of an order. Each order still ends paid once."""

    SLOW = "slow"  # charged; the answer comes late
    ERROR_BEFORE = "error_before"  # 500, nothing charged
    ERROR_AFTER = "error_after"  # 500, charged
    DROP = "drop"  # charged; the answer is lost


@dataclass(frozen=True)
class Card:
    """A payment method: it pays unless it has a decline code."""

    decline_code: str | None = None
    message: str | None = None
    fault: Fault | None = None


CARDS = {
    "pm_card_visa": Card(),
    "pm_card_chargeDeclined": Card("generic_decline", "Your card was declined."),
    "pm_card_chargeDeclinedInsufficientFunds": Card("insufficient_funds", "Your card has insufficient funds."),
    **{f"pm_sandbox_{fault}": Card(fault=fault) for fault in Fault},
}


def only_cards(params: Mapping[str, str]) -> None:
    """Raise Invalid if a method type other than card is asked for, by the present or the older parameter."""
    for name, value in params.items():
        if name.startswith(("allowed_payment_method_types", "payment_method_types")) and value != "card":
            raise Invalid(f"The payment method type {value!r} is invalid: only 'card' is served.", param=name)


def chosen(params: Mapping[str, str]) -> str | None:
    """The payment method named in a request, if any. Raises Missing if there is none of that name."""
    name = params.get("payment_method")
    if name is not None and name not in CARDS:
        raise Missing("PaymentMethod", name, "payment_method")
    return name
