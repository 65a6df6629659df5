"""The methods that misbehave on an order's first confirmation; every order ends paid once."""

import subprocess
import sys

import pytest
import stripe

from functions.payment_sandbox import host
from tests.harness.http_lambda import ConnectionCut, WorkerDied
from tests.unit.payment_sandbox.conftest import Clock, Shop, seen


def test_slow_is_charged_before_the_answer_waits(shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = shop.intent("pm_sandbox_slow")
    seen: list[tuple[float, str]] = []

    def wait(seconds: float) -> None:
        seen.append((seconds, shop.status(intent)))
        clock.wait(seconds)

    monkeypatch.setattr(host, "wait", wait)
    assert shop.confirm(intent).status == "succeeded"
    assert seen == [(1.5, "succeeded")]
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_error_before_charges_nothing_keeps_no_answer_and_the_same_key_then_pays(shop: Shop) -> None:
    intent = shop.intent("pm_sandbox_error_before")
    with pytest.raises(stripe.APIError) as failed:
        shop.confirm(intent, "k")
    assert (failed.value.http_status, seen(failed.value).json_body["error"]["type"]) == (500, "api_error")
    assert (shop.status(intent), shop.ledger()) == ("requires_confirmation", [])
    assert shop.confirm(intent, "k").status == "succeeded"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_error_after_has_charged_and_its_500_is_replayed_so_only_a_retrieve_tells(shop: Shop) -> None:
    intent = shop.intent("pm_sandbox_error_after")
    for replayed in (None, "true", "true"):
        with pytest.raises(stripe.APIError) as failed:
            shop.confirm(intent, "k")
        assert failed.value.http_status == 500
        assert seen(failed.value).headers.get("Idempotent-Replayed") == replayed
    assert shop.status(intent) == "succeeded"
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.confirm(intent, "k2")
    assert refused.value.code == "payment_intent_unexpected_state"
    assert shop.ledger() == [("ord_1", "succeeded")]


@pytest.mark.parametrize(
    ("death", "error", "http_status"),
    [(WorkerDied, stripe.APIError, 502), (ConnectionCut, stripe.APIConnectionError, None)],
)
def test_drop_has_charged_and_the_lost_answer_is_kept_under_the_key(
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
    death: type[BaseException],
    error: type[stripe.StripeError],
    http_status: int | None,
) -> None:
    def die() -> None:
        raise death

    monkeypatch.setattr(host, "die", die)
    intent = shop.intent("pm_sandbox_drop")
    with pytest.raises(error) as lost:
        shop.confirm(intent, "k")
    assert lost.value.http_status == http_status
    assert shop.status(intent) == "succeeded"
    assert shop.confirm(intent, "k").status == "succeeded"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_worker_that_dies_runs_nothing_more() -> None:
    code = "from functions.payment_sandbox import host\ntry:\n    host.die()\nfinally:\n    print('more')"
    died = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=20)
    assert (died.returncode, died.stdout) == (1, b"")


def test_an_order_meets_its_fault_once_whatever_intent_or_key_it_comes_with(shop: Shop) -> None:
    first, second = shop.intent("pm_sandbox_error_before"), shop.intent("pm_sandbox_error_before")
    with pytest.raises(stripe.APIError):
        shop.confirm(first, "k1")
    assert shop.confirm(second, "k2").status == "succeeded"
    assert shop.confirm(first, "k3").status == "succeeded"


def test_every_order_meets_its_own_fault(shop: Shop) -> None:
    for order_id in ("ord_1", "ord_2"):
        intent = shop.intent("pm_sandbox_error_before", order_id)
        with pytest.raises(stripe.APIError):
            shop.confirm(intent)
        shop.confirm(intent)
    assert shop.ledger() == [("ord_2", "succeeded"), ("ord_1", "succeeded")]


def test_intents_that_name_no_order_meet_their_fault_each(shop: Shop) -> None:
    for _ in range(2):
        intent = shop.intents.create(
            params={"amount": 1, "currency": "eur", "payment_method": "pm_sandbox_error_before"}
        )
        with pytest.raises(stripe.APIError):
            shop.confirm(intent)
        assert shop.confirm(intent).status == "succeeded"


def test_the_fault_is_remembered_when_keys_are_pruned(shop: Shop, clock: Clock) -> None:
    intent = shop.intent("pm_sandbox_error_before")
    with pytest.raises(stripe.APIError):
        shop.confirm(intent, "k")
    clock.now_s += 48 * 3600
    assert shop.confirm(intent, "k").status == "succeeded"
