"""Payment methods with a fault at an order's first confirmation. Every order ends with one payment."""

import subprocess
import sys

import pytest
import stripe

from functions.payment_sandbox import host
from tests.harness.http_lambda import WorkerDied
from tests.unit.payment_sandbox.conftest import Clock, Sandbox, untyped


def test_slow_charges_before_the_answer_is_delayed(
    sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = sandbox.create_intent("pm_sandbox_slow")
    waits: list[tuple[float, str]] = []

    def wait(seconds: float) -> None:
        waits.append((seconds, sandbox.status(intent)))
        clock.wait(seconds)

    monkeypatch.setattr(host, "wait", wait)
    assert sandbox.confirm(intent).status == "succeeded"
    assert waits == [(1.5, "succeeded")]
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_error_before_charges_nothing_and_the_same_key_then_pays(sandbox: Sandbox) -> None:
    intent = sandbox.create_intent("pm_sandbox_error_before")
    with pytest.raises(stripe.APIError) as failed:
        sandbox.confirm(intent, "k")
    assert (failed.value.http_status, untyped(failed.value).json_body["error"]["type"]) == (500, "api_error")
    assert (sandbox.status(intent), sandbox.ledger()) == ("requires_confirmation", [])
    assert sandbox.confirm(intent, "k").status == "succeeded"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_error_after_charges_and_its_500_is_replayed(sandbox: Sandbox) -> None:
    intent = sandbox.create_intent("pm_sandbox_error_after")
    for replayed in (None, "true", "true"):
        with pytest.raises(stripe.APIError) as failed:
            sandbox.confirm(intent, "k")
        assert failed.value.http_status == 500
        assert untyped(failed.value).headers.get("Idempotent-Replayed") == replayed
    assert sandbox.status(intent) == "succeeded"
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.confirm(intent, "k2")
    assert refused.value.code == "payment_intent_unexpected_state"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_drop_charges_and_the_lost_answer_is_replayed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def die() -> None:
        raise WorkerDied

    monkeypatch.setattr(host, "die", die)
    intent = sandbox.create_intent("pm_sandbox_drop")
    with pytest.raises(stripe.APIError) as lost:
        sandbox.confirm(intent, "k")
    assert lost.value.http_status == 502
    assert sandbox.status(intent) == "succeeded"
    assert sandbox.confirm(intent, "k").status == "succeeded"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_a_worker_that_dies_runs_no_more_code() -> None:
    code = "from functions.payment_sandbox import host\ntry:\n    host.die()\nfinally:\n    print('more')"
    worker = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=20)
    assert (worker.returncode, worker.stdout) == (1, b"")


def test_an_order_has_its_fault_once_for_all_intents_and_keys(sandbox: Sandbox) -> None:
    first, second = (sandbox.create_intent("pm_sandbox_error_before") for _ in range(2))
    with pytest.raises(stripe.APIError):
        sandbox.confirm(first, "k1")
    assert sandbox.confirm(second, "k2").status == "succeeded"
    assert sandbox.confirm(first, "k3").status == "succeeded"


def test_an_intent_without_an_order_id_has_a_fault_of_its_own(sandbox: Sandbox) -> None:
    for _ in range(2):
        intent = sandbox.intents.create(
            params={"amount": 1, "currency": "eur", "payment_method": "pm_sandbox_error_before"}
        )
        with pytest.raises(stripe.APIError):
            sandbox.confirm(intent)
        assert sandbox.confirm(intent).status == "succeeded"
