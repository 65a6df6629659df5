"""The audit finds each kind of violation."""

from dataclasses import replace
from typing import Any

import pytest
from tools.local.observe import Mail

from lab.demo.audit import DeadLetter, Evidence, Violation, audit
from lab.variants import ExpectedOrder

PAID = ExpectedOrder("ord_1", "one@example.com", 2500, "EUR", pays=True)
DECLINED = ExpectedOrder("ord_2", "two@example.com", 900, "USD", pays=False)
ORDERS = [PAID, DECLINED]


def charge(order: ExpectedOrder, **other: Any) -> dict[str, Any]:
    return {
        "status": "succeeded" if order.pays else "failed",
        "amount": order.amount,
        "currency": order.currency.lower(),
        "payment_intent": f"pi_{order.order_id}",
        "metadata": {"order_id": order.order_id},
    } | other


def row(order: ExpectedOrder, **other: Any) -> dict[str, Any]:
    return {
        "order_id": order.order_id,
        "state": "paid" if order.pays else "declined",
        "total": order.amount,
        "intent_id": f"pi_{order.order_id}",
        "mailed_at": "2026-01-01T00:00:00Z",
    } | other


def mail(order: ExpectedOrder, subject: str = "") -> Mail:
    return Mail((order.email,), subject or f"About {order.order_id}", "", "m-1")


def record(order: ExpectedOrder, **other: Any) -> dict[str, Any]:
    return {"id": f"email.send#{order.order_id}", "attempt": 1, "uncertain": False} | other


GOOD = Evidence(
    charges=[charge(PAID), charge(DECLINED)],
    mails=[mail(PAID), mail(DECLINED)],
    orders=[row(PAID), row(DECLINED)],
    records=[record(PAID), record(DECLINED)],
    receipts=frozenset({"receipts/ord_1.html"}),
    waiting={"Orders": 0, "Payments": 0, "Emails": 0},
    dead_letters=[],
)


def findings(**wrong: Any) -> list[Violation]:
    return audit(ORDERS, replace(GOOD, **wrong)).violations


def test_orders_done_once_have_no_violation() -> None:
    result = audit(ORDERS, GOOD)
    assert result.violations == []
    assert result.second_mails == []


