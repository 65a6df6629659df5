"""An answer of the provider is used only if its intent fits the order: id, order, amount, currency and the charge."""

import json
from typing import Any

import pytest

from shared.orders.repository import orders
from tests.harness.payment import Delivery, Payments
from tests.harness.provider_connection import Answer, Apply, Fault, answers_with, refuses

NOT_OURS: dict[str, dict[str, Any]] = {
    "another order": {"metadata": {"order_id": "ord_other"}},
    "no order": {"metadata": {}},
    "no metadata": {"metadata": None},
    "a list of metadata": {"metadata": ["ord_1"]},
    "an order of another type": {"metadata": {"order_id": ["ord_1"]}},
    "another amount": {"amount": 1},
    "no amount": {"amount": None},
    "NaN": {"amount": float("nan")},
    "a bool": {"amount": True},
    "a string": {"amount": "2500"},
    "a float": {"amount": 2500.0},
    "another currency": {"currency": "usd"},
    "no currency": {"currency": None},
}
NO_PAYMENT: dict[str, dict[str, Any]] = {
    "no charge": {"latest_charge": None},
    "a charge of another type": {"latest_charge": 1},
    "nothing received": {"amount_received": 0},
    "less received": {"amount_received": 2499},
    "NaN received": {"amount_received": float("nan")},
    "a float received": {"amount_received": 2500.0},
    "received is missing": {"amount_received": None},
}
NO_INTENT: dict[str, dict[str, Any]] = {
    "no id": {"id": None},
    "an empty id": {"id": ""},
    "an id that is a path": {"id": "pi_1/confirm"},
    "an id without end": {"id": "pi_" + "x" * 300},
    "no status": {"status": None},
    "another object": {"object": "charge"},
}
OTHER_FACTS = ("another order", "another amount", "a float")
PAID = {"status": "succeeded", "amount_received": 2500, "latest_charge": "ch_elsewhere"}


def answers(body: Any, status: int = 200) -> Fault:
    """The provider executes nothing and answers with this body."""
    return lambda _: {"statusCode": status, "body": json.dumps(body), "headers": {}}


def executes_and_answers(body: Any) -> Fault:
    """The provider executes the request and answers with this body."""

    def fault(apply: Apply) -> Answer:
        apply()
        return answers(body)(apply)

    return fault


def another_intent(payments: Payments, order_id: str = "ord_other", amount: int = 9900) -> dict[str, Any]:
    """An intent that anybody could confirm."""
    made = payments.provider.v1.payment_intents.create(
        {"amount": amount, "currency": "eur", "payment_method": "pm_card_visa", "metadata": {"order_id": order_id}}
    )
    body: dict[str, Any] = json.loads(json.dumps(made.to_dict()))
    return body


def intent_on_row(payments: Payments) -> str | None:
    row = payments.world.row("ord_1") or {}
    return row["intent_id"]["S"] if "intent_id" in row else None


def in_a_decline(body: dict[str, Any]) -> Fault:
    return refuses(402, "card_error", code="card_declined", payment_intent=body)


@pytest.mark.parametrize("how", ["answer", "decline"])
@pytest.mark.parametrize("status", ["requires_confirmation", "succeeded"])
def test_another_orders_intent_in_the_answer_to_create_is_parked_and_not_put_on_the_row(
    payments: Payments, status: str, how: str
) -> None:
    delivery = payments.delivery()
    other = another_intent(payments)
    body = other | (PAID if status == "succeeded" else {})
    payments.connection.plan("create", answers(body) if how == "answer" else in_a_decline(body))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["intent_mismatch"]
    assert payments.connection.calls == ["create"]
    assert intent_on_row(payments) is None
    assert payments.charges("ord_other") == []
    payments.until_quiet(Delivery(delivery.event, "message-2"))  # redriven once the provider answers as it should
    payments.settled_once()


@pytest.mark.parametrize("fact", NOT_OURS)
def test_a_created_intent_with_a_fact_that_is_not_the_orders_is_parked(payments: Payments, fact: str) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", answers_with(**NOT_OURS[fact]))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["intent_mismatch"]
    assert payments.connection.calls == ["create"]
    assert intent_on_row(payments) is None
    assert payments.charges() == []


@pytest.mark.parametrize("call", ["create", "confirm"])
@pytest.mark.parametrize("fact", NO_INTENT)
def test_an_answer_that_is_no_intent_is_not_used_and_the_intent_is_asked_about_again(
    payments: Payments, call: str, fact: str
) -> None:
    delivery = payments.delivery()
    payments.connection.plan(call, answers_with(**NO_INTENT[fact]))

    payments.until_quiet(delivery)

    payments.settled_once()
    assert payments.intents() == ["succeeded"]


def test_a_created_intent_that_claims_to_be_paid_is_retrieved_and_then_confirmed(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", answers_with(**PAID))

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "retrieve", "confirm"]
    payments.settled_once()


def test_a_created_intent_that_claims_to_be_cancelled_is_retrieved_and_then_confirmed(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", answers_with(status="canceled"))

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "retrieve", "confirm"]
    payments.settled_once()


