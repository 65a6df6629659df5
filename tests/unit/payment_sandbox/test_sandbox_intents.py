"""The life of a payment intent, as Stripe's SDK sees it."""

import pytest
import stripe

from tests.unit.payment_sandbox.conftest import Shop, seen


def test_an_intent_is_created_unconfirmed_and_nothing_is_charged(shop: Shop) -> None:
    intent = shop.intent(order_id="ord_7")
    assert intent.object == "payment_intent"
    assert intent.id.startswith("pi_")
    assert (intent.amount, intent.currency, intent.livemode) == (2500, "eur", False)
    assert intent.status == "requires_confirmation"
    assert intent.metadata["order_id"] == "ord_7"
    assert intent.latest_charge is None
    assert shop.ledger() == []


def test_an_intent_without_a_method_requires_one_and_takes_it_at_confirmation(shop: Shop) -> None:
    intent = shop.intents.create(params={"amount": 1, "currency": "EUR", "metadata": {"order_id": "ord_1"}})
    assert (intent.status, intent.currency) == ("requires_payment_method", "eur")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.confirm(intent)
    assert refused.value.code == "payment_intent_unexpected_state"
    paid = shop.intents.confirm(intent.id, params={"payment_method": "pm_card_visa"})
    assert (paid.status, paid.payment_method) == ("succeeded", "pm_card_visa")


def test_a_good_card_is_charged_once_and_the_charge_stands_in_the_ledger(shop: Shop, api: stripe.StripeClient) -> None:
    intent = shop.confirm(shop.intent())
    assert (intent.status, intent.amount_received) == ("succeeded", 2500)
    (charge,) = api.v1.charges.list().data
    assert charge.id == intent.latest_charge
    assert (charge.object, charge.payment_intent) == ("charge", intent.id)
    assert (charge.status, charge.paid, charge.amount, charge.currency) == ("succeeded", True, 2500, "eur")
    assert (charge.metadata["order_id"], charge.failure_code) == ("ord_1", None)
    assert charge.created == intent.created
    retrieved = shop.intents.retrieve(intent.id)
    assert retrieved.to_dict() == intent.to_dict()


@pytest.mark.parametrize(
    ("method", "decline_code"),
    [
        ("pm_card_chargeDeclined", "generic_decline"),
        ("pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds"),
    ],
)
def test_a_declined_card_is_a_card_error_and_a_failed_charge(shop: Shop, method: str, decline_code: str) -> None:
    created = shop.intent(method)
    with pytest.raises(stripe.CardError) as declined:
        shop.confirm(created)
    assert (declined.value.http_status, declined.value.code) == (402, "card_declined")
    assert seen(declined.value).error.decline_code == decline_code
    assert seen(declined.value).error.payment_intent.id == created.id
    intent = shop.intents.retrieve(created.id)
    assert intent.status == "requires_payment_method"
    assert seen(intent).last_payment_error.code == "card_declined"
    assert seen(intent).last_payment_error.decline_code == decline_code
    assert (intent.payment_method, intent.amount_received) == (None, 0)
    (charge,) = shop.api.v1.charges.list().data
    assert (charge.id, charge.status, charge.paid) == (intent.latest_charge, "failed", False)
    assert charge.failure_code == "card_declined"


def test_a_declined_intent_can_be_paid_with_another_method_until_it_is_cancelled(shop: Shop) -> None:
    first, second = shop.intent("pm_card_chargeDeclined", "ord_1"), shop.intent("pm_card_chargeDeclined", "ord_2")
    for intent in (first, second):
        with pytest.raises(stripe.CardError):
            shop.confirm(intent)
    paid = shop.intents.confirm(first.id, params={"payment_method": "pm_card_visa"})
    assert (paid.status, paid.last_payment_error) == ("succeeded", None)
    shop.intents.cancel(second.id)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.intents.confirm(second.id, params={"payment_method": "pm_card_visa"})
    assert refused.value.code == "payment_intent_unexpected_state"
    assert shop.ledger() == [("ord_1", "succeeded"), ("ord_2", "failed"), ("ord_1", "failed")]


def test_a_succeeded_intent_can_be_neither_confirmed_nor_cancelled(shop: Shop) -> None:
    intent = shop.confirm(shop.intent())
    for act in (shop.intents.confirm, shop.intents.cancel):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            act(intent.id)
        assert (refused.value.http_status, refused.value.code) == (400, "payment_intent_unexpected_state")
        assert seen(refused.value).error.payment_intent.status == "succeeded"
    assert shop.status(intent) == "succeeded"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_cancelled_intent_can_be_neither_confirmed_nor_cancelled_again(shop: Shop) -> None:
    intent = shop.intents.cancel(shop.intent().id, params={"cancellation_reason": "abandoned"})
    assert (intent.status, intent.cancellation_reason) == ("canceled", "abandoned")
    assert intent.canceled_at is not None
    for act in (shop.intents.confirm, shop.intents.cancel):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            act(intent.id)
        assert (refused.value.http_status, refused.value.code) == (400, "payment_intent_unexpected_state")
    assert shop.ledger() == []


def test_an_unknown_intent_is_404_whatever_is_asked_of_it(shop: Shop) -> None:
    for act in (shop.intents.retrieve, shop.intents.confirm, shop.intents.cancel):
        with pytest.raises(stripe.InvalidRequestError) as missing:
            act("pi_none")
        assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")
