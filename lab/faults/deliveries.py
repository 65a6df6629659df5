"""What a queue may do to messages on their way: hand them out again, late, and in another order. Pure, from a seed."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

M = TypeVar("M")


@dataclass(frozen=True)
class Delivery(Generic[M]):
    """A message that is to arrive `at_s` seconds after the start; `copy`: 1 is the original."""

    at_s: float
    message: M
    copy: int


@dataclass(frozen=True)
class Unruly:
    """`copies`: how often each message arrives; `late`: the share of arrivals that are up to `late_s` seconds late."""

    copies: int = 3
    late: float = 0.2
    late_s: float = 10.0

    def deliveries(self, messages: Iterable[M], rate: float, seed: int) -> list[Delivery[M]]:
        """All arrivals, `rate` a second before lateness, in the order of their times.

        An order's copies may come together or far apart: whichever is first, and between which others, is drawn.
        """
        rng = random.Random(seed)
        arrivals = [(message, copy) for message in messages for copy in range(1, self.copies + 1)]
        rng.shuffle(arrivals)
        drawn = [
            Delivery(n / rate + (rng.uniform(0, self.late_s) if rng.random() < self.late else 0), message, copy)
            for n, (message, copy) in enumerate(arrivals)
        ]
        return sorted(drawn, key=lambda delivery: delivery.at_s)
