"""The orders that this page has sent: the latest ones only, so that it may stay open for as long as one likes."""

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.domain import an_order

from lab.demo.audit import Expected
from lab.demo.plan import DECLINES, PAYS
from lab.demo.sender import Sent
from lab.faults.plan import Kind

KEPT = 300


@dataclass
class Entry:
    """An order, as for ours. `copies`: how often it is sent; `sends`: those that are out."""

    number: int
    order_id: str
    data: Mapping[str, Any]
    copies: int
    sends: list[Sent] = field(default_factory=list)

    @property
    def expected(self) -> Expected:
        """What a customer may expect of it."""
        amount = sum(item["quantity"] * item["unit_price"] for item in self.data["items"])
        pays = self.data["payment_method"] == PAYS
        return Expected(self.order_id, self.data["customer"]["email"], amount, self.data["currency"], pays)


@dataclass(frozen=True)
class Armed:
    """A fault that waits for the next payment of each lane, since `at_ms`."""

    kind: Kind
    at_ms: int


class Book:
    """Orders by id, oldest first, and what was armed last. Written by buttons, read by the one who looks."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self.run = secrets.token_hex(4)  # so that a page that was open before a restart notices
        self._entries: dict[str, Entry] = {}
        self._lock = threading.Lock()
        self.total = 0
        self.armed: Armed | None = None

    def open(self, copies: int, *, pays: bool = True) -> Entry:
        """A new order, of which nothing is sent yet. The oldest one is forgotten if there are too many."""
        with self._lock:
            self.total += 1
            number = self.total
            data = an_order(
                f"buyer-{self.run}-{number}@example.com", PAYS if pays else DECLINES, 900 + 350 * (number % 7)
            )
            entry = Entry(number, f"show-{self.run}-{number}", data, copies)
            self._entries[entry.order_id] = entry
            while len(self._entries) > self._kept:
                del self._entries[next(iter(self._entries))]
        return entry

    def entries(self) -> list[Entry]:
        """Those that are kept, oldest first."""
        with self._lock:
            return list(self._entries.values())
