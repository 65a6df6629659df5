"""The audit of a deployment: DLQs, ledger, orders and records, and for which orders a guarantee is broken or late.

The first pass reads pages, in which a row and its records may be of different moments. Each suspected order is read
again, row and records as of one moment. Memory holds the id of each order, all charges, all findings and all parked
messages.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shared.idempotency import Image, epoch_ms, send
from shared.orders import Order, Orders, parse_row, pending_messages
from shared.orders.audit import Charge, Finding, Records, Rules, check_order
from tools.domain import parse_record_key
from tools.operate import dlq
from tools.operate.deployment import Deployment
from tools.progress import Steps
from tools.queues import depth


@dataclass
class Audit:
    """The findings, and how much was read. `waiting`: the messages in the queues."""

    age_s: int
    findings: list[Finding] = field(default_factory=list)
    orders: int = 0
    records: int = 0
    charges: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    resent: dict[str, str] = field(default_factory=dict)  # by order id: what happened to its event

    @property
    def wrong(self) -> list[Finding]:
        """The findings that need a repair."""
        return [finding for finding in self.findings if finding.is_wrong]

    @property
    def report(self) -> dict[str, Any]:
        """The audit as JSON values."""
        return {
            "age_s": self.age_s,
            "looked_at": {"orders": self.orders, "records": self.records, "charges": self.charges},
            "waiting": self.waiting,
            "wrong": list(self._plain(wrong=True)),
            "notes": list(self._plain(wrong=False)),
            "resent": self.resent,
        }

    def _plain(self, *, wrong: bool) -> Iterator[dict[str, str]]:
        for finding in self.findings:
            if finding.is_wrong == wrong:
                yield {"kind": finding.kind, "order_id": finding.order_id, "detail": finding.detail}


class Auditor:
    """One audit of one deployment."""

    def __init__(self, deployment: Deployment, steps: Steps, age_s: int | None = None) -> None:
        """`age_s`: younger facts may be on their way and are not checked. None means the age of the sweep."""
        self._deployment = deployment
        self._steps = steps
        self._tables = deployment.tables()
        age_s = int(deployment.environment("sweep")["SWEEP_AGE_S"]) if age_s is None else age_s
        ttl_s = int(float(deployment.environment("order")["RECORD_TTL_S"]))
        self._rules = Rules(epoch_ms(), age_s, ttl_s)
        self._charges: dict[str, list[Charge]] = defaultdict(list)  # by order id
        self._parked_in: dict[str, set[str]] = defaultdict(set)  # queues by order id
        self._checked: set[str] = set()  # order ids
        self.audit = Audit(age_s)

    def run(self, repair: bool = False) -> Audit:
        """Read everything. With `repair`, send missing events again."""
        with self._steps:
            self._read_queues()
            with self._steps.step("charges at the provider") as tell:
                for order_id, charge in self._deployment.ledger().charges_by_order():
                    self._charges[order_id].append(charge)
                    self.audit.charges += 1
                    tell(done=self.audit.charges)
            self._check_orders()
            self._check_records_without_order()
            for order_id in self._charges.keys() - self._checked:
                self._check_again(order_id)
            self.audit.findings.sort()
            if repair:
                self._repair()
        return self.audit

    def _read_queues(self) -> None:
        sqs = self._deployment.client("sqs")
        with self._steps.step("queues and DLQs"):
            for queue in self._deployment.queues:
                self.audit.waiting[queue] = depth(sqs, self._deployment.queue_url(queue)).total
            dlqs = dlq.look_everywhere(self._deployment)
        for contents in dlqs:
            for message in contents.messages:
                self._parked_in[message.order_id or ""].add(contents.queue)
                kind = message.reason if message.reason == "effect_without_state" else "parked"
                since = message.first_parked_at or message.sent_at
                detail = f"{contents.queue} DLQ, reason {message.reason}, since {since}"
                self.audit.findings.append(Finding(kind, message.order_id or "", detail))
            if not contents.complete:
                detail = f"{contents.queue} DLQ: read {len(contents.messages)} of about {contents.total} messages"
                self.audit.findings.append(Finding("parked", "", detail))

    def _check_orders(self) -> None:
        with self._steps.step("orders", total=self._tables.count() or None) as tell:
            for page in self._tables.pages():
                for row, records in page:
                    order_id = row["order_id"]["S"]
                    self._checked.add(order_id)
                    if self._check(order_id, row, records):
                        self._check_again(order_id)
                self.audit.orders += len(page)
                tell(done=self.audit.orders)

    def _check_records_without_order(self) -> None:
        without_order: set[str] = set()
        with self._steps.step("idempotency records") as tell:
            for page in self._tables.scan(self._tables.records):
                for record in page:
                    key = parse_record_key(record["id"]["S"])
                    if key and key[1] not in self._checked:
                        without_order.add(key[1])
                self.audit.records += len(page)
                tell(done=self.audit.records)
            for order_id in without_order:
                self._check_again(order_id)

    def _check_again(self, order_id: str) -> None:
        row, records = self._tables.look(order_id)
        self._checked.add(order_id)
        self.audit.findings += self._check(order_id, row, records)

    def _check(self, order_id: str, row: Image | None, records: Records) -> Sequence[Finding]:
        try:
            order = parse_row(row) if row else None
        except msgspec.ValidationError as error:
            return [Finding("damaged_row", order_id, str(error))]
        except ValueError:
            return [Finding("damaged_row", order_id, "a number is not whole")]
        charges = self._charges.get(order_id, [])
        return check_order(self._rules, order_id, order, records, charges, self._parked_in.get(order_id, ()))

    def _repair(self) -> None:
        """Send the pending event of each order again, from its row as it is now, as the sweep does."""
        table = Orders(self._tables.client, self._tables.orders)
        order_ids = sorted({finding.order_id for finding in self.audit.findings if finding.resend})
        with self._steps.step("events sent again", total=len(order_ids)) as tell:
            for order_id in order_ids:
                self.audit.resent[order_id] = self._resend(table.get(order_id))
                tell(advance=1)

    def _resend(self, order: Order | None) -> str:
        messages = pending_messages(order, self._deployment.routes, epoch_ms()) if order else []
        for message in messages:
            if errors := send(self._deployment.client("sqs"), [message]):
                return f"refused: {errors[message].code}"
        return f"sent {messages[0].event.id}" if messages else "nothing to send"
