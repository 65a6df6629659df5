"""The verdict. Pure: from what the witnesses say and what was ordered, to what is wrong with it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.local.observe import Mail

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Expected:
    """An order that was accepted. `amount` in minor units; `email` belongs to this order alone."""

    order_id: str
    email: str
    amount: int
    currency: str
    pays: bool  # False: its card is declined


@dataclass(frozen=True)
class DeadLetter:
    queue: str
    order_id: str  # empty where the message names none
    reason: str


@dataclass(frozen=True)
class Evidence:
    """All that the witnesses said after the run. `waiting`: messages left, by queue."""

    charges: Sequence[Plain]
    mails: Sequence[Mail]
    orders: Sequence[Plain]
    records: Sequence[Plain]
    receipts: frozenset[str]
    waiting: Mapping[str, int]
    dead_letters: Sequence[DeadLetter]


@dataclass(frozen=True, order=True)
class Violation:
    order_id: str
    what: str


@dataclass
class Verdict:
    """`second_mails`: orders told twice, where the record says that the outcome of a send was unknown."""

    violations: list[Violation] = field(default_factory=list)
    second_mails: list[str] = field(default_factory=list)

    def judge(self, holds: bool, order_id: str, otherwise: str) -> None:
        if not holds:
            self.violations.append(Violation(order_id, otherwise))


def audit(expected: Sequence[Expected], evidence: Evidence) -> Verdict:
    """Per order exactly one charge or one decline, one final state, one mail; and nothing that nobody ordered."""
    verdict = Verdict()
    rows = {row["order_id"]: row for row in evidence.orders}
    charges = _by(evidence.charges, lambda charge: charge["metadata"].get("order_id", ""))
    mails = _by(evidence.mails, lambda mail: ",".join(mail.to))
    records = {record["id"]: record for record in evidence.records}
    for order in expected:
        row = rows.get(order.order_id)
        if row is None:
            verdict.judge(False, order.order_id, "accepted, but there is no such order")
            continue
        _judge_state(verdict, order, row, evidence.receipts)
        _judge_charges(verdict, order, row, charges[order.order_id])
        _judge_mails(verdict, order, mails[order.email], records.get(f"email.send#{order.order_id}", {}))
    _judge_strangers(verdict, expected, rows, charges, mails)
    for queue, count in evidence.waiting.items():
        verdict.judge(count == 0, "", f"{count} messages are left on the {queue} queue")
    for letter in evidence.dead_letters:
        verdict.judge(False, letter.order_id, f"lies in the {letter.queue} DLQ: {letter.reason}")
    verdict.violations.sort()
    return verdict


def _judge_state(verdict: Verdict, order: Expected, row: Plain, receipts: frozenset[str]) -> None:
    state = "paid" if order.pays else "declined"
    verdict.judge(row["state"] == state, order.order_id, f"is {row['state']}, should be {state}")
    verdict.judge("mailed_at" in row, order.order_id, "its row does not say that the customer was told")
    verdict.judge(row["total"] == order.amount, order.order_id, f"its total is {row['total']}, ordered {order.amount}")
    if order.pays:
        verdict.judge(f"receipts/{order.order_id}.html" in receipts, order.order_id, "its receipt is not in the bucket")


def _judge_charges(verdict: Verdict, order: Expected, row: Plain, charges: Sequence[Plain]) -> None:
    succeeded = [charge for charge in charges if charge["status"] == "succeeded"]
    failed = [charge for charge in charges if charge["status"] == "failed"]
    ours, others, wanted = (succeeded, failed, "charge") if order.pays else (failed, succeeded, "decline")
    verdict.judge(len(ours) == 1, order.order_id, f"{len(ours)} {wanted}s in the ledger instead of one")
    verdict.judge(not others, order.order_id, f"besides, {len(others)} entries in the ledger that should not be there")
    for charge in ours:
        money = (charge["amount"], charge["currency"].upper())
        verdict.judge(money == (order.amount, order.currency), order.order_id, f"the ledger says {money}")
        same = charge["payment_intent"] == row.get("intent_id")
        verdict.judge(same, order.order_id, "the ledger's intent is not the one on the order row")


def _judge_mails(verdict: Verdict, order: Expected, mails: Sequence[Mail], record: Plain) -> None:
    """At least one mail, and no second one but for a try whose predecessor's outcome was unknown."""
    allowed = int(record.get("attempt", 1)) if record.get("uncertain") is True else 1
    verdict.judge(len(mails) >= 1, order.order_id, "no mail was sent")
    verdict.judge(len(mails) <= allowed, order.order_id, f"{len(mails)} mails were sent, its record explains {allowed}")
    subjects = {mail.subject for mail in mails}
    verdict.judge(len(subjects) <= 1, order.order_id, f"mails of different kinds: {sorted(subjects)}")
    if 1 < len(mails) <= allowed:
        verdict.second_mails.append(order.order_id)


def _judge_strangers(
    verdict: Verdict, expected: Sequence[Expected], rows: Iterable[str], charges: Iterable[str], mails: Iterable[str]
) -> None:
    ids = {order.order_id for order in expected}
    addresses = {order.email for order in expected}
    for order_id in set(rows) - ids:
        verdict.judge(False, order_id, "an order that nobody placed")
    for order_id in set(charges) - ids:
        verdict.judge(False, order_id, "a charge for an order that nobody placed")
    for address in set(mails) - addresses:
        verdict.judge(False, "", f"a mail to {address}, who ordered nothing")


def _by(items: Iterable[Any], key: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found