BROKEN: dict[str, tuple[dict[str, Any], Violation]] = {
    "an accepted order that is not there": (
        {"orders": [row(DECLINED)]},
        Violation("ord_1", "accepted, but has no order row"),
    ),
    "an order that is not final": (
        {"orders": [row(PAID, state="placed"), row(DECLINED)]},
        Violation("ord_1", "is placed instead of paid"),
    ),
    "a declined card that counts as paid": (
        {"orders": [row(PAID), row(DECLINED, state="paid")]},
        Violation("ord_2", "is paid instead of declined"),
    ),
    "a row without the mail": (
        {"orders": [{name: value for name, value in row(PAID).items() if name != "mailed_at"}, row(DECLINED)]},
        Violation("ord_1", "its row has no time of the email"),
    ),
    "another total": (
        {"orders": [row(PAID, total=2501), row(DECLINED)]},
        Violation("ord_1", "its total is 2501 instead of 2500"),
    ),
    "two charges": (
        {"charges": [charge(PAID), charge(PAID), charge(DECLINED)]},
        Violation("ord_1", "2 charges in the ledger instead of one"),
    ),
    "no charge": (
        {"charges": [charge(DECLINED)]},
        Violation("ord_1", "0 charges in the ledger instead of one"),
    ),
    "two declines": (
        {"charges": [charge(PAID), charge(DECLINED), charge(DECLINED)]},
        Violation("ord_2", "2 declines in the ledger instead of one"),
    ),
    "a declined order that was charged after all": (
        {"charges": [charge(PAID), charge(DECLINED), charge(DECLINED, status="succeeded")]},
        Violation("ord_2", "1 unexpected entries in the ledger"),
    ),
    "a paid order with a failed charge beside it": (
        {"charges": [charge(PAID), charge(PAID, status="failed"), charge(DECLINED)]},
        Violation("ord_1", "1 unexpected entries in the ledger"),
    ),
    "another amount": (
        {"charges": [charge(PAID, amount=1), charge(DECLINED)]},
        Violation("ord_1", "the ledger says (1, 'EUR')"),
    ),
    "another currency": (
        {"charges": [charge(PAID, currency="jpy"), charge(DECLINED)]},
        Violation("ord_1", "the ledger says (2500, 'JPY')"),
    ),
    "another intent": (
        {"charges": [charge(PAID, payment_intent="pi_other"), charge(DECLINED)]},
        Violation("ord_1", "the ledger's intent is not the one on the order row"),
    ),
    "no mail": (
        {"mails": [mail(DECLINED)]},
        Violation("ord_1", "no email was sent"),
    ),
    "two mails without a reason": (
        {"mails": [mail(PAID), mail(PAID), mail(DECLINED)]},
        Violation("ord_1", "2 emails were sent, its record explains 1"),
    ),
    "two mails of which the record knows nothing": (
        {"mails": [mail(PAID), mail(PAID), mail(DECLINED)], "records": [record(DECLINED)]},
        Violation("ord_1", "2 emails were sent, its record explains 1"),
    ),
    "a second try that was certain": (
        {"mails": [mail(PAID), mail(PAID), mail(DECLINED)], "records": [record(PAID, attempt=2), record(DECLINED)]},
        Violation("ord_1", "2 emails were sent, its record explains 1"),
    ),
    "more mails than uncertain tries": (
        {
            "mails": [mail(PAID), mail(PAID), mail(PAID), mail(DECLINED)],
            "records": [record(PAID, attempt=2, uncertain=True), record(DECLINED)],
        },
        Violation("ord_1", "3 emails were sent, its record explains 2"),
    ),
    "a receipt and a decline mail": (
        {
            "mails": [mail(PAID), mail(PAID, "Declined"), mail(DECLINED)],
            "records": [record(PAID, attempt=2, uncertain=True), record(DECLINED)],
        },
        Violation("ord_1", "emails of different kinds: ['About ord_1', 'Declined']"),
    ),
    "no receipt in the bucket": (
        {"receipts": frozenset()},
        Violation("ord_1", "its receipt is not in the bucket"),
    ),
    "an order that nobody sent": (
        {"orders": [row(PAID), row(DECLINED), row(replace(PAID, order_id="ord_3"))]},
        Violation("ord_3", "an order that nobody sent"),
    ),
    "a charge for nobody's order": (
        {"charges": [charge(PAID), charge(DECLINED), charge(replace(PAID, order_id="ord_3"))]},
        Violation("ord_3", "a charge for an order that nobody sent"),
    ),
    "a mail to a stranger": (
        {"mails": [mail(PAID), mail(DECLINED), mail(replace(PAID, email="x@example.com"))]},
        Violation("", "an email to x@example.com, who ordered nothing"),
    ),
    "a message that was left behind": (
        {"waiting": {"Orders": 0, "Payments": 1, "Emails": 0}},
        Violation("", "1 messages are left on the Payments queue"),
    ),
    "a dead letter": (
        {"dead_letters": [DeadLetter("Payments", "ord_1", "key_reused")]},
        Violation("ord_1", "is in the Payments DLQ: key_reused"),
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_each_failure_is_found_with_its_order(what: str) -> None:
    wrong, finding = BROKEN[what]
    assert finding in findings(**wrong)


def test_a_second_email_after_an_unknown_outcome_is_no_violation() -> None:
    told_twice = replace(
        GOOD,
        mails=[mail(PAID), mail(PAID), mail(DECLINED)],
        records=[record(PAID, attempt=2, uncertain=True), record(DECLINED)],
    )
    result = audit(ORDERS, told_twice)
    assert result.violations == []
    assert result.second_mails == ["ord_1"]
