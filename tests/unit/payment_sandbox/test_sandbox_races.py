"""Requests that meet in the middle: between another's read of an intent and its write."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from functions.payment_sandbox import store
from tests.unit.payment_sandbox.conftest import Shop, seen

Between = Callable[[Callable[[], object]], None]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Let something happen right after the next read of an intent, before what the reader writes."""

    def between(act: Callable[[], object]) -> None:
        read = store.get_intent

        def then(id_: str) -> store.StoredIntent | None:
            found = read(id_)
            monkeypatch.setattr(store, "get_intent", read)
            act()
            return found

        monkeypatch.setattr(store, "get_intent", then)

    return between


def outcome(act: Callable[[], stripe.PaymentIntent]) -> str:
    """The status of the intent, or the error's code."""
    try:
        return act().status
    except stripe.StripeError as error:
        return str(seen(error).error.code)


def test_of_two_confirmations_with_different_keys_the_later_writer_is_refused(shop: Shop, between: Between) -> None:
    intent = shop.intent()
    between(lambda: shop.confirm(intent, "k2"))
    assert outcome(lambda: shop.confirm(intent, "k1")) == "payment_intent_unexpected_state"
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_a_cancel_that_gets_in_before_a_confirmation_wins_and_nothing_is_charged(shop: Shop, between: Between) -> None:
    intent = shop.intent()
    between(lambda: shop.intents.cancel(intent.id))
    assert outcome(lambda: shop.confirm(intent, "k")) == "payment_intent_unexpected_state"
    assert (shop.status(intent), shop.ledger()) == ("canceled", [])


def test_a_confirmation_that_gets_in_before_a_cancel_wins_and_stays_paid(shop: Shop, between: Between) -> None:
    intent = shop.intent()
    between(lambda: shop.confirm(intent, "k"))
    assert outcome(lambda: shop.intents.cancel(intent.id)) == "payment_intent_unexpected_state"
    assert (shop.status(intent), shop.ledger()) == ("succeeded", [("ord_1", "succeeded")])


def test_a_confirmation_with_another_card_that_gets_in_after_a_decline_is_judged_afresh(
    shop: Shop, between: Between
) -> None:
    """Both find the intent unconfirmed; one is declined in between, and the other still pays: once."""
    intent = shop.intent("pm_card_chargeDeclined")
    between(lambda: outcome(lambda: shop.confirm(intent)))
    paid = shop.intents.confirm(intent.id, params={"payment_method": "pm_card_visa"})
    assert paid.status == "succeeded"
    assert shop.ledger() == [("ord_1", "succeeded"), ("ord_1", "failed")]


def test_of_two_intents_of_one_order_only_one_meets_the_fault(shop: Shop) -> None:
    one, other = shop.intent("pm_sandbox_error_after"), shop.intent("pm_sandbox_error_after")
    get = store.get_item
    faults_read = threading.Barrier(2)

    def both_read_it(pk: str, sk: str) -> dict[str, object] | None:
        found = get(pk, sk)
        if pk.startswith("misbehaved#") and found is None:
            faults_read.wait(timeout=20)
        return found

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(store, "get_item", both_read_it)
        results = [pool.submit(shop.intents.confirm, intent.id) for intent in (one, other)]
        errors = [result.exception() for result in results]
    assert [type(error) for error in errors if error] == [stripe.APIError]
    assert [shop.status(intent) for intent in (one, other)] == ["succeeded", "succeeded"]
    assert len(shop.ledger()) == 2


@pytest.mark.parametrize("keys", [[None] * 8, [f"k{n}" for n in range(8)], ["k"] * 8])
def test_eight_workers_confirm_at_once_and_one_charge_is_made(shop: Shop, keys: list[str | None]) -> None:
    """With other keys all eight have read the intent before any may write; with one key its claim comes first."""
    intent = shop.intent()
    read = store.get_intent
    arrived = threading.Barrier(1 if keys[0] == "k" else 8)
    waiting = threading.local()

    def read_together(id_: str) -> store.StoredIntent | None:
        found = read(id_)
        if not getattr(waiting, "done", False):
            waiting.done = True
            arrived.wait(timeout=20)
        return found

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(8) as pool:
        patch.setattr(store, "get_intent", read_together)
        outcomes = list(pool.map(lambda key: outcome(lambda: shop.confirm(intent, key)), keys))
    assert set(outcomes) <= {"succeeded", "payment_intent_unexpected_state", "idempotency_key_in_use"}
    assert outcomes.count("succeeded") >= 1
    if keys[0] != "k":  # a replay of the one success is a success as well
        assert outcomes.count("succeeded") == 1
    assert shop.ledger() == [("ord_1", "succeeded")]


def test_an_intent_that_changes_on_every_try_is_a_429_and_the_key_stays_free(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = shop.intent()
    read = store.get_intent

    def stale(id_: str) -> store.StoredIntent | None:
        found = read(id_)
        assert found is not None
        return store.StoredIntent(found.intent, found.revision - 1)

    with monkeypatch.context() as contended:
        contended.setattr(store, "get_intent", stale)
        with pytest.raises(stripe.RateLimitError) as busy:
            shop.confirm(intent, "k")
    assert (busy.value.http_status, seen(busy.value).error.code) == (429, "lock_timeout")
    assert shop.ledger() == []
    assert shop.confirm(intent, "k").status == "succeeded"
