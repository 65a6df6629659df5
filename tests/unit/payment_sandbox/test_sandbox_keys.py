"""Idempotency keys: replayed, compared, in flight, expired, pruned. https://docs.stripe.com/api/idempotent_requests"""

from collections.abc import Callable
from typing import Any

import pytest
import requests
import stripe

from functions.payment_sandbox import host, keys, store
from tests.harness.http_lambda import WorkerDied
from tests.unit.payment_sandbox.conftest import Clock, Sandbox, untyped

NEW = {"amount": 2500, "currency": "eur", "payment_method": "pm_card_visa", "metadata": {"order_id": "ord_1"}}


def create(sandbox: Sandbox, key: str, **changed: Any) -> stripe.PaymentIntent:
    return sandbox.intents.create(params=untyped({**NEW, **changed}), options={"idempotency_key": key})


def prune(url: str) -> Any:
    headers = {"Authorization": "Bearer any"}
    return requests.delete(f"{url}/v1/sandbox/idempotency_keys", headers=headers, timeout=20).json()


def test_a_repeated_create_replays_the_first_answer_with_a_header(sandbox: Sandbox) -> None:
    first, second = create(sandbox, "k"), create(sandbox, "k")
    assert second.to_dict() == first.to_dict()
    assert untyped(first).last_response.headers.get("Idempotent-Replayed") is None
    assert untyped(second).last_response.headers["Idempotent-Replayed"] == "true"
    assert len(sandbox.intents.list().data) == 1


def test_a_decline_is_replayed_after_the_intent_was_cancelled(sandbox: Sandbox) -> None:
    intent = sandbox.create_intent("pm_card_chargeDeclined")
    with pytest.raises(stripe.CardError):
        sandbox.confirm(intent, "k")
    sandbox.intents.cancel(intent.id)
    with pytest.raises(stripe.CardError) as replayed:
        sandbox.confirm(intent, "k")
    assert untyped(replayed.value).headers["Idempotent-Replayed"] == "true"
    assert sandbox.ledger() == [("ord_1", "failed")]


def test_an_answer_about_an_unexpected_state_is_replayed(sandbox: Sandbox) -> None:
    intent = sandbox.intents.cancel(sandbox.create_intent().id)
    for replayed in (None, "true"):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            sandbox.confirm(intent, "k")
        assert refused.value.code == "payment_intent_unexpected_state"
        assert untyped(refused.value).headers.get("Idempotent-Replayed") == replayed


def test_a_key_with_other_parameters_is_an_idempotency_error(sandbox: Sandbox) -> None:
    first = create(sandbox, "k")
    with pytest.raises(stripe.IdempotencyError) as reused:
        create(sandbox, "k", amount=2600)
    assert reused.value.http_status == 400
    assert untyped(reused.value).json_body["error"]["type"] == "idempotency_error"
    assert create(sandbox, "k").id == first.id


def test_a_key_of_another_intents_confirmation_is_an_idempotency_error(sandbox: Sandbox) -> None:
    first, second = sandbox.create_intent(order_id="ord_1"), sandbox.create_intent(order_id="ord_2")
    sandbox.confirm(first, "k")
    with pytest.raises(stripe.IdempotencyError):
        sandbox.confirm(second, "k")
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_a_request_refused_before_execution_leaves_the_key_free(sandbox: Sandbox) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        create(sandbox, "k", amount=-1)
    assert create(sandbox, "k").status == "requires_confirmation"
    with pytest.raises(stripe.InvalidRequestError):
        sandbox.intents.confirm("pi_none", options={"idempotency_key": "k2"})
    assert sandbox.confirm(sandbox.create_intent(), "k2").status == "succeeded"


