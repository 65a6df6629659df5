"""An order's way through the deployed app, from the API or the queue to the mailbox."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.app import App

MISBEHAVING = ("pm_sandbox_slow", "pm_sandbox_error_before", "pm_sandbox_error_after", "pm_sandbox_drop")


@dataclass(frozen=True)
class SlowOrders:
    """Orders that need time to end. The payment worker of `killed` was killed. `misbehaving`: ids by payment method."""

    killed: dict[str, Any]
    killed_id: str
    misbehaving: Mapping[str, str]


@pytest.fixture(scope="module", autouse=True)
def slow_orders(app: App) -> SlowOrders:
    """Start all orders that need time before the first test, so that they wait at the same time."""
    killed = app.new_order("pm_sandbox_slow")  # its worker is busy for long enough to be killed
    killed_id = app.put(killed)
    app.kill_workers("Payment", at=lambda: app.ledger.charges_of(killed_id))
    return SlowOrders(killed, killed_id, {method: app.put(app.new_order(method)) for method in MISBEHAVING})


def test_an_order_by_the_api_is_charged_once_and_receipted_once_however_often_it_is_sent(app: App) -> None:
    order, key = app.new_order(), uuid.uuid4().hex
    first, second = app.api.place(order, key), app.api.place(order, key)
    assert (first.status, second.status) == (202, 202)
    assert (first.replayed, second.replayed) == (False, True)
    assert first.body == second.body

    order_id = app.place(order, key)
    assert app.api.look(order_id).status == 200
    assert app.final(order_id)["state"] == "paid"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["succeeded"]
    assert len(app.mails_to(order)) == 1
    assert f"receipts/{order_id}.html" in app.receipts.all()
    assert app.dead_letters(order_id) == []


def test_an_order_put_straight_on_the_queue_three_times_has_the_same_guarantees(app: App) -> None:
    order, order_id = app.new_order(unit_price=700, quantity=3), app.new_order_id()
    for _ in range(3):
        app.put(order, order_id)

    row = app.final(order_id)
    assert (row["state"], row["total"]) == ("paid", 2100)
    assert [charge["amount"] for charge in app.ledger.charges_of(order_id)] == [2100]
    assert len(app.mails_to(order)) == 1


def test_a_declined_card_ends_the_order_and_the_customer_gets_one_email(app: App) -> None:
    order = app.new_order("pm_card_chargeDeclined")
    order_id = app.place(order)

    assert app.final(order_id)["state"] == "declined"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["failed"]
    (mail,) = app.mails_to(order)
    assert "declined" in mail.subject


@pytest.mark.parametrize("method", MISBEHAVING)
def test_a_provider_that_misbehaves_still_charges_once(app: App, slow_orders: SlowOrders, method: str) -> None:
    order_id = slow_orders.misbehaving[method]

    assert app.final(order_id)["state"] == "paid"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["succeeded"]


def test_a_payment_whose_worker_was_killed_is_taken_over_and_charged_once(app: App, slow_orders: SlowOrders) -> None:
    order_id = slow_orders.killed_id

    assert app.final(order_id)["state"] == "paid"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["succeeded"]
    record = app.tables.record(f"payment.charge#{order_id}")
    assert record is not None
    assert record["uncertain"] is True
    assert record["attempt"] > 1
    assert len(app.mails_to(slow_orders.killed)) == 1
