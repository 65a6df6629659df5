"""A worker stalls past its lease and another takes over: the provider shows one charge, the winner's record stands."""

import pytest
import stripe

from shared.orders.repository import orders
from tests.harness import line
from tests.harness.interceptor import meanwhile, refused, through
from tests.harness.line import refuses
from tests.harness.shop import LEASE_S, Delivery, Shop, metrics

FAILS = refuses(500)


@pytest.mark.parametrize("b_fails", [False, True], ids=["B succeeds", "B fails"])
@pytest.mark.parametrize("a_fails", [False, True], ids=["A succeeds", "A fails"])
def test_a_stalls_with_its_charge_on_the_way_and_b_takes_over(
    shop: Shop, a_fails: bool, b_fails: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = shop.delivery()
    owner = _Taken(shop, delivery, b_fails)
    shop.line.plan("confirm", line.meanwhile(owner, FAILS if a_fails else line.through))

    assert shop.deliver(delivery) == ["message-1"]  # A: it lost, or does not know

    owner.stands()
    shop.until_quiet(delivery)
    shop.settled_once()
    assert shop.line.calls.count("confirm") == 2 + (a_fails and b_fails)  # no third effect after one that happened
    assert metrics(capsys.readouterr().out)["LeaseLost"] == (not a_fails)


@pytest.mark.parametrize("b_fails", [False, True], ids=["B succeeds", "B fails"])
@pytest.mark.parametrize("a_fails", [False, True], ids=["A succeeds", "A fails"])
def test_a_stalls_with_its_commit_on_the_way_and_b_takes_over(shop: Shop, a_fails: bool, b_fails: bool) -> None:
    delivery = shop.delivery()
    owner = _Taken(shop, delivery, b_fails, b_meets="retrieve")
    fails = refused("InternalServerError", 500)
    shop.world.wire.plan("TransactWriteItems", meanwhile(owner, fails if a_fails else through))

    assert shop.deliver(delivery) == ["message-1"]

    owner.stands()
    shop.until_quiet(delivery)
    shop.settled_once()
    assert shop.line.calls.count("confirm") == 1


class _Taken:
    """B takes over while A's request is on its way; B succeeds, or the provider fails it."""

    def __init__(self, shop: Shop, delivery: Delivery, fails: bool, b_meets: str = "confirm") -> None:
        self.shop = shop
        self.delivery = delivery
        self.fails = fails
        self.b_meets = b_meets
        self.record: object = None

    def __call__(self) -> None:
        self.shop.world.clock.advance(LEASE_S)
        if self.fails:
            self.shop.line.plan(self.b_meets, FAILS)
        assert self.shop.deliver(self.delivery) == (["message-1"] if self.fails else [])
        self.record = self._now()

    def stands(self) -> None:
        """What B left is as B left it."""
        assert self.record
        assert self._now() == self.record

    def _now(self) -> object:
        return self.shop.world.record("payment.charge#ord_1")


def test_a_late_worker_finds_its_declined_order_cancelled_and_charges_nothing(shop: Shop) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")
    shop.line.plan("confirm", shop.line.hold)
    shop.deliver(delivery)  # A: its confirmation hangs in the network
    shop.until_quiet(delivery)  # B: declined
    shop.settled_once("declined")

    assert shop.line.let_go() == [400]

    assert shop.intents() == ["canceled"]
    shop.settled_once("declined")


def test_a_late_confirmation_with_a_card_that_pays_charges_nothing_after_the_decline(shop: Shop) -> None:
    shop.until_quiet(shop.delivery("pm_card_chargeDeclined"))
    (intent,) = shop.provider.v1.payment_intents.list().data

    status = _confirmed_by_another(shop, intent.id)

    assert status == 400
    shop.settled_once("declined")


def test_a_late_confirmation_that_was_first_makes_the_order_paid(shop: Shop) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")

    def pay() -> None:
        (intent,) = shop.provider.v1.payment_intents.list().data
        assert _confirmed_by_another(shop, intent.id) == 200

    shop.line.plan("cancel", line.meanwhile(pay))

    assert shop.deliver(delivery) == []

    assert shop.charges() == [("succeeded", 2500), ("failed", 2500)]
    assert shop.state() == "paid"
    assert shop.result()["state"] == "paid"
    assert "reason" not in shop.result()
    assert [kind for kind, _ in shop.outbox()] == ["order.paid"]


def test_a_late_confirmation_of_a_paid_intent_charges_nothing(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.line.plan("confirm", shop.line.hold)
    shop.deliver(delivery)
    shop.until_quiet(delivery)

    assert shop.line.let_go() == [400]

    shop.settled_once()


def test_a_confirmation_that_is_refused_because_it_was_done_is_believed(shop: Shop) -> None:
    delivery = shop.delivery()

    def pay() -> None:
        (intent,) = shop.provider.v1.payment_intents.list().data
        assert _confirmed_by_another(shop, intent.id) == 200

    shop.line.plan("confirm", line.meanwhile(pay))

    assert shop.deliver(delivery) == []

    assert shop.line.calls == ["create", "confirm"]
    shop.settled_once()


def test_a_confirmation_that_is_refused_because_it_was_cancelled_is_a_decline(shop: Shop) -> None:
    delivery = shop.delivery()

    def cancel() -> None:
        (intent,) = shop.provider.v1.payment_intents.list().data
        shop.provider.v1.payment_intents.cancel(intent.id)

    shop.line.plan("confirm", line.meanwhile(cancel))

    assert shop.deliver(delivery) == []

    assert shop.charges() == []
    assert shop.state() == "declined"
    assert shop.result()["reason"] == "canceled"


def test_a_worker_whose_intent_came_second_confirms_the_one_on_the_row(shop: Shop) -> None:
    delivery = shop.delivery()

    def another_is_first() -> None:
        fixed = orders().fix_intent("ord_1", _intent_of_another(shop, "ord_1", 2500))
        assert fixed

    shop.world.wire.plan("UpdateItem", through, meanwhile(another_is_first))

    assert shop.deliver(delivery) == []

    assert shop.intents() == ["requires_confirmation", "succeeded"]
    assert shop.result()["payment_intent"] == shop.provider.v1.payment_intents.list().data[0].id
    shop.settled_once()


def _intent_of_another(shop: Shop, order_id: str, amount: int) -> str:
    """An intent that no worker of this test has made; its id."""
    return shop.provider.v1.payment_intents.create(
        {
            "amount": amount,
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": order_id},
        }
    ).id


def _confirmed_by_another(shop: Shop, intent_id: str) -> int:
    """Somebody else confirms the intent, with a card that pays; the status of the answer."""
    try:
        shop.provider.v1.payment_intents.confirm(intent_id, {"payment_method": "pm_card_visa"})
    except stripe.InvalidRequestError as error:
        return error.http_status or 0
    return 200
