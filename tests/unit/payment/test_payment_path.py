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
from functions.payment_sandbox import host
from shared.idempotency import client
from shared.orders import parse_row
from tests.harness.line import cut_before, meanwhile
from tests.harness.shop import WORKER_S, Delivery, Shop, metrics


def test_a_placed_order_is_charged_once_and_told(shop: Shop) -> None:
    delivery = shop.delivery()

    assert shop.deliver(delivery) == []

    shop.settled_once()
    row = parse_row(shop.world.row("ord_1") or {})
    assert shop.result() == {
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
    assert shop.outbox() == [
        ("order.paid", {"order_id": "ord_1", "currency": "EUR", "total": 2500, "payment_intent": row.intent_id})
    ]


def test_an_order_is_paid_when_the_provider_confirmed_and_not_before(shop: Shop) -> None:
    shop.line.plan("confirm", meanwhile(lambda: shop.world.clock.advance(1.5)))

    shop.deliver(shop.delivery())

    assert parse_row(shop.world.row("ord_1") or {}).paid_at == "2027-01-15T08:00:01.500Z"


def test_a_first_charge_takes_two_calls_to_the_provider_and_four_to_dynamodb(shop: Shop) -> None:
    shop.until_quiet(Delivery(shop.order("ord_0"), "message-0"))  # the process has its API key now
    delivery = shop.delivery()
    shop.line.calls.clear()

    shop.deliver(delivery)

    assert shop.line.calls == ["create", "confirm"]
    assert [name for name, _ in shop.world.wire.sent] == ["UpdateItem", "GetItem", "UpdateItem", "TransactWriteItems"]


def test_a_decline_takes_three_calls_to_the_provider(shop: Shop) -> None:
    shop.deliver(shop.delivery("pm_card_chargeDeclined"))

    assert shop.line.calls == ["create", "confirm", "cancel"]
    assert shop.intents() == ["canceled"]


def test_a_decline_is_a_stored_result_that_is_replayed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    delivery = shop.delivery("pm_card_chargeDeclinedInsufficientFunds")
    shop.deliver(delivery)
    row = parse_row(shop.world.row("ord_1") or {})
    stored = shop.result()
    calls = list(shop.line.calls)

    assert shop.deliver(delivery, delivery) == []

    shop.settled_once("declined")
    assert stored == shop.result()
    assert stored == {
        "order_id": "ord_1",
        "total": 2500,
        "currency": "EUR",
        "state": "declined",
        "payment_intent": row.intent_id,
        "reason": "insufficient_funds",
    }
    assert shop.outbox()[0][1]["reason"] == row.decline_reason == "insufficient_funds"
    assert shop.line.calls == calls
    assert metrics(capsys.readouterr().out) == {"FirstRun": 1, "DuplicateReplayed": 2}


def test_the_intent_says_what_is_charged_and_for_which_order(shop: Shop) -> None:
    shop.deliver(shop.delivery())

    created, confirmed = shop.line.requests
    assert shop.provider.v1.payment_intents.list().data[0].metadata["order_id"] == "ord_1"
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


def test_nothing_but_the_api_key_is_told_of_the_machine(shop: Shop) -> None:
    shop.deliver(shop.delivery())

    for request in shop.line.requests:
        assert request["headers"]["authorization"] == "Bearer sk_test_first"
        assert "x-stripe-client-telemetry" not in request["headers"]
        assert "platform" not in json.loads(request["headers"]["x-stripe-client-user-agent"])


def test_every_request_has_the_timeouts_of_its_stage_and_is_sent_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeouts = []
    send = requests.Session.send

    def sent(self: requests.Session, request: requests.PreparedRequest, **how: Any) -> requests.Response:
        timeouts.append(how["timeout"])
        return send(self, request, **how)

    monkeypatch.setattr(requests.Session, "send", sent)
    shop.line.plan("confirm", cut_before)

    shop.deliver(shop.delivery())

    assert timeouts == [(5.0, 15.0)] * 2
    assert shop.line.calls == ["create", "confirm"]


def test_logs_hold_ids_and_states_and_nobodys_data(shop: Shop, log: StringIO) -> None:
    shop.deliver(shop.delivery("pm_card_chargeDeclined"))

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


def test_the_api_key_is_fetched_once_a_process(shop: Shop) -> None:
    orders = [shop.order(f"ord_{n}") for n in range(3)]

    for order in orders:
        shop.until_quiet(Delivery(order, f"message of {order.order_id}"))

    assert shop.world.wire.count("GetSecretValue") == 1


def test_a_rotated_api_key_is_fetched_again_and_the_order_finishes(shop: Shop) -> None:
    shop.until_quiet(Delivery(shop.order("ord_0"), "message-0"))
    _rotate("ours", "sk_test_second\n")  # as a file ends that somebody put there
    _rotate("theirs", "sk_test_second")
    delivery = shop.delivery()

    assert shop.deliver(delivery) == ["message-1"]
    assert shop.deliver(delivery) == []

    assert shop.world.wire.count("GetSecretValue") == 1
    assert shop.line.requests[-1]["headers"]["authorization"] == "Bearer sk_test_second"
    assert shop.state() == "paid"


def test_a_wrong_api_key_is_asked_for_once_a_try_and_parks_nothing(shop: Shop) -> None:
    _rotate("ours", "sk_test_wrong")
    delivery = shop.delivery()

    for _ in range(3):
        assert shop.deliver(delivery) == ["message-1"]

    assert shop.line.calls == ["create"] * 3
    assert shop.world.wire.count("GetSecretValue") == 3
    assert shop.parked() == []


def test_the_sample_event_is_a_delivery_that_is_paid(shop: Shop) -> None:
    event = json.loads(Path("events/payment.json").read_text())
    data = json.loads(event["Records"][0]["body"])["data"]
    shop.order(data["order_id"], data["payment_method"], data["total"])

    assert handler(event, shop.world.context(WORKER_S)) == {"batchItemFailures": []}

    assert shop.charges(data["order_id"]) == [("succeeded", data["total"])]


def test_the_operation_is_part_of_every_key_for_ever(shop: Shop) -> None:
    assert charge.record_key(shop.order()) == "payment.charge#ord_1"


def _form(request: dict[str, object]) -> dict[str, list[str]]:
    return parse_qs(base64.b64decode(str(request["body"])).decode())


def _rotate(secret: str, api_key: str) -> None:
    client("secretsmanager").put_secret_value(SecretId=secret, SecretString=api_key)
    host.secret.cache_clear()
