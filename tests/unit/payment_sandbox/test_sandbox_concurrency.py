"""Concurrent requests: another request changes the intent between a read and its write."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import stripe

from functions.payment_sandbox import store
from tests.unit.payment_sandbox.conftest import Sandbox, untyped


def code_of(error: BaseException | None) -> str | None:
    """Return Stripe's code of an error, or None if there is no error."""
    return str(untyped(error).error.code) if error else None


def test_a_cancel_between_read_and_write_of_a_confirmation_prevents_the_charge(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = sandbox.create_intent()
    get_intent = store.get_intent

    def cancel_after_read(id_: str) -> store.StoredIntent | None:
        stored = get_intent(id_)
        monkeypatch.setattr(store, "get_intent", get_intent)
        sandbox.intents.cancel(intent.id)
        return stored

    monkeypatch.setattr(store, "get_intent", cancel_after_read)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.confirm(intent, "k")
    assert code_of(refused.value) == "payment_intent_unexpected_state"
    assert (sandbox.status(intent), sandbox.ledger()) == ("canceled", [])


@pytest.mark.parametrize("keys", [[f"k{n}" for n in range(8)], ["k"] * 8], ids=["different keys", "one key"])
def test_eight_concurrent_confirmations_make_one_charge(sandbox: Sandbox, keys: list[str]) -> None:
    """With different keys, all eight read the intent before any may write. With one key, one claims it first."""
    intent = sandbox.create_intent()
    get_intent = store.get_intent
    barrier = threading.Barrier(len(set(keys)))
    thread = threading.local()

    def read_together(id_: str) -> store.StoredIntent | None:
        stored = get_intent(id_)
        if not getattr(thread, "has_read", False):
            thread.has_read = True
            barrier.wait(timeout=20)
        return stored

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(8) as pool:
        patch.setattr(store, "get_intent", read_together)
        confirmations = [pool.submit(sandbox.confirm, intent, key) for key in keys]
        codes = [code_of(confirmation.exception()) for confirmation in confirmations]
    assert set(codes) <= {None, "payment_intent_unexpected_state", "idempotency_key_in_use"}
    # With one key, a replay of the one success is a success too.
    assert codes.count(None) == 1 if len(set(keys)) > 1 else codes.count(None) >= 1
    assert sandbox.ledger() == [("ord_1", "succeeded")]


def test_an_intent_that_changes_in_every_attempt_is_a_429_and_the_key_stays_free(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = sandbox.create_intent()
    get_intent = store.get_intent

    def read_outdated(id_: str) -> store.StoredIntent | None:
        stored = get_intent(id_)
        assert stored is not None
        return store.StoredIntent(stored.intent, stored.revision - 1)

    with monkeypatch.context() as patch:
        patch.setattr(store, "get_intent", read_outdated)
        with pytest.raises(stripe.RateLimitError) as busy:
            sandbox.confirm(intent, "k")
    assert (busy.value.http_status, code_of(busy.value)) == (429, "lock_timeout")
    assert sandbox.ledger() == []
    assert sandbox.confirm(intent, "k").status == "succeeded"
