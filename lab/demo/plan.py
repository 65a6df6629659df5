"""Plan the orders of a run: what, by which way, and how often. A seed repeats the plan."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.domain import an_order

PAYS, DECLINES = "pm_card_visa", "pm_card_chargeDeclined"
MISBEHAVES = ("pm_sandbox_slow", "pm_sandbox_error_before", "pm_sandbox_error_after", "pm_sandbox_drop")
# Of every 20 orders, the provider misbehaves on 4 (one of each kind), 4 cards are declined, and 12 just pay.
DECK = (*MISBEHAVES, *(DECLINES,) * 4, *(PAYS,) * 12)


@dataclass(frozen=True)
class PlannedOrder:
    """One order. `key` is the idempotency key at the API, or the order id on the queue."""

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


@dataclass(frozen=True)
class Arrival:
    """An order that a client sends `at_s` seconds after the start."""

    at_s: float
    order: PlannedOrder


def plan(seed: int) -> Iterator[PlannedOrder]:
    """Yield orders forever. Each arrives two or three times, half of them by the API. Every customer orders once."""
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
            yield PlannedOrder(f"demo-{seed}-{number}", rng.random() < 0.5, rng.choice((2, 3)), data)


def schedule(orders: list[PlannedOrder], rate: float, seed: int) -> list[Arrival]:
    """All arrivals, `rate` a second, in random order: the copies of an order may come together or far apart."""
    copies = [order for order in orders for _ in range(order.arrivals)]
    random.Random(seed).shuffle(copies)
    return [Arrival(number / rate, order) for number, order in enumerate(copies)]
