"""Check this repository's pipeline after a run. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.local.observe import Mail

from lab.variants import ExpectedOrder

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class DeadLetter:
    queue: str
    order_id: str  # empty if the message names no order
    reason: str


@dataclass(frozen=True)
class Evidence:
    """The state after a run. `waiting` counts the messages left in each queue."""

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
class AuditResult:
    """`second_mails` lists orders with a second email whose record says that a send had an unknown outcome."""

    violations: list[Violation] = field(default_factory=list)
    second_mails: list[str] = field(default_factory=list)

    def require(self, holds: bool, order_id: str, otherwise: str) -> None:
        if not holds:
            self.violations.append(Violation(order_id, otherwise))


def audit(expected: Sequence[ExpectedOrder], evidence: Evidence) -> AuditResult:
    """Check each order: one charge or one decline, one final state, one email. Check that nothing else exists."""
    result = AuditResult()
    rows = {row["order_id"]: row for row in evidence.orders}
    charges = _by(evidence.charges, lambda charge: charge["metadata"].get("order_id", ""))
    mails = _by(evidence.mails, lambda mail: ",".join(mail.to))
    records = {record["id"]: record for record in evidence.records}
    for order in expected:
        row = rows.get(order.order_id)
        if row is None:
            result.require(False, order.order_id, "accepted, but has no order row")
            continue
        _check_state(result, order, row, evidence.receipts)
        _check_charges(result, order, row, charges[order.order_id])
        _check_mails(result, order, mails[order.email], records.get(f"email.send#{order.order_id}", {}))
    _check_unexpected(result, expected, rows, charges, mails)
    for queue, count in evidence.waiting.items():
        result.require(count == 0, "", f"{count} messages are left on the {queue} queue")
    for letter in evidence.dead_letters:
        result.require(False, letter.order_id, f"is in the {letter.queue} DLQ: {letter.reason}")
    result.violations.sort()
    return result


def _check_state(result: AuditResult, order: ExpectedOrder, row: Plain, receipts: frozenset[str]) -> None:
    state = "paid" if order.pays else "declined"
    result.require(row["state"] == state, order.order_id, f"is {row['state']} instead of {state}")
    result.require("mailed_at" in row, order.order_id, "its row has no time of the email")
    result.require(
        row["total"] == order.amount, order.order_id, f"its total is {row['total']} instead of {order.amount}"
    )
    if order.pays:
        result.require(
            f"receipts/{order.order_id}.html" in receipts, order.order_id, "its receipt is not in the bucket"
        )


def _check_charges(result: AuditResult, order: ExpectedOrder, row: Plain, charges: Sequence[Plain]) -> None:
    succeeded = [charge for charge in charges if charge["status"] == "succeeded"]
    failed = [charge for charge in charges if charge["status"] == "failed"]
    matching, others, kind = (succeeded, failed, "charge") if order.pays else (failed, succeeded, "decline")
    result.require(len(matching) == 1, order.order_id, f"{len(matching)} {kind}s in the ledger instead of one")
    result.require(not others, order.order_id, f"{len(others)} unexpected entries in the ledger")
    for charge in matching:
        money = (charge["amount"], charge["currency"].upper())
        result.require(money == (order.amount, order.currency), order.order_id, f"the ledger says {money}")
        same = charge["payment_intent"] == row.get("intent_id")
        result.require(same, order.order_id, "the ledger's intent is not the one on the order row")


def _check_mails(result: AuditResult, order: ExpectedOrder, mails: Sequence[Mail], record: Plain) -> None:
    """Check for one email, and at most one more for each attempt after an unknown outcome."""
    allowed = int(record.get("attempt", 1)) if record.get("uncertain") is True else 1
    result.require(len(mails) >= 1, order.order_id, "no email was sent")
    result.require(
        len(mails) <= allowed, order.order_id, f"{len(mails)} emails were sent, its record explains {allowed}"
    )
    subjects = {mail.subject for mail in mails}
    result.require(len(subjects) <= 1, order.order_id, f"emails of different kinds: {sorted(subjects)}")
    if 1 < len(mails) <= allowed:
        result.second_mails.append(order.order_id)


def _check_unexpected(
    result: AuditResult,
    expected: Sequence[ExpectedOrder],
    rows: Iterable[str],
    charges: Iterable[str],
    mails: Iterable[str],
) -> None:
    ids = {order.order_id for order in expected}
    addresses = {order.email for order in expected}
    for order_id in set(rows) - ids:
        result.require(False, order_id, "an order that nobody sent")
    for order_id in set(charges) - ids:
        result.require(False, order_id, "a charge for an order that nobody sent")
    for address in set(mails) - addresses:
        result.require(False, "", f"an email to {address}, who ordered nothing")


def _by(items: Iterable[Any], key: Any) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
