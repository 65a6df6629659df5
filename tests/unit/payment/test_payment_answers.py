"""An answer of the provider is used only if its intent fits the order: id, order, amount, currency and the charge."""

import json
from typing import Any

import pytest

from shared.orders.repository import orders
from tests.harness.line import Answer, Apply, Fault, answers_with, refuses
from tests.harness.shop import Delivery, Shop

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


def another_intent(shop: Shop, order_id: str = "ord_other", amount: int = 9900) -> dict[str, Any]:
    """An intent that anybody could confirm."""
    made = shop.provider.v1.payment_intents.create(
        {"amount": amount, "currency": "eur", "payment_method": "pm_card_visa", "metadata": {"order_id": order_id}}
    )
    body: dict[str, Any] = json.loads(json.dumps(made.to_dict()))
    return body


def intent_on_row(shop: Shop) -> str | None:
    row = shop.world.row("ord_1") or {}
    return row["intent_id"]["S"] if "intent_id" in row else None


def in_a_decline(body: dict[str, Any]) -> Fault:
    return refuses(402, "card_error", code="card_declined", payment_intent=body)


@pytest.mark.parametrize("how", ["answer", "decline"])
@pytest.mark.parametrize("status", ["requires_confirmation", "succeeded"])
def test_another_orders_intent_in_the_answer_to_create_is_parked_and_not_put_on_the_row(
    shop: Shop, status: str, how: str
) -> None:
    delivery = shop.delivery()
    other = another_intent(shop)
    body = other | (PAID if status == "succeeded" else {})
    shop.line.plan("create", answers(body) if how == "answer" else in_a_decline(body))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["intent_mismatch"]
    assert shop.line.calls == ["create"]
    assert intent_on_row(shop) is None
    assert shop.charges("ord_other") == []
    shop.until_quiet(Delivery(delivery.event, "message-2"))  # redriven once the provider answers as it should
    shop.settled_once()


@pytest.mark.parametrize("fact", NOT_OURS)
def test_a_created_intent_with_a_fact_that_is_not_the_orders_is_parked(shop: Shop, fact: str) -> None:
    delivery = shop.delivery()
    shop.line.plan("create", answers_with(**NOT_OURS[fact]))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["intent_mismatch"]
    assert shop.line.calls == ["create"]
    assert intent_on_row(shop) is None
    assert shop.charges() == []


@pytest.mark.parametrize("call", ["create", "confirm"])
@pytest.mark.parametrize("fact", NO_INTENT)
def test_an_answer_that_is_no_intent_is_not_used_and_the_intent_is_asked_about_again(
    shop: Shop, call: str, fact: str
) -> None:
    delivery = shop.delivery()
    shop.line.plan(call, answers_with(**NO_INTENT[fact]))

    shop.until_quiet(delivery)

    shop.settled_once()
    assert shop.intents() == ["succeeded"]


