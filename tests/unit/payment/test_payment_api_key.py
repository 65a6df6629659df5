"""The API key: fetched seldom, healed within minutes, never logged, and of the stage's mode."""

import json
from io import StringIO

import pytest

from functions.payment.errors import KEY_PATIENCE_S
from functions.payment.provider import KEY_AGE_S, KEY_PAUSE_S
from functions.payment_sandbox import host
from shared.idempotency import client
from tests.harness.interceptor import refused
from tests.harness.payment import Delivery, Payments
from tests.harness.payment_fixtures import API_KEY
from tests.harness.provider_connection import Answer, Apply, Fault, answers_with, refuses

UNAUTHORISED = refuses(401, "invalid_request_error")
# What a call with the wrong key meets, and the reason under which it is parked; None: it is tried again for an hour.
WRONG_KEY: dict[str, tuple[Fault, str | None]] = {
    "revoked": (UNAUTHORISED, None),
    "restricted": (refuses(403, "invalid_request_error"), "permission_denied"),
    "of another account": (
        refuses(400, "invalid_request_error", code="resource_missing", param="payment_method"),
        "payment_method_missing",
    ),
}


def store(secret: str, text: str) -> None:
    client("secretsmanager").put_secret_value(SecretId=secret, SecretString=text)
    host.secret.cache_clear()


def fetches(payments: Payments) -> int:
    return payments.world.wire.count("GetSecretValue")


def only_with_the_right_key(payments: Payments, otherwise: Fault) -> Fault:
    def fault(apply: Apply) -> Answer:
        sent = payments.connection.requests[-1]["headers"]["authorization"]
        return apply() if sent == f"Bearer {API_KEY}" else otherwise(apply)

    return fault


def test_a_process_fetches_the_key_once_and_again_when_it_is_five_minutes_old(payments: Payments) -> None:
    deliveries = [Delivery(payments.order(f"ord_{n}"), f"message-{n}") for n in range(4)]
    for delivery in deliveries[:3]:
        payments.until_quiet(delivery)
    assert fetches(payments) == 1

    payments.world.clock.advance(KEY_AGE_S)
    payments.until_quiet(deliveries[3])

    assert fetches(payments) == 2
    assert payments.state("ord_3") == "paid"


@pytest.mark.parametrize("case", WRONG_KEY)
def test_a_corrected_key_is_used_in_the_attempt_that_meets_the_refusal(payments: Payments, case: str) -> None:
    fault, _ = WRONG_KEY[case]
    store("ours", "sk_test_wrong")
    payments.connection.plan("create", *[only_with_the_right_key(payments, fault)] * 3)
    delivery = payments.delivery()
    payments.deliver(delivery)
    payments.parked()
    store("ours", API_KEY)
    payments.world.clock.advance(KEY_PAUSE_S)

    assert payments.deliver(Delivery(delivery.event, "message-2")) == []

    payments.settled_once()
    assert fetches(payments) == 2


