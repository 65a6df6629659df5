"""Wait until a variant is at rest: every order final, every queue empty."""

from collections.abc import Callable

from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES, Queues, Tables

from lab.variants import Variant

COUNTED_EVERY = 5  # checks


class SettleCheck:
    """Check whether a variant is at rest. Counting final orders reads the whole table, so it is done seldom."""

    def __init__(self, running: LocalDeployment, variant: Variant) -> None:
        self._tables = Tables(variant.of(running))
        self._queues = Queues(variant.of(running))
        self._checks = 0
        self._final = 0

    def is_empty(self) -> bool:
        """Whether no queue holds a message."""
        return not any(self._waiting().values())

    def final(self) -> int:
        """The number of final orders."""
        return self._tables.mailed()

    def orders_waiting(self) -> int:
        """The number of messages that a worker could take from the first queue now."""
        return self._queues.depth("Orders").visible

    def has_no_dead_letters(self) -> bool:
        return not any(self._queues.depth(f"{name}Dlq").total for name in QUEUES)

    def reached(self, accepted: int, tell: Callable[..., None]) -> bool:
        """Whether `accepted` orders are final and no message is left. `tell` receives the progress."""
        waiting = self._waiting()
        is_empty = not any(waiting.values())
        if is_empty or self._checks % COUNTED_EVERY == 0:
            self._final = self.final()
        self._checks += 1
        tell(done=self._final, detail=", ".join(f"{count} {name.lower()}" for name, count in waiting.items()))
        # Check the queues again: the stream may have delivered the last event while the orders were counted.
        return is_empty and self._final >= accepted and self.is_empty()

    def _waiting(self) -> dict[str, int]:
        return {name: self._queues.depth(name).total for name in QUEUES}
