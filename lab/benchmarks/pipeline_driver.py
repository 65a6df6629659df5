"""Drive orders through a deployed pipeline as fast as it takes them, and check each order."""

import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tools.domain import an_order
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES, Ledger, Mailbox, Queues, Tables
from tools.progress import wait_until

from lab.benchmarks.figure import require
from lab.variants import Variant

SENDERS = 4
WITHIN_S = 1800.0
LOOK_EVERY_S = 0.25
TOTAL = 2500


@dataclass(frozen=True)
class RequestCounter(LocalDeployment):
    """Counts the requests of its own clients by service."""

    arguments: Counter[str] = field(default_factory=Counter)

    def client(self, service: str) -> Any:
        """A client whose requests are counted."""
        made = super().client(service)
        made.meta.events.register("before-call", lambda **_: self.arguments.update([service]))
        return made


class Pipeline:
    """One variant of the deployed apps. `asked` counts the requests of this driver by service."""

    def __init__(self, running: LocalDeployment, variant: Variant) -> None:
        self.variant = variant
        own = variant.of(running)
        self._running = RequestCounter(own.endpoint, own.outputs, own.tmp, own.token)
        self.arguments = self._running.arguments
        self._sqs = self._running.client("sqs")
        self._queues = Queues(self._running)
        self._tables = Tables(self._running)

    def drive(self, order_ids: Sequence[str]) -> float:
        """Seconds from the first order on the queue to the last email, by the times in the rows.

        Raises TimeoutError if an order is not emailed.
        """
        events = [self.variant.event(order_id, an_order(_address(order_id))) for order_id in order_ids]
        begun = datetime.now(UTC)
        with ThreadPoolExecutor(SENDERS) as senders:
            for sent in senders.map(self._put, [events[at : at + 10] for at in range(0, len(events), 10)]):
                require(not sent, f"not sent: {sent}")
        what = f"{len(order_ids)} orders of {self.variant.name} to be mailed"

        hundreds = [order_ids[at : at + 100] for at in range(0, len(order_ids), 100)]
        mailed_at: list[datetime] = []

        def all_mailed() -> bool:  # each request slows the emulator: queue depths are cheap
            if self._at_rest():
                mailed_at[:] = [time for some in hundreds for time in self._tables.mailed_at(some)]
            return len(mailed_at) == len(order_ids)

        wait_until(all_mailed, deadline_s=WITHIN_S, what=what, every_s=LOOK_EVERY_S)
        return (max(mailed_at) - begun).total_seconds()

    def check(self, order_ids: Sequence[str]) -> None:
        """Raises WrongEffect unless each order was paid once, in full, and emailed once."""
        expected_ids = set(order_ids)
        rows = {row["order_id"]: row for row in self._tables.orders()}
        charges = Counter(
            charge["metadata"]["order_id"]
            for charge in Ledger(self._running).charges()
            if charge["status"] == "succeeded" and charge["amount"] == TOTAL
        )
        mails = Counter(to for mail in Mailbox(self._running).mails() for to in mail.to)
        for order_id in expected_ids:
            state = rows.get(order_id, {}).get("state")
            mailed = mails[self.variant.address(_address(order_id))]
            require(
                (state, charges[order_id], mailed) == ("paid", 1, 1),
                f"{self.variant.name}: {order_id} is {state}, charged {charges[order_id]} and mailed {mailed} times",
            )

    def _put(self, events: list[dict[str, Any]]) -> list[Any]:
        entries = [{"Id": str(n), "MessageBody": json.dumps(event)} for n, event in enumerate(events)]
        answer = self._sqs.send_message_batch(QueueUrl=self._running.outputs["OrdersQueueUrl"], Entries=entries)
        failed: list[Any] = answer.get("Failed", [])
        return failed

    def _at_rest(self) -> bool:
        return not any(self._queues.depth(name).total for name in QUEUES)


def _address(order_id: str) -> str:
    return f"{order_id}@example.com"


def order_ids(name: str, count: int) -> list[str]:
    """Order ids that start with `name`."""
    return [f"{name}_{number:05d}" for number in range(count)]
