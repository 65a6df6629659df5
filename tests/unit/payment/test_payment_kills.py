"""A worker is killed between any two things that it does; the message comes back before or after the lease's end."""

import pytest

from tests.harness.interceptor import Fault, answer_lost, killed_after, killed_before, through
from tests.harness.payment import LEASE_S, Delivery, Payments, metrics
from tests.harness.provider_connection import cut_before

# UpdateItem: the claim, then the intent's id on the row. TransactWriteItems: the commit.
KILLED: dict[str, tuple[str, list[Fault]]] = {
    "before the claim": ("UpdateItem", [killed_before]),
    "claimed": ("UpdateItem", [killed_after]),
    "intent created": ("UpdateItem", [through, killed_before]),
    "id fixed": ("UpdateItem", [through, killed_after]),
    "confirmed": ("TransactWriteItems", [killed_before]),
    "committed": ("TransactWriteItems", [killed_after]),
}
LEASED = ("claimed", "intent created", "id fixed", "confirmed")  # a record in progress is left behind

killed = pytest.mark.parametrize("where", KILLED)


@killed
def test_killed_anywhere_and_redelivered_at_once_it_is_busy_and_then_charged_once(
    payments: Payments, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = _killed(payments, where)
    capsys.readouterr()
    calls = len(payments.connection.calls)

    reported = payments.deliver(delivery)

    if where in LEASED:
        assert reported == ["message-1"]
        assert len(payments.connection.calls) == calls  # busy: the provider is left alone
        assert metrics(capsys.readouterr().out) == {"Busy": 1}
        assert 122 <= payments.waits()[-1] <= 124  # the lease of 120 s, the skew, and a little
    payments.until_quiet(delivery)
    payments.settled_once()


@killed
def test_killed_anywhere_and_redelivered_after_the_lease_it_is_charged_once(
    payments: Payments, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = _killed(payments, where)
    capsys.readouterr()
    payments.world.clock.advance(LEASE_S)

    assert payments.deliver(delivery) == []

    payments.settled_once()
    assert metrics(capsys.readouterr().out)["Takeover"] == (where in LEASED)


@killed
@pytest.mark.parametrize("lease_over", [False, True], ids=["at once", "after the lease"])
def test_killed_anywhere_with_keys_pruned_and_records_gone_it_is_charged_once(
    payments: Payments, where: str, lease_over: bool
) -> None:
    delivery = _killed(payments, where)
    payments.forget()
    payments.world.clock.advance(LEASE_S if lease_over else 0)

    assert payments.deliver(delivery) == []

    payments.settled_once()


@pytest.mark.parametrize("where", ["intent created", "id fixed", "confirmed"])
@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
def test_killed_on_the_way_to_a_decline_it_is_declined_once(payments: Payments, where: str, forgotten: bool) -> None:
    delivery = _killed(payments, where, "pm_card_chargeDeclined")
    if forgotten:
        payments.forget()

    payments.until_quiet(delivery)

    payments.settled_once("declined")


def test_killed_at_each_stage_in_turn_it_is_done_once(payments: Payments) -> None:
    delivery = payments.delivery()

    for where in ("claimed", "intent created", "id fixed", "confirmed"):
        operation, faults = KILLED[where]
        payments.world.wire.plan(operation, *faults)
        payments.deliver_and_die(delivery)
        payments.world.clock.advance(LEASE_S)

    payments.until_quiet(delivery)
    payments.settled_once()
    assert payments.intents() == ["succeeded"]


def test_a_second_intent_that_the_provider_made_because_it_forgot_is_never_confirmed(payments: Payments) -> None:
    delivery = _killed(payments, "intent created")
    payments.forget()

    payments.until_quiet(delivery)

    assert payments.intents() == ["requires_confirmation", "succeeded"]
    payments.settled_once()


def test_an_uncertain_try_asks_about_the_intent_before_it_confirms(payments: Payments) -> None:
    delivery = _killed(payments, "intent created")
    payments.world.clock.advance(LEASE_S)
    payments.connection.calls.clear()

    payments.deliver(delivery)

    assert payments.connection.calls == ["create", "retrieve", "confirm"]
    assert payments.intents() == ["succeeded"]  # the same key, the same intent


def test_what_is_found_charged_is_not_confirmed_again(payments: Payments) -> None:
    delivery = _killed(payments, "confirmed")
    payments.world.clock.advance(LEASE_S)
    payments.connection.calls.clear()

    payments.deliver(delivery)

    assert payments.connection.calls == ["retrieve"]
    payments.settled_once()


def test_the_row_alone_says_that_an_intent_may_have_been_confirmed(payments: Payments) -> None:
    delivery = _killed(payments, "confirmed")
    payments.forget()  # the try that follows is the first, and certain, as far as the records know
    payments.connection.calls.clear()

    payments.deliver(delivery)

    assert payments.connection.calls == ["retrieve"]
    payments.settled_once()


def test_killed_between_decline_and_cancel_it_is_declined(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("cancel", cut_before)
    assert payments.deliver(delivery) == ["message-1"]
    assert payments.intents() == ["requires_payment_method"]
    payments.connection.calls.clear()

    payments.until_quiet(delivery)

    assert payments.connection.calls == ["retrieve", "cancel"]
    payments.settled_once("declined")
    assert payments.result()["reason"] == "generic_decline"


@pytest.mark.parametrize(
    ("operation", "skipped"),
    [("UpdateItem", 0), ("GetItem", 0), ("UpdateItem", 1), ("TransactWriteItems", 0)],
    ids=["claim", "read", "fix", "commit"],
)
def test_an_answer_that_is_lost_costs_no_second_charge(payments: Payments, operation: str, skipped: int) -> None:
    delivery = payments.delivery()
    payments.world.wire.plan(operation, *[through] * skipped, answer_lost)

    payments.until_quiet(delivery)

    payments.settled_once()


def test_a_dlq_replay_after_the_records_were_emptied_charges_nobody_again(
    payments: Payments, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = payments.delivery()
    payments.until_quiet(delivery)
    paid, told = payments.result(), payments.outbox()
    payments.forget()
    capsys.readouterr()
    payments.connection.calls.clear()

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == []
    assert (payments.result(), payments.outbox()) == (paid, told)
    assert metrics(capsys.readouterr().out) == {"DuplicateReplayed": 1}
    payments.settled_once()


def test_a_dlq_replay_of_a_declined_order_declines_it_the_same(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.until_quiet(delivery)
    declined, told = payments.result(), payments.outbox()
    payments.forget()

    assert payments.deliver(delivery) == []

    assert (payments.result(), payments.outbox()) == (declined, told)
    payments.settled_once("declined")


def test_a_replay_for_an_order_whose_customer_was_told_tells_nobody_again(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.until_quiet(delivery)
    payments.world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": "ord_1"}},
        UpdateExpression="SET mailed_at = :at REMOVE open_shard, open_since",
        ExpressionAttributeValues={":at": {"S": "2027-01-15T08:00:01.000Z"}},
    )
    payments.forget()

    assert payments.deliver(delivery) == []

    assert "outbox" not in (payments.world.record("payment.charge#ord_1") or {})
    assert payments.result()["state"] == "paid"


def _killed(payments: Payments, where: str, method: str = "pm_card_visa") -> Delivery:
    operation, faults = KILLED[where]
    delivery = payments.delivery(method)
    payments.world.wire.plan(operation, *faults)
    payments.deliver_and_die(delivery)
    return delivery
