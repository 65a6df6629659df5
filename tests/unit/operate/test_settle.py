"""`make settle` ends a placed order, once, and never an order that was paid."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from shared.orders import orders, parse_row
from tests.harness.moto_world import World
from tests.harness.payment import LEASE_S, Delivery, Payments
from tests.harness.provider_connection import cut_before, meanwhile, refuses
from tests.unit.operate.conftest import audited
from tests.unit.operate.test_commands import at_hand
from tests.unit.operate.test_dlq import parked as park_message
from tools.account import Stop
from tools.operate import __main__ as command
from tools.operate.deployment import Deployment
from tools.operate.settle import placed_order, settle

__all__ = ["at_hand"]

REASON = "customer_unreachable"
MISSING = refuses(400, "invalid_request_error", code="resource_missing", param="payment_method")
LIMITED = refuses(429, "invalid_request_error", code="rate_limit")


def row(payments: Payments) -> Any:
    return parse_row(payments.world.row("ord_1") or {})


def parked(payments: Payments) -> Delivery:
    """A placed order whose message is parked, without an intent."""
    delivery = payments.delivery()
    payments.connection.plan("create", MISSING)
    assert payments.deliver(delivery) == []
    assert payments.parked() == ["payment_method_missing"]
    return delivery


def with_intent(payments: Payments) -> Delivery:
    """A placed order with an open intent."""
    delivery = payments.delivery()
    payments.connection.plan("confirm", LIMITED)
    assert payments.deliver(delivery) == ["message-1"]
    return delivery


@pytest.mark.parametrize(("start", "intents"), [(parked, []), (with_intent, ["canceled"])])
def test_an_order_is_declined_once_with_its_event_and_every_later_message_does_nothing(
    payments: Payments, deployment: Deployment, start: Callable[[Payments], Delivery], intents: list[str]
) -> None:
    delivery = start(payments)

    done = settle(deployment, "ord_1", REASON)

    assert (done.state, done.reason) == ("declined", REASON)
    assert (row(payments).state, row(payments).decline_reason, row(payments).settling) == ("declined", REASON, REASON)
    assert payments.intents() == intents
    (event,) = payments.outbox()
    assert event[0] == "order.declined"
    assert payments.result()["state"] == "declined"
    calls = list(payments.connection.calls)
    assert payments.deliver(Delivery(delivery.event, "message-2")) == []
    payments.forget()
    assert payments.deliver(Delivery(delivery.event, "message-3")) == []
    assert (payments.connection.calls, payments.charges()) == (calls, [])
    assert [finding.kind for finding in audited(deployment, age_s=0).wrong] == ["event_missing"]  # no relay runs here


def test_an_order_whose_intent_was_paid_is_not_settled_and_becomes_paid(
    payments: Payments, deployment: Deployment
) -> None:
    delivery = with_intent(payments)
    payments.provider.v1.payment_intents.confirm(row(payments).intent_id)

    with pytest.raises(Stop, match="was paid"):
        settle(deployment, "ord_1", REASON)

    assert row(payments).state == "placed"
    payments.until_quiet(delivery)
    payments.settled_once()


def test_a_confirmation_that_arrives_before_the_cancel_wins(payments: Payments, deployment: Deployment) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", payments.connection.hold)
    assert payments.deliver(delivery) == ["message-1"]
    payments.world.clock.advance(LEASE_S)
    payments.connection.plan("cancel", meanwhile(payments.connection.let_go))

    with pytest.raises(Stop, match="was paid"):
        settle(deployment, "ord_1", REASON)

    payments.until_quiet(delivery)
    payments.settled_once()


def test_a_confirmation_that_arrives_after_the_cancel_charges_nobody(
    payments: Payments, deployment: Deployment
) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", payments.connection.hold)
    assert payments.deliver(delivery) == ["message-1"]
    payments.world.clock.advance(LEASE_S)

    settle(deployment, "ord_1", REASON)

    assert payments.connection.let_go() == [400]
    assert (row(payments).state, payments.charges()) == ("declined", [])


def test_while_a_worker_has_the_order_it_is_only_marked_and_the_worker_or_the_next_one_ends_it(
    payments: Payments, deployment: Deployment
) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", cut_before)
    assert payments.deliver(delivery) == ["message-1"]  # the claim is kept

    with pytest.raises(Stop, match="A worker has order ord_1 until"):
        settle(deployment, "ord_1", REASON)

    assert (row(payments).state, row(payments).settling) == ("placed", REASON)
    payments.until_quiet(delivery)
    assert (row(payments).state, row(payments).decline_reason) == ("declined", REASON)
    assert (payments.intents(), payments.charges()) == (["canceled"], [])


def test_a_late_worker_saves_no_intent_on_a_marked_or_settled_row(payments: Payments, deployment: Deployment) -> None:
    """The worker stalls in its create, past its lease."""
    delivery = payments.delivery()

    def settled() -> None:
        payments.world.clock.advance(LEASE_S)
        settle(deployment, "ord_1", REASON)

    payments.connection.plan("create", meanwhile(settled))

    payments.deliver(delivery)

    assert (row(payments).state, row(payments).intent_id) == ("declined", None)
    assert (payments.intents(), payments.charges()) == (["requires_confirmation"], [])


@pytest.mark.parametrize("status", [401, 403])
def test_a_provider_that_fails_settles_nothing_and_the_command_may_be_run_again(
    payments: Payments, deployment: Deployment, status: int
) -> None:
    with_intent(payments)
    payments.connection.plan("cancel", refuses(status))

    with pytest.raises(Stop, match="The provider failed"):
        settle(deployment, "ord_1", REASON)

    assert row(payments).state == "placed"
    assert settle(deployment, "ord_1", "another_reason").reason == REASON  # of the mark


def test_an_intent_of_another_order_on_the_row_is_not_cancelled(payments: Payments, deployment: Deployment) -> None:
    payments.delivery()
    other = payments.provider.v1.payment_intents.create(
        {"amount": 1, "currency": "eur", "payment_method": "pm_card_visa", "metadata": {"order_id": "ord_2"}}
    )
    orders().save_intent_id("ord_1", other.id)

    with pytest.raises(Stop, match="belongs to ord_2"):
        settle(deployment, "ord_1", REASON)

    assert payments.intents() == ["requires_confirmation"]
    assert (row(payments).state, row(payments).settling) == ("placed", None)


def test_an_intent_that_the_provider_does_not_know_settles_nothing(payments: Payments, deployment: Deployment) -> None:
    payments.delivery()
    orders().save_intent_id("ord_1", "pi_000000000000000000000000")

    with pytest.raises(Stop, match="does not know its intent"):
        settle(deployment, "ord_1", REASON)

    assert (row(payments).state, row(payments).settling) == ("placed", None)  # a repair may still charge the order


def test_an_order_that_is_not_placed_is_refused_before_the_question(payments: Payments, deployment: Deployment) -> None:
    with pytest.raises(Stop, match="no order ord_1"):
        placed_order(deployment, "ord_1")
    payments.until_quiet(payments.delivery())
    with pytest.raises(Stop, match="is paid"):
        placed_order(deployment, "ord_1")
    with pytest.raises(Stop, match="just been settled"):
        settle(deployment, "ord_1", REASON)


def given(*more: str) -> int:
    return command.main(["settle", "ord_1", "--as", "declined", "--reason", REASON, *more])


@pytest.mark.usefixtures("at_hand")
def test_the_command_asks_for_the_order_id_and_says_how_the_order_ended(
    payments: Payments, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(payments)
    monkeypatch.setattr("sys.stdin", StringIO("ord_2\n"))
    assert given() == 2
    assert row(payments).settling is None
    capsys.readouterr()

    monkeypatch.setattr("sys.stdin", StringIO("ord_1\n"))
    assert given() == 0

    written = capsys.readouterr()
    assert "25.00 EUR" in written.err
    assert f"ord_1: declined, reason {REASON}; it had no intent" in written.out
    assert given("--yes") == 2  # it is declined by now


@pytest.mark.usefixtures("at_hand")
def test_another_end_or_a_reason_in_free_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--as", "paid", "--reason", REASON], ["--as", "declined", "--reason", "Customer left"]):
        with pytest.raises(SystemExit):
            command.main(["settle", "ord_1", *words])
    assert "snake case" in capsys.readouterr().err


@pytest.mark.usefixtures("at_hand")
def test_discard_names_the_orders_that_stay_open_and_the_command_that_ends_them(
    world: World,
    payments: Payments,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    payments.order("ord_1")
    for order_id in ("ord_1", "ord_gone"):
        park_message(world, "payments", order_id, "payment_method_missing")

    assert command.main(["discard", "payments", "payment_method_missing", "--yes"]) == 0

    said = capsys.readouterr().out
    assert "1 orders stay open" in said
    assert "ord_1" in said
    assert "ord_gone" not in said
    assert "make settle ORDER=<order> AS=declined REASON=<reason>" in said