@pytest.mark.parametrize("case", WRONG_KEY)
def test_a_key_that_stays_wrong_is_fetched_at_most_once_a_minute(payments: Payments, case: str) -> None:
    fault, reason = WRONG_KEY[case]
    store("ours", "sk_test_wrong")
    delivery = payments.delivery()
    for _ in range(4 * KEY_PAUSE_S // 10):
        payments.connection.plan("create", fault)
        assert bool(payments.deliver(delivery)) is (reason is None)
        payments.world.clock.advance(10)

    assert fetches(payments) == 4
    assert set(payments.parked()) == ({reason} if reason else set())


def test_a_revoked_key_parks_by_name_after_an_hour(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", *[UNAUTHORISED] * 2)
    payments.world.clock.advance(KEY_PATIENCE_S - 1)
    assert payments.deliver(delivery) == ["message-1"]
    payments.world.clock.advance(1)

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["api_key_refused"]
    payments.until_quiet(Delivery(delivery.event, "message-2"))
    payments.settled_once()


def test_an_intent_that_another_account_does_not_know_is_confirmed_with_the_right_key(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", refuses(429, "invalid_request_error", code="rate_limit"))
    payments.deliver(delivery)
    payments.world.clock.advance(KEY_PAUSE_S)
    store("ours", f'{{"STRIPE_KEY": "{API_KEY}2"}}')
    store("theirs", f"{API_KEY}2")
    payments.connection.plan("retrieve", refuses(404, "invalid_request_error", code="resource_missing", param="intent"))

    assert payments.deliver(delivery) == []

    store("theirs", API_KEY)  # for the test's own client
    payments.settled_once()


@pytest.mark.parametrize("text", [f"{API_KEY}\n", json.dumps({"STRIPE_KEY": API_KEY}), f' {{"a": "{API_KEY} "}}'])
def test_a_key_may_end_with_a_line_break_or_be_the_one_value_of_json(payments: Payments, text: str) -> None:
    store("ours", text)

    assert payments.deliver(payments.delivery()) == []

    payments.settled_once()


UNUSABLE = {
    "\u200bsk_test_first": "not printable ASCII",
    "sk_test\nfirst": "not printable ASCII",
    "\u00e9": "not printable ASCII",
    " ": "empty",
    '{"a": "sk_test_first", "b": "sk_test_first"}': "JSON with 2 values",
    '{"a": 1}': "JSON with 1 values instead of one text",
    "{sk_test_first": "is not JSON",
}


@pytest.mark.parametrize("text", UNUSABLE)
def test_a_secret_without_a_key_is_named_without_its_value_and_heals(
    payments: Payments, log: StringIO, text: str
) -> None:
    store("ours", text)
    delivery = payments.delivery()

    assert payments.deliver(delivery) == ["message-1"]
    assert payments.deliver(delivery) == ["message-1"]

    details = [line.get("detail", "") for line in map(json.loads, log.getvalue().splitlines())]
    assert any(UNUSABLE[text] in detail for detail in details)
    assert "sk_test" not in log.getvalue()
    assert payments.waits()[-1] <= 4  # it is known that nothing happened
    assert fetches(payments) == 1
    store("ours", API_KEY)
    payments.world.clock.advance(KEY_PAUSE_S)
    assert payments.deliver(delivery) == []
    payments.settled_once()


def test_a_binary_secret_is_named_and_parks_after_an_hour(payments: Payments, log: StringIO) -> None:
    client("secretsmanager").put_secret_value(SecretId="ours", SecretBinary=b"sk_test_first")
    delivery = payments.delivery()
    payments.deliver(delivery)
    payments.world.clock.advance(KEY_PATIENCE_S)

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["api_key_unusable"]
    assert "the secret holds binary data" in log.getvalue()


def test_the_old_key_stays_in_use_while_secrets_manager_fails(payments: Payments) -> None:
    payments.until_quiet(Delivery(payments.order("ord_0"), "message-0"))
    payments.world.clock.advance(KEY_AGE_S)
    delivery = payments.delivery()
    payments.world.wire.plan("GetSecretValue", refused("InternalServiceError", 500))

    assert payments.deliver(delivery) == []

    payments.settled_once()


@pytest.mark.parametrize("livemode", [False, None, "true"])
def test_an_intent_of_test_mode_is_refused_before_its_id_is_saved_where_money_is_real(
    payments: Payments, livemode: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_LIVEMODE", "true")
    delivery = payments.delivery()
    payments.connection.plan("create", answers_with(livemode=livemode))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["wrong_mode"]
    assert "intent_id" not in (payments.world.row("ord_1") or {})
    assert payments.connection.calls == ["create"]


def test_a_live_intent_is_refused_where_no_money_is_real(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("create", answers_with(livemode=True))

    assert payments.deliver(delivery) == []

    assert payments.parked() == ["wrong_mode"]
    assert payments.connection.calls == ["create"]
    payments.until_quiet(Delivery(delivery.event, "message-2"))
    payments.settled_once()


def test_a_confirmation_of_another_mode_is_asked_about_again(payments: Payments) -> None:
    delivery = payments.delivery()
    payments.connection.plan("confirm", answers_with(livemode=True))

    assert payments.deliver(delivery) == ["message-1"]
    payments.until_quiet(delivery)

    assert payments.connection.calls == ["create", "confirm", "retrieve"]
    payments.settled_once()
