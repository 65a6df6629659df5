"""Idempotency keys: replayed, compared, in flight, lapsed, pruned."""

from typing import Any

import pytest
import requests
import stripe

from functions.payment_sandbox import keys, store
from tests.harness.http_lambda import WorkerDied
from tests.unit.payment_sandbox.conftest import Clock, Shop, seen

NEW = {"amount": 2500, "currency": "eur", "payment_method": "pm_card_visa", "metadata": {"order_id": "ord_1"}}


def create(shop: Shop, key: str, **changed: Any) -> stripe.PaymentIntent:
    return shop.intents.create(params=seen({**NEW, **changed}), options={"idempotency_key": key})


def prune(url: str) -> Any:
    headers = {"Authorization": "Bearer any"}
    return requests.delete(f"{url}/v1/sandbox/idempotency_keys", headers=headers, timeout=20).json()


def test_a_repeated_create_replays_the_first_answer_and_says_so(shop: Shop) -> None:
    first, again = create(shop, "k"), create(shop, "k")
    assert again.to_dict() == first.to_dict()
    assert seen(first).last_response.headers.get("Idempotent-Replayed") is None
    assert seen(again).last_response.headers["Idempotent-Replayed"] == "true"
    assert len(shop.intents.list().data) == 1


def test_a_repeated_confirm_replays_the_success_as_it_was(shop: Shop) -> None:
    intent = shop.intent()
    first, again = shop.confirm(intent, "k"), shop.confirm(intent, "k")
    assert again.to_dict() == first.to_dict()
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_decline_is_replayed_even_after_the_intent_was_cancelled(shop: Shop) -> None:
    intent = shop.intent("pm_card_chargeDeclined")
    with pytest.raises(stripe.CardError):
        shop.confirm(intent, "k")
    shop.intents.cancel(intent.id)
    with pytest.raises(stripe.CardError) as replayed:
        shop.confirm(intent, "k")
    assert seen(replayed.value).headers["Idempotent-Replayed"] == "true"
    assert shop.ledger() == [("ord_1", "failed")]


def test_a_refusal_by_the_intents_state_is_replayed_too(shop: Shop) -> None:
    intent = shop.intents.cancel(shop.intent().id)
    for replayed in (None, "true"):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            shop.confirm(intent, "k")
        assert refused.value.code == "payment_intent_unexpected_state"
        assert seen(refused.value).headers.get("Idempotent-Replayed") == replayed


def test_the_same_key_with_other_parameters_is_an_idempotency_error(shop: Shop) -> None:
    first = create(shop, "k")
    with pytest.raises(stripe.IdempotencyError) as reused:
        create(shop, "k", amount=2600)
    assert reused.value.http_status == 400
    assert seen(reused.value).json_body["error"]["type"] == "idempotency_error"
    assert create(shop, "k").id == first.id


def test_the_same_key_on_another_intent_is_an_idempotency_error(shop: Shop) -> None:
    one, other = shop.intent(order_id="ord_1"), shop.intent(order_id="ord_2")
    shop.confirm(one, "k")
    with pytest.raises(stripe.IdempotencyError):
        shop.confirm(other, "k")
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_parameters_are_compared_whatever_their_order(shop: Shop, url: str) -> None:
    forms = ("amount=5&currency=eur", "currency=eur&amount=5")
    answers = [
        requests.post(
            f"{url}/v1/payment_intents",
            data=form,
            headers={"Authorization": "Bearer k", "Idempotency-Key": "k"},
            timeout=20,
        )
        for form in forms
    ]
    assert answers[0].json()["id"] == answers[1].json()["id"]
    assert len(shop.intents.list().data) == 1


