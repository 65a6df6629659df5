"""Payment intents from creation to payment or cancellation. https://docs.stripe.com/payments/paymentintents/lifecycle"""

import pytest
import stripe

from tests.unit.payment_sandbox.conftest import Sandbox, untyped


def test_a_new_intent_is_unconfirmed_and_charges_nothing(sandbox: Sandbox) -> None:
    intent = sandbox.create_intent(order_id="ord_7")
    assert intent.object == "payment_intent"
    assert intent.id.startswith("pi_")
    assert (intent.amount, intent.currency, intent.livemode) == (2500, "eur", False)
    assert intent.status == "requires_confirmation"
    assert intent.metadata["order_id"] == "ord_7"
    assert intent.latest_charge is None
    assert sandbox.ledger() == []


def test_an_intent_without_a_payment_method_needs_one_at_confirmation(sandbox: Sandbox) -> None:
    intent = sandbox.intents.create(params={"amount": 1, "currency": "EUR", "metadata": {"order_id": "ord_1"}})
    assert (intent.status, intent.currency) == ("requires_payment_method", "eur")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.confirm(intent)
    assert refused.value.code == "payment_intent_unexpected_state"
    paid = sandbox.intents.confirm(intent.id, params={"payment_method": "pm_card_visa"})
    assert (paid.status, paid.payment_method) == ("succeeded", "pm_card_visa")


def test_a_good_card_is_charged_and_the_charge_is_in_the_ledger(sandbox: Sandbox, api: stripe.StripeClient) -> None:
    intent = sandbox.confirm(sandbox.create_intent())
    assert (intent.status, intent.amount_received) == ("succeeded", 2500)
    (charge,) = api.v1.charges.list().data
    assert charge.id == intent.latest_charge
    assert (charge.object, charge.payment_intent) == ("charge", intent.id)
    assert (charge.status, charge.paid, charge.amount, charge.currency) == ("succeeded", True, 2500, "eur")
    assert (charge.metadata["order_id"], charge.failure_code) == ("ord_1", None)
    assert charge.created == intent.created
    retrieved = sandbox.intents.retrieve(intent.id)
    assert retrieved.to_dict() == intent.to_dict()


def test_an_unusable_method_is_refused_at_create_by_a_bare_400(sandbox: Sandbox) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.create_intent("pm_sandbox_unusable")
    assert (refused.value.http_status, refused.value.code, refused.value.param) == (400, None, "payment_method")
    assert (sandbox.intents.list().data, sandbox.ledger()) == ([], [])


@pytest.mark.parametrize(
    ("method", "decline_code"),
    [
        ("pm_card_chargeDeclinedStolenCard", "stolen_card"),
        ("pm_card_chargeDeclined", "generic_decline"),
        ("pm_card_chargeDeclinedInsufficientFunds", "insufficient_funds"),
    ],
)
def test_a_declined_card_is_a_card_error_and_a_failed_charge(sandbox: Sandbox, method: str, decline_code: str) -> None:
    created = sandbox.create_intent(method)
    with pytest.raises(stripe.CardError) as declined:
        sandbox.confirm(created)
    assert (declined.value.http_status, declined.value.code) == (402, "card_declined")
    assert untyped(declined.value).error.decline_code == decline_code
    assert untyped(declined.value).error.payment_intent.id == created.id
    intent = sandbox.intents.retrieve(created.id)
    assert intent.status == "requires_payment_method"
    assert untyped(intent).last_payment_error.code == "card_declined"
    assert untyped(intent).last_payment_error.decline_code == decline_code
    assert (intent.payment_method, intent.amount_received) == (None, 0)
    (charge,) = sandbox.api.v1.charges.list().data
    assert (charge.id, charge.status, charge.paid) == (intent.latest_charge, "failed", False)
    assert charge.failure_code == "card_declined"


def test_a_declined_intent_can_be_paid_with_another_card(sandbox: Sandbox) -> None:
    intent = sandbox.create_intent("pm_card_chargeDeclined")
    with pytest.raises(stripe.CardError):
        sandbox.confirm(intent)
    paid = sandbox.intents.confirm(intent.id, params={"payment_method": "pm_card_visa"})
    assert (paid.status, paid.last_payment_error) == ("succeeded", None)
    assert sandbox.ledger() == [("ord_1", "succeeded"), ("ord_1", "failed")]


def test_a_succeeded_intent_cannot_be_confirmed_or_cancelled(sandbox: Sandbox) -> None:
    intent = sandbox.confirm(sandbox.create_intent())
    for request in (sandbox.intents.confirm, sandbox.intents.cancel):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            request(intent.id)
        assert (refused.value.http_status, refused.value.code) == (400, "payment_intent_unexpected_state")
        assert untyped(refused.value).error.payment_intent.status == "succeeded"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_a_cancelled_intent_cannot_be_confirmed_or_cancelled(sandbox: Sandbox) -> None:
    intent = sandbox.intents.cancel(sandbox.create_intent().id, params={"cancellation_reason": "abandoned"})
    assert (intent.status, intent.cancellation_reason) == ("canceled", "abandoned")
    assert intent.canceled_at is not None
    for request in (sandbox.intents.confirm, sandbox.intents.cancel):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            request(intent.id)
        assert (refused.value.http_status, refused.value.code) == (400, "payment_intent_unexpected_state")
    assert sandbox.ledger() == []


def test_an_unknown_intent_is_a_404(sandbox: Sandbox) -> None:
    for request in (sandbox.intents.retrieve, sandbox.intents.confirm, sandbox.intents.cancel):
        with pytest.raises(stripe.InvalidRequestError) as missing:
            request("pi_none")
        assert (missing.value.http_status, missing.value.code) == (404, "resource_missing")
