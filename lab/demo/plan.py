"""What is ordered, how, and how often it arrives: drawn from a seed, so that a run can be had again."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.domain import an_order

PAYS, DECLINES = "pm_card_visa", "pm_card_chargeDeclined"
MISBEHAVES = ("pm_sandbox_slow", "pm_sandbox_error_before", "pm_sandbox_error_after", "pm_sandbox_drop")
# Of every 20 orders: 4 that the provider misbehaves on, one of each kind, 4 declined, 12 that just pay.
DECK = (*MISBEHAVES, *(DECLINES,) * 4, *(PAYS,) * 12)


@dataclass(frozen=True)
class Planned:
    """One order and how it will come. `key`: the idempotency key at the API, or the order id on the queue."""

    key: str
    by_api: bool
    arrivals: int
    data: Mapping[str, Any]

    @property
    def email(self) -> str:
        return str(self.data["customer"]["email"])

    @property
    def amount(self) -> int:
        return sum(item["quantity"] * item["unit_price"] for item in self.data["items"])

    @property
    def payment_method(self) -> str:
        return str(self.data["payment_method"])


def plan(seed: int) -> Iterator[Planned]:
    """Orders without end. Each comes two or three times, half of them by the API; every customer orders once."""
    rng = random.Random(seed)
    number = 0
    while True:
        deck = list(DECK)
        rng.shuffle(deck)
        for method in deck:
            number += 1
            data = an_order(
                f"buyer-{seed}-{number}@example.com",
                method,
                unit_price=rng.randint(100, 5000),
                quantity=rng.randint(1, 3),
                currency=rng.choice(("EUR", "USD", "GBP")),
            )
            yield Planned(f"demo-{seed}-{number}", rng.random() < 0.5, rng.choice((2, 3)), data)


def schedule(orders: list[Planned], seed: int) -> list[Planned]:
    """All arrivals in the order in which they come: an order's own may come together or far apart."""
    arrivals = [order for order in orders for _ in range(order.arrivals)]
    random.Random(seed).shuffle(arrivals)
    return arrivals
