"""A worker is killed between any two things that it does; the message comes back before or after the lease's end."""

import pytest

from tests.harness.interceptor import Fault, answer_lost, killed_after, killed_before, through
from tests.harness.line import cut_before
from tests.harness.shop import LEASE_S, Delivery, Shop, metrics

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
    shop: Shop, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = _killed(shop, where)
    capsys.readouterr()
    calls = len(shop.line.calls)

    reported = shop.deliver(delivery)

    if where in LEASED:
        assert reported == ["message-1"]
        assert len(shop.line.calls) == calls  # busy: the provider is left alone
        assert metrics(capsys.readouterr().out) == {"Busy": 1}
        assert 122 <= shop.waits()[-1] <= 124  # the lease of 120 s, the skew, and a little
    shop.until_quiet(delivery)
    shop.settled_once()


@killed
def test_killed_anywhere_and_redelivered_after_the_lease_it_is_charged_once(
    shop: Shop, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = _killed(shop, where)
    capsys.readouterr()
    shop.world.clock.advance(LEASE_S)

    assert shop.deliver(delivery) == []

    shop.settled_once()
    assert metrics(capsys.readouterr().out)["Takeover"] == (where in LEASED)


@killed
@pytest.mark.parametrize("lease_over", [False, True], ids=["at once", "after the lease"])
def test_killed_anywhere_with_keys_pruned_and_records_gone_it_is_charged_once(
    shop: Shop, where: str, lease_over: bool
) -> None:
    delivery = _killed(shop, where)
    shop.forget()
    shop.world.clock.advance(LEASE_S if lease_over else 0)

    assert shop.deliver(delivery) == []

    shop.settled_once()


@pytest.mark.parametrize("where", ["intent created", "id fixed", "confirmed"])
@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
def test_killed_on_the_way_to_a_decline_it_is_declined_once(shop: Shop, where: str, forgotten: bool) -> None:
    delivery = _killed(shop, where, "pm_card_chargeDeclined")
    if forgotten:
        shop.forget()

    shop.until_quiet(delivery)

    shop.settled_once("declined")


def test_killed_at_each_stage_in_turn_it_is_done_once(shop: Shop) -> None:
    delivery = shop.delivery()

    for where in ("claimed", "intent created", "id fixed", "confirmed"):
        operation, faults = KILLED[where]
        shop.world.wire.plan(operation, *faults)
        shop.deliver_and_die(delivery)
        shop.world.clock.advance(LEASE_S)

    shop.until_quiet(delivery)
    shop.settled_once()
    assert shop.intents() == ["succeeded"]


def test_a_second_intent_that_the_provider_made_because_it_forgot_is_never_confirmed(shop: Shop) -> None:
    delivery = _killed(shop, "intent created")
    shop.forget()

    shop.until_quiet(delivery)

    assert shop.intents() == ["requires_confirmation", "succeeded"]
    shop.settled_once()


def test_an_uncertain_try_asks_about_the_intent_before_it_confirms(shop: Shop) -> None:
    delivery = _killed(shop, "intent created")
    shop.world.clock.advance(LEASE_S)
    shop.line.calls.clear()

    shop.deliver(delivery)

    assert shop.line.calls == ["create", "retrieve", "confirm"]
    assert shop.intents() == ["succeeded"]  # the same key, the same intent


def test_what_is_found_charged_is_not_confirmed_again(shop: Shop) -> None:
    delivery = _killed(shop, "confirmed")
    shop.world.clock.advance(LEASE_S)
    shop.line.calls.clear()

    shop.deliver(delivery)

    assert shop.line.calls == ["retrieve"]
    shop.settled_once()


def test_the_row_alone_says_that_an_intent_may_have_been_confirmed(shop: Shop) -> None:
    delivery = _killed(shop, "confirmed")
    shop.forget()  # the try that follows is the first, and certain, as far as the records know
    shop.line.calls.clear()

    shop.deliver(delivery)

    assert shop.line.calls == ["retrieve"]
    shop.settled_once()


def test_killed_between_decline_and_cancel_it_is_declined(shop: Shop) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")
    shop.line.plan("cancel", cut_before)
    assert shop.deliver(delivery) == ["message-1"]
    assert shop.intents() == ["requires_payment_method"]
    shop.line.calls.clear()

    shop.until_quiet(delivery)

    assert shop.line.calls == ["retrieve", "cancel"]
    shop.settled_once("declined")
    assert shop.result()["reason"] == "generic_decline"


@pytest.mark.parametrize(
    ("operation", "skipped"),
    [("UpdateItem", 0), ("GetItem", 0), ("UpdateItem", 1), ("TransactWriteItems", 0)],
    ids=["claim", "read", "fix", "commit"],
)
def test_an_answer_that_is_lost_costs_no_second_charge(shop: Shop, operation: str, skipped: int) -> None:
    delivery = shop.delivery()
    shop.world.wire.plan(operation, *[through] * skipped, answer_lost)

    shop.until_quiet(delivery)

    shop.settled_once()


def test_a_dlq_replay_after_the_records_were_emptied_charges_nobody_again(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = shop.delivery()
    shop.until_quiet(delivery)
    paid, told = shop.result(), shop.outbox()
    shop.forget()
    capsys.readouterr()
    shop.line.calls.clear()

    assert shop.deliver(delivery) == []

    assert shop.line.calls == []
    assert (shop.result(), shop.outbox()) == (paid, told)
    assert metrics(capsys.readouterr().out) == {"DuplicateReplayed": 1}
    shop.settled_once()


def test_a_dlq_replay_of_a_declined_order_declines_it_the_same(shop: Shop) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")
    shop.until_quiet(delivery)
    declined, told = shop.result(), shop.outbox()
    shop.forget()

    assert shop.deliver(delivery) == []

    assert (shop.result(), shop.outbox()) == (declined, told)
    shop.settled_once("declined")


def test_a_replay_for_an_order_whose_customer_was_told_tells_nobody_again(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.until_quiet(delivery)
    shop.world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": "ord_1"}},
        UpdateExpression="SET mailed_at = :at REMOVE open_shard, open_since",
        ExpressionAttributeValues={":at": {"S": "2027-01-15T08:00:01.000Z"}},
    )
    shop.forget()

    assert shop.deliver(delivery) == []

    assert "outbox" not in (shop.world.record("payment.charge#ord_1") or {})
    assert shop.result()["state"] == "paid"


def _killed(shop: Shop, where: str, method: str = "pm_card_visa") -> Delivery:
    operation, faults = KILLED[where]
    delivery = shop.delivery(method)
    shop.world.wire.plan(operation, *faults)
    shop.deliver_and_die(delivery)
    return delivery
