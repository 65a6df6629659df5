"""Reads the witnesses of all lanes, as seldom as can be and only what is new where that is possible."""

import urllib.error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tools.local import processes
from tools.local.observe import QUEUES, Depth, Ledger, Mail, Mailbox, Queues, Tables
from tools.local.running import Running

from lab.console.book import Armed, Book, Entry
from lab.contrast.collect import orders_of
from lab.contrast.verdict import Witnessed
from lab.demo.lanes import Lane
from lab.faults.arm import Faults, Injected
from lab.faults.journal import Delivery, Journal

AGAIN = 50  # charges known already, one after the other: what is older has been read


@dataclass(frozen=True)
class Seen:
    """A lane at one moment. `busy`: the orders in hand, by function; `provider`: whether it answers."""

    lane: Lane
    witnessed: Witnessed
    queues: Mapping[str, Depth]
    parked: Mapping[str, int]  # messages by queue
    deliveries: Sequence[Delivery]
    faults: Sequence[Injected]
    busy: Mapping[str, int]
    provider: bool


@dataclass(frozen=True)
class Sight:
    """All lanes at one moment, and the orders as far as they were sent by then."""

    run: str
    entries: Sequence[Entry]
    total: int
    armed: Armed | None
    lanes: Sequence[Seen]


class NewCharges(Ledger):
    """The ledger, read from its newest entry down to those that are known: it only ever grows."""

    def __init__(self, running: Running) -> None:
        super().__init__(running)
        self._known: dict[str, dict[str, Any]] = {}

    def read(self, order_ids: frozenset[str]) -> bool:
        """Add what is new. False if the provider is stopped: then nothing is."""
        known_in_a_row = 0
        try:
            for charge in self._pages("/v1/charges"):
                known_in_a_row = known_in_a_row + 1 if charge["id"] in self._known else 0
                if known_in_a_row >= AGAIN:
                    break
                self._known.setdefault(charge["id"], charge)
        except urllib.error.HTTPError as refused:
            if refused.code != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        newest = sorted(self._known.values(), key=lambda charge: str(charge["id"]))[-AGAIN:]
        self._known = {charge["id"]: charge for charge in (*self.of(order_ids), *newest)}
        return True

    def of(self, order_ids: frozenset[str]) -> list[dict[str, Any]]:
        """Those of these orders."""
        return [each for each in self._known.values() if each["metadata"].get("order_id") in order_ids]


@dataclass
class Look:
    """Call it for a Sight. Not by two threads at once."""

    running: Running
    lanes: Sequence[Lane]
    book: Book
    journal: Journal

    def __post_init__(self) -> None:
        self._mailbox = Mailbox(self.running)
        self._ledgers = {lane: NewCharges(lane.of(self.running)) for lane in self.lanes}
        self._tables = {lane: Tables(lane.of(self.running)) for lane in self.lanes}
        self._queues = {lane: Queues(lane.of(self.running)) for lane in self.lanes}
        self._faults = Faults(self.running.client("dynamodb"), self.running.outputs["FaultsTableName"])

    def __call__(self) -> Sight:
        entries, armed = self.book.entries(), self.book.armed
        order_ids = frozenset(entry.order_id for entry in entries)
        self.journal.read()
        # What belongs to orders that are forgotten is forgotten too.
        self.journal.deliveries = [each for each in self.journal.deliveries if each.order in order_ids]
        faults = [each for each in self._faults.injected() if each.order in order_ids]
        mails = self._mailbox.mails()
        seen = [self._see(lane, order_ids, mails, faults) for lane in self.lanes]
        return Sight(self.book.run, entries, self.book.total, armed, seen)

    def _see(self, lane: Lane, order_ids: frozenset[str], mails: Sequence[Mail], faults: Sequence[Injected]) -> Seen:
        ledger, queues = self._ledgers[lane], self._queues[lane]
        answers = ledger.read(order_ids)
        rows = [row for row in self._tables[lane].orders() if row["order_id"] in order_ids]
        depths = {name: queues.depth(name) for name in QUEUES}
        parked = {name: queues.depth(f"{name}Dlq").total for name in QUEUES}
        deliveries = [each for each in self.journal.deliveries if each.lane == lane.name]
        witnessed = Witnessed(
            charges=ledger.of(order_ids),
            mails=lane.mails(mails),
            orders=rows,
            waiting=orders_of(message for name in QUEUES if depths[name].total for message in queues.messages(name)),
            parked=orders_of(message for name in QUEUES if parked[name] for message in queues.messages(f"{name}Dlq")),
        )
        mine = sorted((each for each in faults if each.lane == lane.name), key=lambda each: each.at_ms)
        return Seen(lane, witnessed, depths, parked, deliveries, mine, self._busy(deliveries), answers)

    def _busy(self, deliveries: Sequence[Delivery]) -> dict[str, int]:
        """How many workers of each function have something in hand; one that was killed has not."""
        held = {(each.function, each.pid) for each in deliveries if each.ended_at_ms is None}
        functions = [function for function, pid in held if processes.started_at(pid)]
        return {name: functions.count(name) for name in set(functions)}
