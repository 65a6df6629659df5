"""The provider is late, busy, broken or wrong: wait, then ask again about the same intent."""

from collections.abc import Mapping
from typing import Any

import pytest

from functions.payment.handler import charge
from functions.payment.provider import INTENT_PATIENCE_S
from shared.idempotency import Permanent, StepError
from shared.orders.repository import orders
from tests.harness.payment import Delivery, Payments
from tests.harness.provider_connection import (
    Answer,
    Apply,
    Fault,
    answers_with,
    cut_after,
    cut_before,
    fails_after,
    refuses,
)

REFUSED: dict[str, Fault] = {  # it says itself that it did nothing, and the next attempt may succeed
    "no such intent": refuses(404, "invalid_request_error", code="resource_missing", param="intent"),
    "wrong API key": refuses(401, "invalid_request_error"),
    "rate limit": refuses(429, "invalid_request_error", code="rate_limit"),
    "object locked": refuses(429, "invalid_request_error", code="lock_timeout"),
}
SILENT: dict[str, Fault] = {  # it may have done it, for all that a client can know; here it did not
    "key in use": refuses(409, "invalid_request_error", code="idempotency_key_in_use"),
    "error": refuses(500),
    "unavailable": refuses(503),
    "no connection": cut_before,
}
DONE: dict[str, Fault] = {  # it has done it, and does not say so
    "error after": fails_after(500),
    "gateway error after": fails_after(502, '{"message": "Internal Server Error"}'),
    "no JSON after": fails_after(502, "<html>"),
    "answer lost": cut_after,
}


@pytest.mark.parametrize("call", ["create", "retrieve", "cancel"])
def test_trouble_with_a_call_that_charges_nothing_is_not_done(payments: Payments, call: str) -> None:
    faults = REFUSED | SILENT | DONE
    if call == "create":  # it names no intent
        del faults["no such intent"]

    assert _results(payments, call, faults) == dict.fromkeys(faults, "NotDone")


def test_trouble_with_the_confirmation_is_unknown_unless_the_provider_says_that_it_did_nothing(
    payments: Payments,
) -> None:
    assert _results(payments, "confirm", REFUSED | SILENT | DONE) == {
        **dict.fromkeys(REFUSED, "NotDone"),
        **dict.fromkeys(SILENT | DONE, "Unknown"),
    }


def test_an_order_that_meets_all_of_it_in_turn_is_charged_once(payments: Payments) -> None:
    delivery = payments.delivery()
    weather = [fault for name, fault in (REFUSED | SILENT).items() if name != "no such intent"]
    for call in ("create", "confirm"):
        payments.connection.plan(call, *weather)
    payments.connection.plan("create", cut_after)
    payments.connection.plan("confirm", cut_after)
    payments.connection.plan("retrieve", *weather)

    payments.until_quiet(delivery)

    payments.settled_once()
    assert payments.intents() == ["succeeded"]


