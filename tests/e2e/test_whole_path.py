"""An order's way through the deployed app, from either door to the mailbox."""

import uuid

import pytest

from tests.e2e.app import App


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


def test_a_declined_card_is_a_result_of_which_the_customer_is_told_once(app: App) -> None:
    order = app.new_order("pm_card_chargeDeclined")
    order_id = app.place(order)

    assert app.final(order_id)["state"] == "declined"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["failed"]
    (mail,) = app.mails_to(order)
    assert "declined" in mail.subject


@pytest.mark.parametrize(
    "method", ["pm_sandbox_slow", "pm_sandbox_error_before", "pm_sandbox_error_after", "pm_sandbox_drop"]
)
def test_a_provider_that_misbehaves_still_charges_once(app: App, method: str) -> None:
    order_id = app.put(app.new_order(method))

    assert app.final(order_id)["state"] == "paid"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["succeeded"]


def test_a_payment_worker_killed_at_work_is_taken_over_and_charges_once(app: App) -> None:
    order_id = app.new_order_id()
    order = app.new_order("pm_sandbox_slow")  # at work for long enough to be killed
    app.put(order, order_id)
    app.kill_workers("Payment", at=lambda: app.ledger.charges_of(order_id))

    assert app.final(order_id)["state"] == "paid"
    assert [charge["status"] for charge in app.ledger.charges_of(order_id)] == ["succeeded"]
    record = app.tables.record(f"payment.charge#{order_id}")
    assert record is not None
    assert record["uncertain"] is True
    assert record["attempt"] > 1
    assert len(app.mails_to(order)) == 1
