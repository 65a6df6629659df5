"""Read the state of all variants, only what is new where possible."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import stripe
from tools.local import processes
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES, Depth, Ledger, Mail, Mailbox, Queues, Tables

from lab.console.sent_orders import Armed, SentOrder, SentOrders
from lab.faults.fault_table import FaultTable, InjectedFault
from lab.faults.journal import Delivery, Journal
from lab.variants import Variant
from lab.variants.observation import Observation, orders_of

AGAIN = 50  # known charges in a row, after which reading stops


@dataclass(frozen=True)
class VariantSnapshot:
    """The state of a variant. `busy` counts busy workers by function. `provider` is whether the provider answers."""

    variant: Variant
    observation: Observation
    queues: Mapping[str, Depth]
    parked: Mapping[str, int]  # messages by queue
    deliveries: Sequence[Delivery]
    faults: Sequence[InjectedFault]
    busy: Mapping[str, int]
    provider: bool


@dataclass(frozen=True)
class Snapshot:
    """The state of all variants, and the orders sent so far."""

    run: str
    entries: Sequence[SentOrder]
    total: int
    armed: Armed | None
    variants: Sequence[VariantSnapshot]


class NewCharges(Ledger):
    """The ledger, read from the newest entry down to known ones: entries are only added."""

    def __init__(self, running: LocalDeployment) -> None:
        super().__init__(running)
        self._known: dict[str, dict[str, Any]] = {}

    def read(self, order_ids: frozenset[str]) -> bool:
        """Add new charges. Returns False if the provider is stopped."""
        known_in_a_row = 0
        try:
            for charge in self._entries("/v1/charges"):
                known_in_a_row = known_in_a_row + 1 if charge["id"] in self._known else 0
                if known_in_a_row >= AGAIN:
                    break
                self._known.setdefault(charge["id"], charge)
        except stripe.StripeError as error:
            if error.http_status != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return False
        newest = sorted(self._known.values(), key=lambda charge: str(charge["id"]))[-AGAIN:]
        self._known = {charge["id"]: charge for charge in (*self.of(order_ids), *newest)}
        return True

    def of(self, order_ids: frozenset[str]) -> list[dict[str, Any]]:
        """The charges of these orders."""
        return [each for each in self._known.values() if each["metadata"].get("order_id") in order_ids]


@dataclass
class SnapshotReader:
    """Call it for a Snapshot, by one thread at a time."""

    running: LocalDeployment
    variants: Sequence[Variant]
    sent_orders: SentOrders
    journal: Journal

    def __post_init__(self) -> None:
        self._mailbox = Mailbox(self.running)
        self._ledgers = {variant: NewCharges(variant.of(self.running)) for variant in self.variants}
        self._tables = {variant: Tables(variant.of(self.running)) for variant in self.variants}
        self._queues = {variant: Queues(variant.of(self.running)) for variant in self.variants}
        self._faults = FaultTable(self.running.client("dynamodb"), self.running.outputs["FaultsTableName"])

    def __call__(self) -> Snapshot:
        entries, armed = self.sent_orders.all(), self.sent_orders.armed
        order_ids = frozenset(entry.order_id for entry in entries)
        self.journal.read()
        # Drop deliveries of dropped orders.
        self.journal.deliveries = [each for each in self.journal.deliveries if each.order in order_ids]
        faults = [each for each in self._faults.injected() if each.order in order_ids]
        mails = self._mailbox.mails()
        variant_states = [self._read_variant(variant, order_ids, mails, faults) for variant in self.variants]
        return Snapshot(self.sent_orders.run, entries, self.sent_orders.total, armed, variant_states)

    def _read_variant(
        self, variant: Variant, order_ids: frozenset[str], mails: Sequence[Mail], faults: Sequence[InjectedFault]
    ) -> VariantSnapshot:
        ledger, queues = self._ledgers[variant], self._queues[variant]
        answers = ledger.read(order_ids)
        rows = [row for row in self._tables[variant].orders() if row["order_id"] in order_ids]
        depths = {name: queues.depth(name) for name in QUEUES}
        parked = {name: queues.depth(f"{name}Dlq").total for name in QUEUES}
        deliveries = [each for each in self.journal.deliveries if each.variant == variant.name]
        observation = Observation(
            charges=ledger.of(order_ids),
            mails=variant.mails(mails),
            orders=rows,
            waiting=orders_of(message for name in QUEUES if depths[name].total for message in queues.messages(name)),
            parked=orders_of(message for name in QUEUES if parked[name] for message in queues.messages(f"{name}Dlq")),
        )
        mine = sorted((each for each in faults if each.variant == variant.name), key=lambda each: each.at_ms)
        return VariantSnapshot(variant, observation, depths, parked, deliveries, mine, self._busy(deliveries), answers)

    def _busy(self, deliveries: Sequence[Delivery]) -> dict[str, int]:
        """The number of live workers of each function that have a message."""
        busy_workers = {(each.function, each.pid) for each in deliveries if each.ended_at_ms is None}
        functions = [function for function, pid in busy_workers if processes.started_at(pid)]
        return {name: functions.count(name) for name in set(functions)}
