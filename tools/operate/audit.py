"""Walks DLQs, ledger, orders and records, and says of which orders the promise does not hold, or not yet.

A first look is cheap and may see two moments; whatever it suspects is looked at again, row and records as of one.
Kept in memory: each order's id, each of its charges, each finding, and what lies in the DLQs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shared.idempotency import Image, epoch_ms
from shared.idempotency.outbox import send
from shared.orders import pending_messages
from shared.orders.repository import Orders
from shared.orders.row import Order, parse_row
from tools.operate import dlq
from tools.operate.deployment import Deployment
from tools.operate.judging import NOTES, Finding, Rules, judge
from tools.operate.ledger import Charge, Ledger
from tools.operate.parked import depth
from tools.operate.tables import OPERATIONS, Records, Tables
from tools.progress import Steps


@dataclass
class Audit:
    """The verdict, and how much was looked at. `waiting`: messages in the queues, on their way."""

    age_s: int
    findings: list[Finding] = field(default_factory=list)
    orders: int = 0
    records: int = 0
    charges: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    resent: dict[str, str] = field(default_factory=dict)  # order id → what became of its event

    @property
    def wrong(self) -> list[Finding]:
        """What needs mending."""
        return [finding for finding in self.findings if finding.is_wrong]


class Auditor:
    """One audit of one deployment."""

    def __init__(self, deployment: Deployment, steps: Steps, age_s: int | None = None) -> None:
        """`age_s`: younger facts are not judged; None: the age at which the sweep takes notice."""
        self._deployment = deployment
        self._steps = steps
        self._tables = Tables(deployment)
        age_s = int(deployment.told("sweep")["SWEEP_AGE_S"]) if age_s is None else age_s
        ttl_s = int(float(deployment.told("order")["RECORD_TTL_S"]))
        self._rules = Rules(epoch_ms(), age_s, ttl_s)
        self._ledger: dict[str, list[Charge]] = defaultdict(list)
        self._parked: dict[str, set[str]] = defaultdict(set)  # order id → queues
        self._seen: set[str] = set()
        self.audit = Audit(age_s)

    def run(self, repair: bool = False) -> Audit:
        """Look at everything; with `repair`, send missing events again."""
        with self._steps:
            self._look_into_dlqs()
            with self._steps.step("charges at the provider") as tell:
                for order_id, charge in Ledger(self._deployment).charges():
                    self._ledger[order_id].append(charge)
                    self.audit.charges += 1
                    tell(done=self.audit.charges)
            self._walk_orders()
            self._walk_records()
            for order_id in self._ledger.keys() - self._seen:
                self._look_again(order_id)
            self.audit.findings.sort()
            if repair:
                self._repair()
        return self.audit

    def _look_into_dlqs(self) -> None:
        sqs = self._deployment.client("sqs")
        with self._steps.step("queues and DLQs"):
            for queue in self._deployment.queues:
                self.audit.waiting[queue] = sum(depth(sqs, self._deployment.queue_url(queue)).values())
            letters = dlq.look_everywhere(self._deployment)
        for found in letters:
            for message in found.messages:
                self._parked[message.order_id or ""].add(found.queue)
                kind = message.reason if message.reason == "effect_without_state" else "parked"
                since = message.first_parked_at or message.sent_at
                detail = f"{found.queue} DLQ, reason {message.reason}, since {since}"
                self.audit.findings.append(Finding(kind, message.order_id or "", detail))
            if not found.whole:
                more = f"{found.queue} DLQ: about {found.total} messages, {len(found.messages)} were looked at"
                self.audit.findings.append(Finding("parked", "", more))

    def _walk_orders(self) -> None:
        with self._steps.step("orders", total=self._tables.count() or None) as tell:
            for page in self._tables.pages():
                for row, records in page:
                    order_id = row["order_id"]["S"]
                    self._seen.add(order_id)
                    if self._judge(order_id, row, records):
                        self._look_again(order_id)
                self.audit.orders += len(page)
                tell(done=self.audit.orders)

    def _walk_records(self) -> None:
        """For those of which there is no order row."""
        strangers: set[str] = set()
        with self._steps.step("idempotency records") as tell:
            for page in self._tables.all_records():
                for record in page:
                    operation, _, order_id = record["id"]["S"].partition("#")
                    if operation in OPERATIONS and order_id not in self._seen:
                        strangers.add(order_id)
                self.audit.records += len(page)
                tell(done=self.audit.records)
            for order_id in strangers:
                self._look_again(order_id)

    def _look_again(self, order_id: str) -> None:
        row, records = self._tables.look(order_id)
        self._seen.add(order_id)
        self.audit.findings += self._judge(order_id, row, records)

    def _judge(self, order_id: str, row: Image | None, records: Records) -> Sequence[Finding]:
        try:
            order = parse_row(row) if row else None
        except msgspec.ValidationError as error:
            return [Finding("damaged_row", order_id, str(error))]
        except ValueError:  # a number that is not whole
            return [Finding("damaged_row", order_id, "a number that is none of ours")]
        charges = self._ledger.get(order_id, [])
        return judge(self._rules, order_id, order, records, charges, self._parked.get(order_id, ()))

    def _repair(self) -> None:
        """As the sweep does it: from the row as it is now, the same event. Twice does no harm."""
        table = Orders(self._tables.client, self._tables.orders)
        order_ids = sorted({finding.order_id for finding in self.audit.findings if finding.resend})
        with self._steps.step("events sent again", total=len(order_ids)) as tell:
            for order_id in order_ids:
                self.audit.resent[order_id] = self._resend(table.get(order_id))
                tell(advance=1)

    def _resend(self, order: Order | None) -> str:
        messages = pending_messages(order, self._deployment.routes, epoch_ms()) if order else []
        for message in messages:
            if refused := send(self._deployment.client("sqs"), [message]):
                return f"refused: {refused[message].code}"
        return f"sent {messages[0].event.id}" if messages else "nothing to send"


def report(deployment: Deployment, audit: Audit) -> dict[str, Any]:
    """Machine-readable."""
    return {
        "stage": deployment.stage,
        "age_s": audit.age_s,
        "looked_at": {"orders": audit.orders, "records": audit.records, "charges": audit.charges},
        "waiting": audit.waiting,
        "wrong": list(_plain(audit, notes=False)),
        "notes": list(_plain(audit, notes=True)),
        "resent": audit.resent,
    }


def _plain(audit: Audit, *, notes: bool) -> Iterator[dict[str, str]]:
    for finding in audit.findings:
        if (finding.kind in NOTES) == notes:
            yield {"kind": finding.kind, "order_id": finding.order_id, "detail": finding.detail}
