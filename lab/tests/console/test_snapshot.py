"""What is read, and how little of it again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stripe
from tools.local.local_deployment import LocalDeployment

from lab.console.snapshot import AGAIN, NewCharges

Plain = dict[str, Any]
RUNNING = LocalDeployment("http://127.0.0.1:1", {"PaymentSandboxUrl": "http://127.0.0.1:1"}, Path())


class Ledger(NewCharges):
    """A provider's ledger in memory; `refuses` is a status that it answers instead."""

    def __init__(self) -> None:
        super().__init__(RUNNING)
        self.entries: list[Plain] = []
        self.served = 0
        self.refuses: int | None = None

    def charge(self, order_id: str) -> None:
        self.entries.append({"id": f"ch_{len(self.entries):05}", "metadata": {"order_id": order_id}})

    def _entries(self, path: str, **_: str) -> Iterator[Plain]:
        assert path == "/v1/charges"
        if self.refuses:
            raise stripe.APIError("no", http_status=self.refuses)
        for entry in reversed(self.entries):
            self.served += 1
            yield entry


def test_a_long_ledger_is_read_once_and_then_only_its_head() -> None:
    ledger = Ledger()
    orders = frozenset(f"o-{n}" for n in range(1000))
    for order_id in sorted(orders):
        ledger.charge(order_id)
    assert ledger.read(orders)
    assert len(ledger.of(orders)) == 1000
    ledger.served = 0
    ledger.charge("o-1")
    assert ledger.read(orders)
    assert len(ledger.of(frozenset({"o-1"}))) == 2
    assert ledger.served == 1 + AGAIN


def test_charges_of_orders_that_are_forgotten_are_forgotten() -> None:
    ledger = Ledger()
    for n in range(500):
        ledger.charge(f"o-{n}")
    ledger.read(frozenset({"o-1"}))
    assert len(ledger.of(frozenset(f"o-{n}" for n in range(500)))) == 1 + AGAIN
