"""A worker stalls past its lease and another takes over: the provider shows one charge, the winner's record stands."""

import pytest
import stripe

from shared.orders.repository import orders
from tests.harness import provider_connection
from tests.harness.interceptor import meanwhile, refused, through
from tests.harness.payment import LEASE_S, Delivery, Payments, metrics
from tests.harness.provider_connection import refuses

FAILS = refuses(500)


@pytest.mark.parametrize("b_fails", [False, True], ids=["B succeeds", "B fails"])
@pytest.mark.parametrize("a_fails", [False, True], ids=["A succeeds", "A fails"])
def test_a_stalls_with_its_charge_on_the_way_and_b_takes_over(
    payments: Payments, a_fails: bool, b_fails: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    delivery = payments.delivery()
    owner = _Taken(payments, delivery, b_fails)
    payments.connection.plan(
        "confirm", provider_connection.meanwhile(owner, FAILS if a_fails else provider_connection.through)
    )

    assert payments.deliver(delivery) == ["message-1"]  # A: it lost, or does not know

    owner.stands()
    payments.until_quiet(delivery)
    payments.settled_once()
    assert payments.connection.calls.count("confirm") == 2 + (
        a_fails and b_fails
    )  # no third effect after one that happened
    assert metrics(capsys.readouterr().out)["LeaseLost"] == (not a_fails)


@pytest.mark.parametrize("b_fails", [False, True], ids=["B succeeds", "B fails"])
@pytest.mark.parametrize("a_fails", [False, True], ids=["A succeeds", "A fails"])
def test_a_stalls_with_its_commit_on_the_way_and_b_takes_over(payments: Payments, a_fails: bool, b_fails: bool) -> None:
    delivery = payments.delivery()
    owner = _Taken(payments, delivery, b_fails, b_meets="retrieve")
    fails = refused("InternalServerError", 500)
    payments.world.wire.plan("TransactWriteItems", meanwhile(owner, fails if a_fails else through))

    assert payments.deliver(delivery) == ["message-1"]

    owner.stands()
    payments.until_quiet(delivery)
    payments.settled_once()
    assert payments.connection.calls.count("confirm") == 1


class _Taken:
    """B takes over while A's request is on its way; B succeeds, or the provider fails it."""

    def __init__(self, payments: Payments, delivery: Delivery, fails: bool, b_meets: str = "confirm") -> None:
        self.payments = payments
        self.delivery = delivery
        self.fails = fails
        self.b_meets = b_meets
        self.record: object = None

    def __call__(self) -> None:
        self.payments.world.clock.advance(LEASE_S)
        if self.fails:
            self.payments.connection.plan(self.b_meets, FAILS)
        assert self.payments.deliver(self.delivery) == (["message-1"] if self.fails else [])
        self.record = self._now()

    def stands(self) -> None:
        """What B left is as B left it."""
        assert self.record
        assert self._now() == self.record

    def _now(self) -> object:
        return self.payments.world.record("payment.charge#ord_1")


def test_a_late_worker_finds_its_declined_order_cancelled_and_charges_nothing(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("confirm", payments.connection.hold)
    payments.deliver(delivery)  # A: its confirmation hangs in the network
    payments.until_quiet(delivery)  # B: declined
    payments.settled_once("declined")

    assert payments.connection.let_go() == [400]

    assert payments.intents() == ["canceled"]
    payments.settled_once("declined")


def test_a_late_confirmation_with_a_card_that_pays_charges_nothing_after_the_decline(payments: Payments) -> None:
    payments.until_quiet(payments.delivery("pm_card_chargeDeclined"))
    (intent,) = payments.provider.v1.payment_intents.list().data

    status = _confirmed_by_another(payments, intent.id)

    assert status == 400
    payments.settled_once("declined")


def test_a_late_confirmation_that_was_first_makes_the_order_paid(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")

    def pay() -> None:
        (intent,) = payments.provider.v1.payment_intents.list().data
        assert _confirmed_by_another(payments, intent.id) == 200

    payments.connection.plan("cancel", provider_connection.meanwhile(pay))

    assert payments.deliver(delivery) == []

    assert payments.charges() == [("succeeded", 2500), ("failed", 2500)]
    assert payments.state() == "paid"
    assert payments.result()["state"] == "paid"
    assert "reason" not in payments.result()
    assert [kind for kind, _ in payments.outbox()] == ["order.paid"]


def test_a_late_confirmation_of_a_paid_intent_charges_nothing(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", payments.connection.hold)
    payments.deliver(delivery)
    payments.until_quiet(delivery)

    assert payments.connection.let_go() == [400]

    payments.settled_once()


def test_a_confirmation_that_is_refused_because_it_was_done_is_believed(payments: Payments) -> None:
    delivery = payments.delivery()

    def pay() -> None:
        (intent,) = payments.provider.v1.payment_intents.list().data
        assert _confirmed_by_another(payments, intent.id) == 200

    payments.connection.plan("confirm", provider_connection.meanwhile(pay))

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "confirm"]
    payments.settled_once()


def test_a_confirmation_that_is_refused_because_it_was_cancelled_is_a_decline(payments: Payments) -> None:
    delivery = payments.delivery()

    def cancel() -> None:
        (intent,) = payments.provider.v1.payment_intents.list().data
        payments.provider.v1.payment_intents.cancel(intent.id)

    payments.connection.plan("confirm", provider_connection.meanwhile(cancel))

    assert payments.deliver(delivery) == []

    assert payments.charges() == []
    assert payments.state() == "declined"
    assert payments.result()["reason"] == "canceled"


def test_a_worker_whose_intent_came_second_confirms_the_one_on_the_row(payments: Payments) -> None:
    delivery = payments.delivery()

    def another_is_first() -> None:
        fixed = orders().save_intent_id("ord_1", _intent_of_another(payments, "ord_1", 2500))
        assert fixed

    payments.world.wire.plan("UpdateItem", through, meanwhile(another_is_first))

    assert payments.deliver(delivery) == []

    assert payments.intents() == ["requires_confirmation", "succeeded"]
    assert payments.result()["payment_intent"] == payments.provider.v1.payment_intents.list().data[0].id
    payments.settled_once()


def _intent_of_another(payments: Payments, order_id: str, amount: int) -> str:
    """An intent that no worker of this test has made; its id."""
    return payments.provider.v1.payment_intents.create(
        {
            "amount": amount,
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": order_id},
        }
    ).id


def _confirmed_by_another(payments: Payments, intent_id: str) -> int:
    """Somebody else confirms the intent, with a card that pays; the status of the answer."""
    try:
        payments.provider.v1.payment_intents.confirm(intent_id, {"payment_method": "pm_card_visa"})
    except stripe.InvalidRequestError as error:
        return error.http_status or 0
    return 200
