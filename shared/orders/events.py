"""The events of an order. The limits follow from the next hop: a charge, an email, a log line, an S3 key."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from shared.idempotency import Event

from .money import DECIMALS, MAX_AMOUNT, largest_charge

SOURCE = "effectively-once/orders"

# Part of S3 keys, provider metadata, email subjects and log lines.
OrderId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")]
Sku = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")]
# Part of an email: any script, but no control characters, no line or paragraph separators, and none that SQS refuses.
# `max_length` bounds the normalisation to NFC.
PersonName = Annotated[
    str,
    Meta(max_length=200, pattern="^[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]{1,200}\\Z"),
]
# One plain address, never a list. The pattern of HTML without stray dots, in ASCII as SES requires:
# https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address
MailAddress = Annotated[
    str,
    Meta(
        max_length=254,
        pattern=r"^(?=[^@]{1,64}@)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
        r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+\Z",
    ),
]
Amount = Annotated[int, Meta(ge=1, le=MAX_AMOUNT)]
# The provider's id and reason. Empty if the order was settled without an intent, or the provider gave no reason.
IntentId = Annotated[str, Meta(pattern=r"^[!-~]{0,255}\Z")]
Reason = Annotated[str, Meta(pattern=r"^[ -~]{0,255}\Z")]
PaymentMethod = Annotated[str, Meta(pattern=r"^pm_[A-Za-z0-9_]{1,64}\Z")]
Currency = Annotated[str, Meta(pattern=r"^[A-Z]{3}\Z")]

# The provider asks not to disclose these reasons to a customer: https://docs.stripe.com/declines/codes
_UNDISCLOSED = frozenset({"fraudulent", "lost_card", "lost_or_stolen_card", "merchant_blacklist", "stolen_card"})


def disclosed(decline_reason: str) -> str:
    """Return the reason of a decline as the API and the events show it. Row, record and trace keep the true one."""
    return "card_declined" if decline_reason in _UNDISCLOSED else decline_reason


class Customer(msgspec.Struct, frozen=True):
    """The recipient of the receipt. Never logged."""

    name: PersonName
    email: MailAddress


class Item(msgspec.Struct, frozen=True):
    """One line of an order. `unit_price` is in minor units."""

    sku: Sku
    quantity: Annotated[int, Meta(ge=1, le=10_000)]
    unit_price: Annotated[int, Meta(ge=0, le=MAX_AMOUNT)]


class NewOrder(Event, frozen=True, omit_defaults=True, kw_only=True):
    """An order as a client of the API sends it: without an id, and without a total, which is computed."""

    customer: Customer
    currency: Currency
    items: Annotated[tuple[Item, ...], Meta(min_length=1, max_length=100)]
    payment_method: PaymentMethod

    def __post_init__(self) -> None:
        """Check the rules about several fields. Raises ValueError, which msgspec reports as its ValidationError."""
        if self.currency not in DECIMALS:
            raise ValueError(f"Expected an ISO 4217 code, got {self.currency} - at `$.currency`")
        largest = largest_charge(self.currency)
        if not 1 <= self.total <= largest:
            raise ValueError(f"Expected a total from 1 to {largest}, got {self.total} - at `$.items`")
        if DECIMALS[self.currency] == 3 and self.total % 10:
            # https://docs.stripe.com/currencies#three-decimal
            raise ValueError(f"Expected a total that ends in 0, got {self.total} {self.currency} - at `$.items`")

    @property
    def total(self) -> int:
        """The price of all items, in minor units."""
        return sum(item.quantity * item.unit_price for item in self.items)


class OrderRequested(NewOrder, frozen=True, omit_defaults=True, kw_only=True):
    """A customer or a partner wants to buy something."""

    type: ClassVar[str] = "order.requested"
    source: ClassVar[str] = SOURCE

    order_id: OrderId

    @property
    def subject(self) -> str:
        """The order."""
        return self.order_id


class OrderEvent(Event, frozen=True, omit_defaults=True, kw_only=True):
    """Something happened to one order. The event holds no personal data."""

    source: ClassVar[str] = SOURCE

    order_id: OrderId
    currency: Currency
    total: Amount

    @property
    def subject(self) -> str:
        """The order."""
        return self.order_id


class OrderPlaced(OrderEvent, frozen=True, omit_defaults=True, kw_only=True):
    """The order is accepted and may be charged."""

    type: ClassVar[str] = "order.placed"

    payment_method: PaymentMethod


class OrderPaid(OrderEvent, frozen=True, omit_defaults=True, kw_only=True):
    """The order was charged."""

    type: ClassVar[str] = "order.paid"

    payment_intent: IntentId


class OrderDeclined(OrderEvent, frozen=True, omit_defaults=True, kw_only=True):
    """The charge was declined. A decline is final: a new card is a new order."""

    type: ClassVar[str] = "order.declined"

    payment_intent: IntentId
    reason: Reason
