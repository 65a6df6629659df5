"""The straight path: what is charged, told, stored and asked for."""

import base64
import json
import logging
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import requests

from functions.payment.handler import charge, handler
from shared.orders import parse_row
from tests.harness.payment import WORKER_S, Delivery, Payments, metrics
from tests.harness.provider_connection import cut_before, meanwhile


def test_a_placed_order_is_charged_once_and_told(payments: Payments) -> None:
    delivery = payments.delivery()

    assert payments.deliver(delivery) == []

    payments.settled_once()
    row = parse_row(payments.world.row("ord_1") or {})
    assert payments.result() == {
        "order_id": "ord_1",
        "total": 2500,
        "currency": "EUR",
        "state": "paid",
        "payment_intent": row.intent_id,
        "charge": row.charge_id,
    }
    assert row.charge_id
    assert row.charge_id.startswith("ch_")
    assert row.paid_at == "2027-01-15T08:00:00.000Z"
    assert payments.outbox() == [
        ("order.paid", {"order_id": "ord_1", "currency": "EUR", "total": 2500, "payment_intent": row.intent_id})
    ]


def test_an_order_is_paid_when_the_provider_confirmed_and_not_before(payments: Payments) -> None:
    payments.connection.plan("confirm", meanwhile(lambda: payments.world.clock.advance(1.5)))

    payments.deliver(payments.delivery())

    assert parse_row(payments.world.row("ord_1") or {}).paid_at == "2027-01-15T08:00:01.500Z"


def test_a_first_charge_takes_two_calls_to_the_provider_and_four_to_dynamodb(payments: Payments) -> None:
    payments.until_quiet(Delivery(payments.order("ord_0"), "message-0"))  # the process has its API key now
    delivery = payments.delivery()
    payments.connection.calls.clear()

    payments.deliver(delivery)

    assert payments.connection.calls == ["create", "confirm"]
    assert [name for name, _ in payments.world.wire.sent] == [
        "UpdateItem",
        "GetItem",
        "UpdateItem",
        "TransactWriteItems",
    ]


def test_a_decline_takes_three_calls_to_the_provider(payments: Payments) -> None:
    payments.deliver(payments.delivery("pm_card_chargeDeclined"))

    assert payments.connection.calls == ["create", "confirm", "cancel"]
    assert payments.intents() == ["canceled"]


def test_a_decline_is_a_stored_result_that_is_replayed(payments: Payments, capsys: pytest.CaptureFixture[str]) -> None:
    delivery = payments.delivery("pm_card_chargeDeclinedInsufficientFunds")
    payments.deliver(delivery)
    row = parse_row(payments.world.row("ord_1") or {})
    stored = payments.result()
    calls = list(payments.connection.calls)

    assert payments.deliver(delivery, delivery) == []

    payments.settled_once("declined")
    assert stored == payments.result()
    assert stored == {
        "order_id": "ord_1",
        "total": 2500,
        "currency": "EUR",
        "state": "declined",
        "payment_intent": row.intent_id,
        "reason": "insufficient_funds",
    }
    assert payments.outbox()[0][1]["reason"] == row.decline_reason == "insufficient_funds"
    assert payments.connection.calls == calls
    assert metrics(capsys.readouterr().out) == {"FirstRun": 1, "DuplicateReplayed": 2}


def test_the_intent_says_what_is_charged_and_for_which_order(payments: Payments) -> None:
    payments.deliver(payments.delivery())

    created, confirmed = payments.connection.requests
    assert payments.provider.v1.payment_intents.list().data[0].metadata["order_id"] == "ord_1"
    assert _form(created) == {
        "amount": ["2500"],
        "currency": ["eur"],
        "payment_method": ["pm_card_visa"],
        "automatic_payment_methods[enabled]": ["true"],
        "automatic_payment_methods[allow_redirects]": ["never"],
        "metadata[order_id]": ["ord_1"],
    }
    assert created["headers"]["idempotency-key"] == "ord_1"
    # It names no payment method: an intent whose card was declined has none left and can not be charged again.
    assert _form(confirmed) == {"error_on_requires_action": ["true"]}
    assert confirmed["headers"]["idempotency-key"].endswith("/confirm/1")


def test_nothing_but_the_api_key_is_told_of_the_machine(payments: Payments) -> None:
    payments.deliver(payments.delivery())

    for request in payments.connection.requests:
        assert request["headers"]["authorization"] == "Bearer sk_test_first"
        assert "x-stripe-client-telemetry" not in request["headers"]
        assert "platform" not in json.loads(request["headers"]["x-stripe-client-user-agent"])


def test_every_request_has_the_timeouts_of_its_stage_and_is_sent_once(
    payments: Payments, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts = []
    send = requests.Session.send

    def sent(self: requests.Session, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        timeouts.append(how["timeout"])
        return send(self, request, **how)

    monkeypatch.setattr(requests.Session, "send", sent)
    payments.connection.plan("confirm", cut_before)

    payments.deliver(payments.delivery())

    assert timeouts == [(5.0, 15.0)] * 2
    assert payments.connection.calls == ["create", "confirm"]


def test_logs_hold_ids_and_states_and_nobodys_data(payments: Payments, log: StringIO) -> None:
    payments.deliver(payments.delivery("pm_card_chargeDeclined"))

    output = log.getvalue()
    lines = [json.loads(line) for line in output.splitlines()]
    ours = [line for line in lines if line["message"] == "provider"]
    assert [(line["call"], line["status"]) for line in ours] == [
        ("create", "requires_confirmation"),
        ("confirm", "requires_payment_method"),
        ("cancel", "canceled"),
    ]
    assert all(line["intent"].startswith("pi_") and line["request_id"].startswith("req_") for line in ours)
    assert all(line["correlation_id"] == "c-1" for line in ours)
    for private in ("pm_card", "buyer@example.com", "A. Buyer", "sk_test", "Your card was declined"):
        assert private not in output


def test_the_sdk_logs_nothing_of_what_it_sends_or_receives() -> None:
    assert not logging.getLogger("stripe").isEnabledFor(logging.INFO)


def test_the_sample_event_is_a_delivery_that_is_paid(payments: Payments) -> None:
    event = json.loads(Path("events/payment.json").read_text())
    data = json.loads(event["Records"][0]["body"])["data"]
    payments.order(data["order_id"], data["payment_method"], data["total"])

    assert handler(event, payments.world.context(WORKER_S)) == {"batchItemFailures": []}

    assert payments.charges(data["order_id"]) == [("succeeded", data["total"])]


def test_the_operation_is_part_of_every_key_for_ever(payments: Payments) -> None:
    assert charge.record_key(payments.order()) == "payment.charge#ord_1"


def _form(request: dict[str, object]) -> dict[str, list[str]]:
    return parse_qs(base64.b64decode(str(request["body"])).decode())