def test_a_decline_that_meets_all_of_it_in_turn_is_declined_once(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("cancel", *REFUSED.values(), *SILENT.values(), cut_after)

    payments.until_quiet(delivery)

    payments.settled_once("declined")
    assert payments.connection.calls.count("confirm") == 1
    assert payments.result()["reason"] == "generic_decline"


@pytest.mark.parametrize("fault", ["slow", "error_before", "error_after", "drop"])
@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
def test_a_card_with_which_the_sandbox_misbehaves_is_charged_once(
    payments: Payments, fault: str, forgotten: bool
) -> None:
    delivery = payments.delivery(f"pm_sandbox_{fault}")
    assert payments.deliver(delivery) == ["message-1"]
    assert payments.waits()[-1] >= 122  # unknown: the claim is kept until the lease ends
    if forgotten:
        payments.forget()

    payments.until_quiet(delivery)

    payments.settled_once()
    assert payments.intents() == ["succeeded"]


def test_what_is_known_not_to_be_done_comes_back_soon(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", REFUSED["rate limit"])

    payments.deliver(delivery)

    assert payments.waits()[-1] <= 2


def test_a_failure_that_the_provider_keeps_for_a_day_is_left_to_it(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", refuses(500), _kept(500))

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.deliver(delivery) == []

    assert _keys(payments, "create") == ["ord_1", "ord_1", "ord_1/2"]
    payments.settled_once()


def test_a_failed_confirmation_that_the_provider_keeps_is_repeated_under_another_key(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", _kept(500))

    payments.until_quiet(delivery)

    confirmed = [key.partition("/")[2] for key in _keys(payments, "confirm")]
    assert confirmed == ["confirm/1", "confirm/2"]
    payments.settled_once()


def test_failures_that_are_kept_under_both_keys_cost_another_try(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", _kept(500), _kept(400), _kept(500))

    payments.until_quiet(delivery)

    assert _keys(payments, "create") == ["ord_1", "ord_1/1", "ord_1", "ord_1/2"]
    payments.settled_once()


def test_a_key_that_was_spent_on_another_request_does_not_block_the_order(payments: Payments) -> None:
    _made_by_hand(payments, amount=1, key="ord_1")  # such as by a version of ours that asked in other words
    delivery = payments.delivery()

    assert payments.deliver(delivery) == []

    assert _keys(payments, "create") == ["ord_1", "ord_1/1"]
    assert payments.intents() == ["requires_confirmation", "succeeded"]
    payments.settled_once()


def test_an_intent_that_is_being_processed_is_waited_for(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", answers_with(status="processing"))
    payments.connection.plan("retrieve", answers_with(status="processing"))

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.state() == "placed"
    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "retrieve", "retrieve"]
    payments.settled_once()


@pytest.mark.parametrize("status", ["requires_capture", "something_new"])
def test_a_state_that_is_not_ours_is_neither_confirmed_nor_cancelled(payments: Payments, status: str) -> None:
    delivery = payments.delivery()
    orders().save_intent_id("ord_1", _made_by_hand(payments))
    payments.connection.plan("retrieve", answers_with(status=status))

    assert payments.deliver(delivery) == ["message-1"]

    assert payments.connection.calls == ["retrieve"]
    assert payments.parked() == []


def test_an_intent_that_waits_for_a_customer_who_is_not_here_is_declined(payments: Payments) -> None:
    delivery = payments.delivery()
    orders().save_intent_id("ord_1", _made_by_hand(payments))
    payments.connection.plan("retrieve", answers_with(status="requires_action"))

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["retrieve", "cancel"]
    assert payments.intents() == ["canceled"]
    assert payments.result()["state"] == "declined"
    assert payments.result()["reason"] == "authentication_required"


def test_a_card_error_without_an_intent_in_it_is_a_decline(payments: Payments) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined")
    payments.connection.plan("confirm", _declines_in_few_words)

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "confirm", "cancel"]
    payments.settled_once("declined")


@pytest.mark.parametrize("status", ["requires_confirmation", "requires_payment_method"])
def test_a_card_error_is_a_decline_in_whatever_state_it_leaves_the_intent(payments: Payments, status: str) -> None:
    delivery = payments.delivery()
    error = {"code": "authentication_required", "decline_code": "authentication_required"}
    payments.connection.plan("confirm", _with_the_intent(payments, 402, "card_error", status, **error))

    assert payments.deliver(delivery) == []

    assert payments.connection.calls == ["create", "confirm", "cancel"]
    assert payments.intents() == ["canceled"]
    assert payments.result()["reason"] == "authentication_required"


@pytest.mark.parametrize(
    ("status", "code", "result"),
    [(400, "of_a_later_version", "refused_by_provider"), (429, "lock_timeout", "NotDone"), (500, None, "Unknown")],
)
def test_an_intent_in_an_error_is_no_answer_where_it_only_waits_to_be_confirmed(
    payments: Payments, status: int, code: str | None, result: str
) -> None:
    fault = _with_the_intent(payments, status, "invalid_request_error", "requires_confirmation", code=code)

    assert _results(payments, "confirm", {"fault": fault}) == {"fault": result}

    assert payments.intents() == ["requires_confirmation"]


UNKNOWN_INTENT = REFUSED["no such intent"]


@pytest.mark.parametrize("call", ["retrieve", "confirm", "cancel"])
def test_an_intent_on_the_row_that_the_provider_does_not_know_is_retried_for_a_minute_then_parked(
    payments: Payments, call: str
) -> None:
    delivery = payments.delivery("pm_card_chargeDeclined" if call == "cancel" else "pm_card_visa")
    payments.world.clock.advance(7200)  # an outage between the order and its intent does not count
    intent = _made_by_hand(payments)
    orders().save_intent_id("ord_1", intent)
    payments.connection.plan(call, *[UNKNOWN_INTENT] * 3)
    if call == "cancel":
        payments.connection.plan("retrieve", *[answers_with(status="requires_action")] * 3)

    assert payments.deliver(delivery) == ["message-1"]
    payments.world.clock.advance(INTENT_PATIENCE_S - 2)
    assert payments.deliver(delivery) == ["message-1"]
    assert payments.parked() == []
    payments.world.clock.advance(2)
    assert payments.deliver(delivery) == []

    assert payments.parked() == ["intent_missing"]
    assert "create" not in payments.connection.calls
    assert (payments.world.row("ord_1") or {})["intent_id"] == {"S": intent}
    assert payments.charges() == []


def test_a_parked_order_whose_intent_the_provider_knows_again_is_charged_once(payments: Payments) -> None:
    """The usual cause is the key of another account."""
    delivery = payments.delivery()
    orders().save_intent_id("ord_1", _made_by_hand(payments))
    payments.world.clock.advance(INTENT_PATIENCE_S)
    payments.connection.plan("retrieve", *[UNKNOWN_INTENT] * 2)
    payments.deliver(delivery)
    assert payments.parked() == ["intent_missing"]

    redriven = Delivery(delivery.event, "message-2")
    assert payments.deliver(redriven) == []  # the key is still wrong: parked again at once
    assert payments.parked() == ["intent_missing"]
    payments.until_quiet(Delivery(delivery.event, "message-3"))

    payments.settled_once()
    assert payments.intents() == ["succeeded"]


def test_an_intent_that_can_be_read_only_later_is_waited_for(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", UNKNOWN_INTENT, UNKNOWN_INTENT)

    payments.until_quiet(delivery)

    payments.settled_once()


def _declines_in_few_words(apply: Apply) -> Answer:
    apply()
    return refuses(402, "card_error", code="card_declined")(apply)


def _with_the_intent(payments: Payments, status: int, kind: str, intent_status: str, **error: Any) -> Fault:
    """Refused, with the intent in the error."""

    def fault(apply: Apply) -> Answer:
        (made,) = payments.provider.v1.payment_intents.list().data
        return refuses(status, kind, payment_intent=made.to_dict() | {"status": intent_status}, **error)(apply)

    return fault


def _kept(status: int) -> Fault:
    return refuses(status, "api_error" if status == 500 else "invalid_request_error", {"Idempotent-Replayed": "true"})


def _keys(payments: Payments, call: str) -> list[str]:
    sent = zip(payments.connection.calls, payments.connection.requests, strict=True)
    return [request["headers"]["idempotency-key"] for name, request in sent if name == call]


def _made_by_hand(payments: Payments, amount: int = 2500, key: str = "by hand") -> str:
    made = payments.provider.v1.payment_intents.create(
        {
            "amount": amount,
            "currency": "eur",
            "payment_method": "pm_card_visa",
            "metadata": {"order_id": "ord_1"},
        },
        {"idempotency_key": key},
    )
    return made.id


def _results(payments: Payments, call: str, faults: Mapping[str, Fault]) -> dict[str, str]:
    """What the step says when a call meets each fault, each time with a new order; and nobody is charged twice."""
    verdicts = {}
    for n, (name, fault) in enumerate(faults.items()):
        order = payments.order(f"ord_{n}", "pm_card_chargeDeclined" if call == "cancel" else "pm_card_visa")
        if call == "retrieve":
            orders().save_intent_id(order.order_id, f"pi_{n}")
        payments.connection.plan(call, fault)
        try:
            charge(order, payments.attempt(order))
        except Permanent as error:
            verdicts[name] = error.reason
        except StepError as error:
            verdicts[name] = type(error).__name__
        charged = call == "cancel" or (call == "confirm" and name in DONE)
        assert len(payments.charges(order.order_id)) == charged
    return verdicts