def test_a_key_in_flight_is_a_409_until_the_answer_has_arrived(
    sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = sandbox.create_intent("pm_sandbox_slow")
    errors: list[stripe.StripeError] = []

    def confirm_meanwhile(seconds: float) -> None:
        with pytest.raises(stripe.APIError) as busy:
            sandbox.confirm(intent, "k")
        errors.append(busy.value)
        clock.wait(seconds)

    monkeypatch.setattr(host, "wait", confirm_meanwhile)
    sandbox.confirm(intent, "k")
    (error,) = errors
    assert (error.http_status, untyped(error).error.code) == (409, "idempotency_key_in_use")
    assert untyped(sandbox.confirm(intent, "k")).last_response.headers["Idempotent-Replayed"] == "true"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_the_claim_of_a_dead_worker_expires_and_the_same_request_is_executed(
    sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = sandbox.create_intent()

    def die(_: object) -> None:
        raise WorkerDied

    with monkeypatch.context() as patch:
        patch.setattr(store, "transact", die)
        with pytest.raises(stripe.APIError) as died:
            sandbox.confirm(intent, "k")
    assert died.value.http_status == 502
    with pytest.raises(stripe.APIError) as busy:
        sandbox.confirm(intent, "k")
    assert busy.value.http_status == 409
    clock.now_s += 5 + 1  # the worker's remaining time, and the margin for clock skew
    with pytest.raises(stripe.IdempotencyError):
        sandbox.intents.confirm(intent.id, params={"payment_method": "pm_card_visa"}, options={"idempotency_key": "k"})
    assert sandbox.confirm(intent, "k").status == "succeeded"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_a_worker_that_stalls_past_its_claim_charges_nothing(
    sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The card declines. So the state of the intent would let the stalled worker charge a second time."""
    intent = sandbox.create_intent("pm_card_chargeDeclined")
    transact = store.transact

    def stall(writes: list[store.LedgerWrite]) -> None:
        monkeypatch.setattr(store, "transact", transact)
        clock.now_s += 7
        with pytest.raises(stripe.CardError):
            sandbox.confirm(intent, "k")
        transact(writes)

    monkeypatch.setattr(store, "transact", stall)
    with pytest.raises(stripe.APIError) as superseded:
        sandbox.confirm(intent, "k")
    assert (superseded.value.http_status, untyped(superseded.value).error.code) == (409, "idempotency_key_in_use")
    assert sandbox.ledger() == [("ord_1", "failed")]


@pytest.mark.parametrize("applied", [True, False], ids=["after the effect", "before the effect"])
def test_a_confirmation_that_fails_is_a_500_and_the_same_key_ends_with_one_charge(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, applied: bool
) -> None:
    intent = sandbox.create_intent()
    transact: Callable[[list[store.LedgerWrite]], None] = store.transact

    def fail(writes: list[store.LedgerWrite]) -> None:
        if applied:
            transact(writes)
        raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(store, "transact", fail)
        with pytest.raises(stripe.APIError) as failed:
            sandbox.confirm(intent, "k")
    assert (failed.value.http_status, untyped(failed.value).json_body["error"]["type"]) == (500, "api_error")
    assert sandbox.confirm(intent, "k").status == "succeeded"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_a_key_expires_after_a_day_and_then_belongs_to_a_new_request(sandbox: Sandbox, clock: Clock) -> None:
    first = create(sandbox, "k")
    clock.now_s += 24 * 3600 - 10
    assert create(sandbox, "k").id == first.id
    clock.now_s += 10
    second = create(sandbox, "k", amount=2600)
    assert second.id != first.id
    assert create(sandbox, "k", amount=2600).id == second.id


def test_a_request_prunes_all_keys_at_once(sandbox: Sandbox, url: str) -> None:
    intent = create(sandbox, "k")
    sandbox.confirm(intent, "k2")
    assert prune(url) == {"object": "sandbox.pruned_idempotency_keys", "count": 2, "has_more": False}
    assert create(sandbox, "k").id != intent.id
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.confirm(intent, "k2")
    assert refused.value.code == "payment_intent_unexpected_state"
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_a_key_in_flight_is_not_pruned(sandbox: Sandbox, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = sandbox.create_intent("pm_card_chargeDeclined")
    transact = store.transact

    def prune_before_write(writes: list[store.LedgerWrite]) -> None:
        prune(url)
        transact(writes)

    monkeypatch.setattr(store, "transact", prune_before_write)
    with pytest.raises(stripe.CardError):
        sandbox.confirm(intent, "k")


def test_pruning_stops_before_the_deadline_and_reports_more_keys(sandbox: Sandbox, clock: Clock) -> None:
    for n in range(5):
        create(sandbox, f"k{n}")
    assert keys.prune(clock.now() + 1.0025) == (2, True)  # each reading advances the clock by one millisecond
    assert keys.prune(clock.now() + 5) == (3, False)


def test_a_key_has_at_most_255_characters(sandbox: Sandbox) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        create(sandbox, "k" * 256)
    assert create(sandbox, "k" * 255).status == "requires_confirmation"
