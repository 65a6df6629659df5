"""A refusal of the provider ends the order, parks the message under a name, or is tried again. One table decides."""

from typing import Any

import pytest
import stripe

from functions.payment.errors import REFUSALS, End
from shared.orders import orders, parse_row
from tests.harness.payment import Delivery, Payments
from tests.harness.provider_connection import (
    Answer,
    Apply,
    Fault,
    answers_with,
    cut_after,
    fails_after,
    meanwhile,
    refuses,
)


def bad(code: str | None = None, param: str | None = None, status: int = 400, **more: Any) -> Fault:
    """The provider refuses the request itself."""
    fields = {"code": code, "param": param, **more}
    return refuses(status, "invalid_request_error", **{name: value for name, value in fields.items() if value})


DECLINED: dict[str, tuple[Fault, str]] = {
    "a method that was used before": (bad(param="payment_method"), "payment_method_unusable"),
    "a method in the wrong state": (
        bad("payment_method_unexpected_state", "payment_method"),
        "payment_method_unusable",
    ),
    "a method of the wrong type": (bad("payment_intent_incompatible_payment_method"), "payment_method_unusable"),
    "a method of another currency": (bad("payment_method_currency_mismatch"), "payment_method_unusable"),
    "too little": (bad("amount_too_small", "amount"), "amount_too_small"),
    "too much": (bad("amount_too_large", "amount"), "amount_too_large"),
    "an expired card": (refuses(402, "card_error", code="expired_card"), "expired_card"),
    "a stolen card": (refuses(402, "card_error", code="card_declined", decline_code="stolen_card"), "stolen_card"),
    "a card error that says nothing": (refuses(402, "card_error"), "card_declined"),
}
PARKED: dict[str, tuple[Fault, str]] = {
    "a method that does not exist": (bad("resource_missing", "payment_method"), "payment_method_missing"),
    "a method that does not exist, as 404": (bad("resource_missing", "payment_method", 404), "payment_method_missing"),
    "a currency that is not enabled": (bad(param="currency"), "currency_not_supported"),
    "a restricted key": (bad(status=403), "permission_denied"),
    "a key of test mode": (bad("testmode_charges_only", status=403), "permission_denied"),
    "a bare 400": (bad(), "refused_by_provider"),
    "a type that is not enabled": (bad("payment_intent_invalid_parameter", "payment_method"), "refused_by_provider"),
    "a code of a later version": (bad("of_a_later_version", "payment_method"), "refused_by_provider"),
    "a path that does not exist": (bad(status=404), "refused_by_provider"),
}


@pytest.mark.parametrize("case", DECLINED)
def test_a_refusal_of_create_that_is_the_customers_fault_declines_the_order(payments: Payments, case: str) -> None:
    fault, reason = DECLINED[case]
    delivery = payments.delivery()
    payments.connection.plan("create", fault)

    assert payments.deliver(delivery) == []

    row = parse_row(payments.world.row("ord_1") or {})
    assert (row.state, row.decline_reason, row.intent_id) == ("declined", reason, None)
    assert payments.result()["reason"] == reason
    told = "card_declined" if reason == "stolen_card" else reason
    facts = {"order_id": "ord_1", "currency": "EUR", "total": 2500, "payment_intent": "", "reason": told}
    assert payments.outbox() == [("order.declined", facts)]
    assert (payments.connection.calls, payments.charges(), payments.parked()) == (["create"], [], [])


@pytest.mark.parametrize("case", DECLINED)
def test_a_refusal_of_confirm_that_is_the_customers_fault_cancels_the_intent_and_declines(
    payments: Payments, case: str
) -> None:
    fault, reason = DECLINED[case]
    delivery = payments.delivery()
    payments.connection.plan("confirm", fault)

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "confirm", "cancel"]
    assert payments.intents() == ["canceled"]
    row = parse_row(payments.world.row("ord_1") or {})
    assert (row.state, row.decline_reason, payments.charges()) == ("declined", reason, [])


@pytest.mark.parametrize("call", ["create", "retrieve", "confirm", "cancel"])
@pytest.mark.parametrize("case", PARKED)
def test_a_refusal_that_may_be_the_operators_fault_is_parked_by_name_and_a_redrive_finishes(
    payments: Payments, call: str, case: str
) -> None:
    fault, reason = PARKED[case]
    delivery = payments.delivery("pm_card_chargeDeclined" if call == "cancel" else "pm_card_visa")
    if call == "retrieve":
        payments.connection.plan("create", answers_with(status="processing"))
    payments.connection.plan(call, fault)

    assert payments.deliver(delivery) == []

    assert payments.parked() == [reason]
    assert payments.state() == "placed"
    assert payments.charges() == ([("failed", 2500)] if call == "cancel" else [])
    payments.until_quiet(Delivery(delivery.event, "message-2"))
    payments.settled_once("declined" if call == "cancel" else "paid")


