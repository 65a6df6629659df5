"""The latest orders that this page has sent. Older orders are dropped, so that the page may stay open."""

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.domain import an_order

from lab.demo.plan import DECLINES, PAYS
from lab.demo.sender import SentMessage
from lab.faults.plan import Kind
from lab.variants import ExpectedOrder

KEPT = 300


@dataclass
class SentOrder:
    """An order of this repository. `copies` is the planned number of messages, `sends` are the sent ones."""

    number: int
    order_id: str
    data: Mapping[str, Any]
    copies: int
    sends: list[SentMessage] = field(default_factory=list)

    @property
    def expected(self) -> ExpectedOrder:
        """The expected outcome."""
        amount = sum(item["quantity"] * item["unit_price"] for item in self.data["items"])
        pays = self.data["payment_method"] == PAYS
        return ExpectedOrder(self.order_id, self.data["customer"]["email"], amount, self.data["currency"], pays)


@dataclass(frozen=True)
class Armed:
    """A fault that is armed for the next payment of each variant, since `at_ms`."""

    kind: Kind
    at_ms: int


class SentOrders:
    """Orders by id, oldest first, and the last armed fault. Actions write it, the snapshot reader reads it."""

    def __init__(self, limit: int = KEPT) -> None:
        self._limit = limit
        self.run = secrets.token_hex(4)  # lets an open page detect a restart
        self._entries: dict[str, SentOrder] = {}
        self._lock = threading.Lock()
        self.total = 0
        self.armed: Armed | None = None

    def add(self, copies: int, *, pays: bool = True) -> SentOrder:
        """Add an order. Drops the oldest order if there are too many."""
        with self._lock:
            self.total += 1
            number = self.total
            data = an_order(
                f"buyer-{self.run}-{number}@example.com", PAYS if pays else DECLINES, 900 + 350 * (number % 7)
            )
            entry = SentOrder(number, f"show-{self.run}-{number}", data, copies)
            self._entries[entry.order_id] = entry
            while len(self._entries) > self._limit:
                del self._entries[next(iter(self._entries))]
        return entry

    def all(self) -> list[SentOrder]:
        """The orders, oldest first."""
        with self._lock:
            return list(self._entries.values())
