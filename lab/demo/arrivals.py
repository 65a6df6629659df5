"""Deliver messages as a queue may: again, late, and in another order. Pure, from a seed."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from lab.demo.plan import Arrival, PlannedOrder


@dataclass(frozen=True)
class DisorderedQueue:
    """Each order arrives `copies` times. The share `late` of all arrivals is up to `late_s` seconds late."""

    copies: int = 3
    late: float = 0.2
    late_s: float = 10.0

    def arrivals(self, orders: Iterable[PlannedOrder], rate: float, seed: int) -> list[Arrival]:
        """All arrivals by time, `rate` a second before lateness. The copies of an order may be far apart."""
        rng = random.Random(seed)
        copies = [order for order in orders for _ in range(self.copies)]
        rng.shuffle(copies)
        drawn = [
            Arrival(n / rate + (rng.uniform(0, self.late_s) if rng.random() < self.late else 0), order)
            for n, order in enumerate(copies)
        ]
        return sorted(drawn, key=lambda arrival: arrival.at_s)
