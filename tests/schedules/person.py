"""A person who settles an order with `make settle`: a source of the explorer, and the handler that it invokes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.idempotency import client, current_engine
from tests.schedules.sources import Delivery
from tools.account import Stop
from tools.ledger import Ledger
from tools.operate.settle import LEASE_S, settle_with
from tools.tables import Tables

REASON = "customer_unreachable"
AGAIN_S = 10  # after this time the person runs the command again


def settle(event: dict[str, Any], _: Any) -> str:
    """Run the command. Returns what it prints."""
    tables = Tables(client("dynamodb"), orders="orders", records="idempotency")
    ledger = Ledger("https://provider.example", "sk_test_model", every_s=0)
    try:
        return settle_with(current_engine(), tables, ledger, event["order_id"], REASON).state
    except Stop as stop:
        return str(stop)


@dataclass
class Person:
    """Settles an order, again until the command says how the order ended. A command that died is not run again."""

    label: str
    order_id: str
    now_ms: Callable[[], int]
    function: str = "settle"
    timeout_s: float = float(LEASE_S)
    next_at: int | None = 0

    def next_ms(self) -> int | None:
        return self.next_at

    def take(self) -> Delivery:
        self.next_at = None

        def returned(said: str) -> None:
            if "Run this again" in said or ("is marked and not settled" in said and "was paid" not in said):
                self.next_at = self.now_ms() + AGAIN_S * 1000

        return Delivery({"order_id": self.order_id}, returned, lambda: None, "make settle")

    def state(self) -> object:
        return self.next_at

    def save(self) -> Any:
        return self.next_at

    def restore(self, saved: Any) -> None:
        self.next_at = saved