def test_what_was_refused_before_it_was_executed_leaves_the_key_free(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        create(shop, "k", amount=-1)
    assert create(shop, "k").status == "requires_confirmation"
    with pytest.raises(stripe.InvalidRequestError):
        shop.intents.confirm("pi_none", options={"idempotency_key": "k2"})
    assert shop.confirm(shop.intent(), "k2").status == "succeeded"


def test_a_key_in_flight_is_a_409_with_its_code_until_the_answer_is_there(
    shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = shop.intent("pm_sandbox_slow")
    refusals: list[stripe.StripeError] = []

    def meanwhile(seconds: float) -> None:
        with pytest.raises(stripe.APIError) as busy:
            shop.confirm(intent, "k")
        refusals.append(busy.value)
        clock.wait(seconds)

    monkeypatch.setattr("functions.payment_sandbox.host.wait", meanwhile)
    shop.confirm(intent, "k")
    (busy,) = refusals
    assert (busy.http_status, seen(busy).error.code) == (409, "idempotency_key_in_use")
    assert seen(shop.confirm(intent, "k")).last_response.headers["Idempotent-Replayed"] == "true"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_claim_whose_worker_died_lapses_and_the_request_is_executed(
    shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = shop.intent()

    def die(_: object) -> None:
        raise WorkerDied

    with monkeypatch.context() as dying:
        dying.setattr(store, "transact", die)
        with pytest.raises(stripe.APIError) as died:
            shop.confirm(intent, "k")
    assert died.value.http_status == 502
    with pytest.raises(stripe.APIError) as busy:
        shop.confirm(intent, "k")
    assert busy.value.http_status == 409
    clock.now_s += 5 + 1  # the time the worker had left, and the margin
    with pytest.raises(stripe.IdempotencyError):
        shop.intents.confirm(intent.id, params={"payment_method": "pm_card_visa"}, options={"idempotency_key": "k"})
    assert shop.confirm(intent, "k").status == "succeeded"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_worker_that_stalled_past_its_claim_does_nothing_any_more(
    shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a card that declines: the intent's own state would let the stalled worker charge a second time."""
    intent = shop.intent("pm_card_chargeDeclined")
    transact = store.transact

    def stalled(writes: list[store.LedgerWrite]) -> None:
        monkeypatch.setattr(store, "transact", transact)
        clock.now_s += 7
        with pytest.raises(stripe.CardError):
            shop.confirm(intent, "k")
        transact(writes)

    monkeypatch.setattr(store, "transact", stalled)
    with pytest.raises(stripe.APIError) as superseded:
        shop.confirm(intent, "k")
    assert (superseded.value.http_status, seen(superseded.value).error.code) == (409, "idempotency_key_in_use")
    assert shop.ledger() == [("ord_1", "failed")]


def test_a_charge_whose_confirmation_by_the_table_was_lost_is_replayed_and_not_made_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = shop.intent()
    transact = store.transact

    def applied_but_lost(writes: list[store.LedgerWrite]) -> None:
        transact(writes)
        raise TimeoutError

    with monkeypatch.context() as losing:
        losing.setattr(store, "transact", applied_but_lost)
        with pytest.raises(stripe.APIError) as unknown:
            shop.confirm(intent, "k")
    assert (unknown.value.http_status, seen(unknown.value).json_body["error"]["type"]) == (500, "api_error")
    assert shop.confirm(intent, "k").status == "succeeded"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_failure_before_the_effect_leaves_the_key_free(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = shop.intent()

    def fail(_: object) -> None:
        raise TimeoutError

    with monkeypatch.context() as failing:
        failing.setattr(store, "transact", fail)
        with pytest.raises(stripe.APIError):
            shop.confirm(intent, "k")
    assert shop.confirm(intent, "k").status == "succeeded"


def test_a_key_is_pruned_after_a_day_and_then_means_a_new_request(shop: Shop, clock: Clock) -> None:
    first = create(shop, "k")
    clock.now_s += 24 * 3600 - 10
    assert create(shop, "k").id == first.id
    clock.now_s += 10
    second = create(shop, "k", amount=2600)
    assert second.id != first.id
    assert create(shop, "k", amount=2600).id == second.id


def test_all_keys_can_be_pruned_at_once_for_a_test(shop: Shop, url: str) -> None:
    intent = create(shop, "k")
    shop.confirm(intent, "k2")
    assert prune(url) == {"object": "sandbox.pruned_idempotency_keys", "count": 2, "has_more": False}
    assert create(shop, "k").id != intent.id
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.confirm(intent, "k2")
    assert refused.value.code == "payment_intent_unexpected_state"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_key_in_flight_is_not_pruned(shop: Shop, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = shop.intent("pm_card_chargeDeclined")
    transact = store.transact

    def prune_meanwhile(writes: list[store.LedgerWrite]) -> None:
        prune(url)
        transact(writes)

    monkeypatch.setattr(store, "transact", prune_meanwhile)
    with pytest.raises(stripe.CardError):
        shop.confirm(intent, "k")


def test_pruning_stops_before_the_worker_is_ended_and_says_so(shop: Shop, clock: Clock) -> None:
    for n in range(5):
        create(shop, f"k{n}")
    assert keys.prune(clock.now() + 1.0025) == (2, True)  # the clock ticks a millisecond a look
    assert keys.prune(clock.now() + 5) == (3, False)


def test_an_overlong_key_is_refused(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        create(shop, "k" * 256)
    assert create(shop, "k" * 255).status == "requires_confirmation"