def test_a_refused_confirmation_of_an_intent_that_was_paid_pays_the_order(payments: Payments) -> None:
    """A late copy of an earlier confirmation is executed between the refusal and the cancel."""
    delivery = payments.delivery()
    payments.connection.plan("confirm", payments.connection.hold, bad(param="payment_method"))
    payments.connection.plan("cancel", meanwhile(payments.connection.let_go))

    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "retrieve", "confirm", "cancel"]
    payments.settled_once()


def test_a_cancel_whose_answer_says_that_the_intent_succeeded_with_other_facts_is_unknown(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("cancel", answers_with(status="succeeded", amount_received=1, latest_charge="ch_1"))

    assert payments.deliver(delivery) == ["message-1"]

    assert payments.waits()[-1] >= 120  # until the lease ends: the claim was kept
    payments.until_quiet(delivery)
    payments.settled_once("declined")


def test_a_method_that_the_sandbox_refuses_declines_the_order_once(payments: Payments) -> None:
    delivery = payments.delivery("pm_sandbox_unusable")

    assert payments.deliver(delivery) == []
    payments.forget()
    assert payments.deliver(Delivery(delivery.event, "message-2")) == []

    assert payments.connection.calls == ["create"]
    assert (payments.state(), payments.intents(), payments.parked()) == ("declined", [], [])
    assert [kind for kind, _ in payments.outbox()] == ["order.declined"]


@pytest.mark.parametrize("fault", [refuses(500), cut_after, fails_after(502, "<html>")], ids=["500", "cut", "proxy"])
def test_a_refusal_that_is_stored_is_asked_for_under_another_key(payments: Payments, fault: Fault) -> None:
    """The first create failed in an unknown way; the provider may have stored a refusal under the order's key."""
    delivery = payments.delivery()
    payments.connection.plan("create", fault, _stored(bad(param="currency")))

    payments.until_quiet(delivery)

    payments.settled_once()


def _stored(refusal: Fault) -> Fault:
    def fault(apply: Apply) -> Answer:
        answer = refusal(apply)
        return answer | {"headers": {"Idempotent-Replayed": "true"}}

    return fault


def test_an_unsettled_order_whose_row_is_marked_is_declined_and_never_confirmed(payments: Payments) -> None:
    """The person's command died after it marked the row: the next delivery ends the order."""
    delivery = payments.delivery()
    orders().mark_settling("ord_1", "customer_asked")

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == []
    row = parse_row(payments.world.row("ord_1") or {})
    assert (row.state, row.decline_reason) == ("declined", "customer_asked")


@pytest.mark.parametrize("when", ["before the attempt", "while the intent is retrieved"])
def test_a_marked_order_with_an_intent_is_cancelled_and_never_confirmed(payments: Payments, when: str) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", refuses(429, "invalid_request_error", code="rate_limit"))
    assert payments.deliver(delivery) == ["message-1"]

    def mark() -> None:
        orders().mark_settling("ord_1", "customer_asked")

    if when == "before the attempt":
        mark()
    else:
        payments.connection.plan("retrieve", meanwhile(mark))
    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "retrieve", "cancel"]
    row = parse_row(payments.world.row("ord_1") or {})
    assert (row.state, row.decline_reason, payments.intents()) == ("declined", "customer_asked", ["canceled"])


def test_a_marked_order_gets_no_intent(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", meanwhile(lambda: orders().mark_settling("ord_1", "customer_asked")))

    assert payments.deliver(delivery) == ["message-1"]
    payments.until_quiet(delivery)

    row = parse_row(payments.world.row("ord_1") or {})
    assert (row.state, row.intent_id, payments.intents()) == ("declined", None, ["requires_confirmation"])
    assert payments.connection.calls == ["create"]


def test_a_marked_order_whose_intent_was_paid_is_paid(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", cut_after)
    assert payments.deliver(delivery) == ["message-1"]
    orders().mark_settling("ord_1", "customer_asked")

    payments.until_quiet(delivery)

    payments.settled_once()


def test_every_row_of_the_table_has_a_source_and_every_error_of_the_sdk_that_refuses_is_listed() -> None:
    assert all(refusal.source.startswith("https://docs.stripe.com/") for refusal in REFUSALS)
    assert {refusal.error for refusal in REFUSALS} == {
        stripe.AuthenticationError,
        stripe.CardError,
        stripe.IdempotencyError,
        stripe.InvalidRequestError,
        stripe.PermissionError,
        stripe.RateLimitError,
    }
    assert REFUSALS[-1].end is End.PARKED