def test_a_created_intent_that_claims_to_be_paid_is_retrieved_and_then_confirmed(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.line.plan("create", answers_with(**PAID))

    assert shop.deliver(delivery) == []

    assert shop.line.calls == ["create", "retrieve", "confirm"]
    shop.settled_once()


def test_a_created_intent_that_claims_to_be_cancelled_is_retrieved_and_then_confirmed(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.line.plan("create", answers_with(status="canceled"))

    assert shop.deliver(delivery) == []

    assert shop.line.calls == ["create", "retrieve", "confirm"]
    shop.settled_once()


def test_a_created_intent_that_was_paid_by_an_earlier_attempt_settles_the_order(shop: Shop) -> None:
    """The row lost its intent; the provider's answer to the same key shows the intent as it is now."""
    delivery = shop.delivery()
    paid = another_intent(shop, "ord_1", 2500)
    shop.provider.v1.payment_intents.confirm(paid["id"])
    shop.line.plan("create", answers(paid | PAID))

    assert shop.deliver(delivery) == []

    assert shop.line.calls == ["create", "retrieve"]
    assert intent_on_row(shop) == paid["id"]
    shop.settled_once()


def test_a_created_intent_that_claims_to_be_paid_and_that_nobody_knows_is_not_put_on_the_row(shop: Shop) -> None:
    delivery = shop.delivery()
    unknown = another_intent(shop, "ord_1", 2500) | {"id": "pi_unknown"} | PAID
    shop.line.plan("create", answers(unknown))

    assert shop.deliver(delivery) == ["message-1"]

    assert intent_on_row(shop) is None
    shop.until_quiet(delivery)
    shop.settled_once()


@pytest.mark.parametrize("fact", ["another intent", *OTHER_FACTS, *NO_PAYMENT])
def test_an_answer_to_confirm_that_does_not_fit_is_not_used_and_the_intent_is_retrieved(shop: Shop, fact: str) -> None:
    delivery = shop.delivery()
    fault = executes_and_answers(another_intent(shop, "ord_1", 2500) | PAID)
    if fact != "another intent":
        fault = answers_with(**(NOT_OURS | NO_PAYMENT)[fact])
    shop.line.plan("confirm", fault)

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.state() == "placed"
    shop.until_quiet(delivery)

    assert shop.line.calls == ["create", "confirm", "retrieve"]
    shop.settled_once()


def test_a_confirmation_that_charged_nobody_and_claims_success_is_made_again(shop: Shop) -> None:
    delivery = shop.delivery()

    def fault(_: Apply) -> Answer:
        intent = shop.provider.v1.payment_intents.retrieve(intent_on_row(shop) or "").to_dict()
        return answers(intent | {"status": "succeeded"})(_)

    shop.line.plan("confirm", fault)

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.state() == "placed"
    shop.until_quiet(delivery)

    assert shop.line.calls == ["create", "confirm", "retrieve", "confirm"]
    shop.settled_once()


def test_another_intent_in_the_decline_of_a_confirmation_declines_nothing(shop: Shop) -> None:
    delivery = shop.delivery()
    shop.line.plan("confirm", in_a_decline(another_intent(shop) | {"status": "requires_payment_method"}))

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.state() == "placed"
    shop.until_quiet(delivery)

    shop.settled_once()


@pytest.mark.parametrize("fact", ["another intent", *OTHER_FACTS])
def test_an_answer_to_cancel_that_does_not_fit_is_not_used_and_the_intent_is_retrieved(shop: Shop, fact: str) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")
    fault = executes_and_answers(another_intent(shop, "ord_1", 2500) | PAID)
    if fact != "another intent":
        fault = answers_with(**NOT_OURS[fact])
    shop.line.plan("cancel", fault)

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.state() == "placed"
    shop.until_quiet(delivery)

    assert shop.line.calls == ["create", "confirm", "cancel", "retrieve"]
    shop.settled_once("declined")


@pytest.mark.parametrize("fact", OTHER_FACTS)
def test_a_retrieved_intent_with_a_fact_that_is_not_the_orders_is_parked(shop: Shop, fact: str) -> None:
    delivery = shop.delivery()
    intent = another_intent(shop, "ord_1", 2500)["id"]
    orders().fix_intent("ord_1", intent)
    shop.line.plan("retrieve", answers_with(**NOT_OURS[fact]))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["intent_mismatch"]
    assert shop.line.calls == ["retrieve"]
    assert intent_on_row(shop) == intent


@pytest.mark.parametrize("status", ["requires_confirmation", "succeeded", "canceled"])
def test_an_answer_to_retrieve_about_another_intent_of_the_order_is_parked(shop: Shop, status: str) -> None:
    delivery = shop.delivery()
    intent = another_intent(shop, "ord_1", 2500)["id"]
    orders().fix_intent("ord_1", intent)
    shop.line.plan("retrieve", answers(another_intent(shop, "ord_1", 2500) | PAID | {"status": status}))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["intent_mismatch"]
    assert shop.line.calls == ["retrieve"]
    assert shop.state() == "placed"
    assert intent_on_row(shop) == intent


@pytest.mark.parametrize("fact", NO_PAYMENT)
def test_a_succeeded_intent_without_the_charge_of_the_total_does_not_pay_the_order(shop: Shop, fact: str) -> None:
    delivery = shop.delivery()
    intent = another_intent(shop, "ord_1", 2500)["id"]
    orders().fix_intent("ord_1", intent)
    shop.line.plan("retrieve", answers_with(**PAID | NO_PAYMENT[fact]))

    assert shop.deliver(delivery) == []

    assert shop.parked() == ["effect_without_state"]
    assert shop.state() == "placed"
    assert intent_on_row(shop) == intent


def test_a_reason_of_another_type_does_not_reach_the_row(shop: Shop) -> None:
    delivery = shop.delivery("pm_card_chargeDeclined")
    shop.line.plan("confirm", refuses(500))
    failed = {"status": "requires_payment_method", "last_payment_error": {"decline_code": {"a": 1}, "code": 7}}
    shop.line.plan("retrieve", answers_with(**failed))

    shop.until_quiet(delivery)

    assert shop.state() == "declined"
    assert shop.result()["reason"] == "card_declined"