def test_a_created_intent_that_was_paid_by_an_earlier_attempt_settles_the_order(payments: Payments) -> None:
    """The row lost its intent; the provider's answer to the same key shows the intent as it is now."""
    delivery = payments.delivery()
    paid = another_intent(payments, "ord_1", 2500)
    payments.provider.v1.payment_intents.confirm(paid["id"])
    payments.connection.plan("create", answers(paid | PAID))

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "retrieve"]
    assert intent_on_row(payments) == paid["id"]
    payments.settled_once()


def test_a_created_intent_that_claims_to_be_paid_and_that_nobody_knows_is_not_put_on_the_row(
    payments: Payments,
) -> None:
    delivery = payments.delivery()
    unknown = another_intent(payments, "ord_1", 2500) | {"id": "pi_unknown"} | PAID
    payments.connection.plan("create", answers(unknown))

    assert payments.deliver(delivery) == ["message-1"]

    assert intent_on_row(payments) is None
    payments.until_quiet(delivery)
    payments.settled_once()


@pytest.mark.parametrize("fact", ["another intent", *OTHER_FACTS, *NO_PAYMENT])
def test_an_answer_to_confirm_that_does_not_fit_is_not_used_and_the_intent_is_retrieved(
    payments: Payments, fact: str
) -> None:
    delivery = payments.delivery()
    fault = executes_and_answers(another_intent(payments, "ord_1", 2500) | PAID)
    if fact != "another intent":
        fault = answers_with(**(NOT_OURS | NO_PAYMENT)[fact])
    payments.connection.plan("confirm", fault)

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.state() == "placed"
    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "retrieve"]
    payments.settled_once()


def test_a_confirmation_that_charged_nobody_and_claims_success_is_made_again(payments: Payments) -> None:
    delivery = payments.delivery()

    def fault(_: Apply) -> Answer:
        intent = payments.provider.v1.payment_intents.retrieve(intent_on_row(payments) or "").to_dict()
        return answers(intent | {"status": "succeeded"})(_)

    payments.connection.plan("confirm", fault)

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.state() == "placed"
    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "retrieve", "confirm"]
    payments.settled_once()


def test_another_intent_in_the_decline_of_a_confirmation_declines_nothing(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", in_a_decline(another_intent(payments) | {"status": "requires_payment_method"}))

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.state() == "placed"
    payments.until_quiet(delivery)

    payments.settled_once()


@pytest.mark.parametrize("fact", ["another intent", *OTHER_FACTS])
def test_an_answer_to_cancel_that_does_not_fit_is_not_used_and_the_intent_is_retrieved(
    payments: Payments, fact: str
) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    fault = executes_and_answers(another_intent(payments, "ord_1", 2500) | PAID)
    if fact != "another intent":
        fault = answers_with(**NOT_OURS[fact])
    payments.connection.plan("cancel", fault)

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.state() == "placed"
    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "cancel", "retrieve"]
    payments.settled_once("declined")


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_a_retrieved_intent_with_a_fact_that_is_not_the_orders_is_parked(payments: Payments, fact: str) -> None:
    delivery = payments.delivery()
    intent = another_intent(payments, "ord_1", 2500)["id"]
    orders().save_intent_id("ord_1", intent)
    payments.connection.plan("retrieve", answers_with(**NOT_OURS[fact]))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["intent_mismatch"]
    assert payments.connection.calls == ["retrieve"]
    assert intent_on_row(payments) == intent


@pytest.mark.parametrize("status", ["requires_confirmation", "succeeded", "canceled"])
def test_an_answer_to_retrieve_about_another_intent_of_the_order_is_parked(payments: Payments, status: str) -> None:
    delivery = payments.delivery()
    intent = another_intent(payments, "ord_1", 2500)["id"]
    orders().save_intent_id("ord_1", intent)
    payments.connection.plan("retrieve", answers(another_intent(payments, "ord_1", 2500) | PAID | {"status": status}))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["intent_mismatch"]
    assert payments.connection.calls == ["retrieve"]
    assert payments.state() == "placed"
    assert intent_on_row(payments) == intent


@pytest.mark.parametrize("fact", NO_PAYMENT)
def test_a_succeeded_intent_without_the_charge_of_the_total_does_not_pay_the_order(
    payments: Payments, fact: str
) -> None:
    delivery = payments.delivery()
    intent = another_intent(payments, "ord_1", 2500)["id"]
    orders().save_intent_id("ord_1", intent)
    payments.connection.plan("retrieve", answers_with(**PAID | NO_PAYMENT[fact]))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["effect_without_state"]
    assert payments.state() == "placed"
    assert intent_on_row(payments) == intent


def test_a_reason_of_another_type_does_not_reach_the_row(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("confirm", refuses(500))
    failed = {"status": "requires_payment_method", "last_payment_error": {"decline_code": {"a": 1}, "code": 7}}
    payments.connection.plan("retrieve", answers_with(**failed))

    payments.until_quiet(delivery)

    assert payments.state() == "declined"
    assert payments.result()["reason"] == "card_declined"
