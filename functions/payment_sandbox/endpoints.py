"""The endpoints: payment intents, lists and the deletion of idempotency keys.

https://docs.stripe.com/api/payment_intents, https://docs.stripe.com/api/pagination

A change of an intent fails if the intent has changed since it was read. One transaction holds the change, the ledger
entry, the stored answer and the record of a fault. So concurrent confirmations make one charge, and a worker that dies
leaves either all of these or none.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from functions.payment_sandbox import host, keys, params, store
from functions.payment_sandbox.cards import CARDS, Fault, payment_method_of, require_card_types
from functions.payment_sandbox.errors import InternalError, LockTimeout, NoSuchObject, UnexpectedState
from functions.payment_sandbox.objects import (
    JsonObject,
    apply_cancellation,
    apply_charge,
    card_error_of,
    new_charge,
    new_payment_intent,
)
from functions.payment_sandbox.wire import Answer, Request

OPEN_STATUSES = ("requires_payment_method", "requires_confirmation")
CANCELLATION_REASONS = ("abandoned", "duplicate", "fraudulent", "requested_by_customer")
ATTEMPTS = 3


def create_intent(request: Request) -> Answer:
    """Create an intent, not confirmed."""
    form = request.params
    params.reject_unknown(
        form,
        *("amount", "currency", "description", "metadata", "payment_method"),
        *("allowed_payment_method_types", "payment_method_types", "automatic_payment_methods"),
    )
    amount, currency, metadata = params.parse_amount(form), params.parse_currency(form), params.parse_metadata(form)
    require_card_types(form)
    method = payment_method_of(form)

    def execute(claim: keys.KeyClaim | None) -> Answer:
        intent = new_payment_intent(amount, currency, method, form.get("description"), metadata)
        answer = Answer(200, intent)
        store.transact([*keys.answer_writes(claim, answer), store.new_intent_write(intent)])
        return answer

    return keys.answer_once(request, execute)


def retrieve_intent(request: Request, id_: str) -> Answer:
    """Return the intent."""
    params.reject_unknown(request.params)
    return Answer(200, _require_intent(id_).intent)


def confirm_intent(request: Request, id_: str) -> Answer:
    """Charge the card: 200 if it pays, 402 if it declines. Both outcomes make one ledger entry."""
    # A client sends the last three parameters if the customer is not present. They change nothing here.
    params.reject_unknown(request.params, "payment_method", "return_url", "off_session", "error_on_requires_action")
    method = payment_method_of(request.params)
    return keys.answer_once(request, lambda claim: _repeat_on_conflict(lambda: _confirm(id_, method, claim)))


def cancel_intent(request: Request, id_: str) -> Answer:
    """Cancel an intent that has not succeeded. A cancelled intent cannot be confirmed."""
    params.reject_unknown(request.params, "cancellation_reason")
    reason = params.parse_choice(request.params, "cancellation_reason", CANCELLATION_REASONS)
    return keys.answer_once(request, lambda claim: _repeat_on_conflict(lambda: _cancel(id_, reason, claim)))


def list_intents(request: Request) -> Answer:
    """List all intents, the newest first."""
    params.reject_unknown(request.params, "limit", "starting_after")
    return _page(request, store.INTENTS, partial(store.newest_first, store.INTENTS))


def list_charges(request: Request) -> Answer:
    """List the ledger, the newest charge first: all charges, paid or declined, or the charges of one intent."""
    params.reject_unknown(request.params, "limit", "starting_after", "payment_intent")
    intent_id = request.params.get("payment_intent")
    if intent_id is None:
        return _page(request, store.CHARGES, partial(store.newest_first, store.CHARGES))
    if not store.get_object(store.INTENTS, intent_id):
        raise NoSuchObject("payment_intent", intent_id, "payment_intent")
    return _page(request, store.CHARGES, partial(store.newest_in_partition, store.charges_partition(intent_id)))


def prune_keys(request: Request) -> Answer:
    """Delete all idempotency keys. Callers repeat the request while the answer's `has_more` is true.

    Stripe has no such endpoint, so its path begins with /v1/sandbox.
    """
    params.reject_unknown(request.params)
    count, more = keys.prune(request.deadline)
    return Answer(200, {"object": "sandbox.pruned_idempotency_keys", "count": count, "has_more": more})


def _page(request: Request, kind: str, entries_after: Callable[[str | None], Iterator[JsonObject]]) -> Answer:
    limit = params.parse_integer(request.params.get("limit", "10"), "limit", params.LARGEST_PAGE)
    after = request.params.get("starting_after")
    if after is not None and not store.get_object(kind, after):
        raise NoSuchObject(kind, after, "starting_after")
    entries = list(islice(entries_after(after), limit + 1))
    data, more = entries[:limit], len(entries) > limit
    return Answer(200, {"object": "list", "url": request.path, "has_more": more, "data": data})


def _repeat_on_conflict(attempt: Callable[[], Answer]) -> Answer:
    """Repeat an attempt whose intent was changed by another request. The attempt reads the intent again."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except LockTimeout:
            continue
    return attempt()


def _require_intent(id_: str) -> store.StoredIntent:
    stored = store.get_intent(id_)
    if not stored:
        raise NoSuchObject("payment_intent", id_, "intent", 404)
    return stored


def _confirm(id_: str, method: str | None, claim: keys.KeyClaim | None) -> Answer:
    stored = _require_intent(id_)
    method = method or stored.intent["payment_method"]
    if stored.intent["status"] not in OPEN_STATUSES:
        raise _unexpected_state("confirm", stored.intent)
    if not method:
        raise UnexpectedState("This PaymentIntent has no payment method to confirm it with.", stored.intent)

    fault = _next_fault(stored.intent, method)
    if fault is Fault.ERROR_BEFORE:
        # Stripe stores a 500 only if the endpoint had begun to execute. This 500 stands for a front end that failed
        # earlier, so it is not stored. Otherwise a client with one constant key for an intent could never pay.
        store.transact([_fault_write(fault, stored.intent)])
        raise InternalError

    charge = new_charge(stored.intent, method)
    intent = apply_charge(stored.intent, charge)
    answer = Answer(200, intent) if charge["paid"] else _declined(intent, charge)
    if fault is Fault.ERROR_AFTER:
        answer = InternalError().answer
    delay_s = float(os.environ["SLOW_S"]) if fault is Fault.SLOW else 0
    store.transact(
        [
            *keys.answer_writes(claim, answer, host.now() + delay_s),
            store.changed_intent_write(stored, intent),
            *store.new_charge_writes(charge),
            *([_fault_write(fault, intent)] if fault else []),
        ]
    )
    if fault is Fault.SLOW:
        host.wait(delay_s)
    if fault is Fault.DROP:
        host.die()
    return answer


def _declined(intent: JsonObject, charge: JsonObject) -> Answer:
    return Answer(402, {"error": card_error_of(charge) | {"payment_intent": intent}})


def _cancel(id_: str, reason: str | None, claim: keys.KeyClaim | None) -> Answer:
    stored = _require_intent(id_)
    if stored.intent["status"] not in OPEN_STATUSES:
        raise _unexpected_state("cancel", stored.intent)
    answer = Answer(200, apply_cancellation(stored.intent, reason))
    store.transact([*keys.answer_writes(claim, answer), store.changed_intent_write(stored, answer.body)])
    return answer


def _unexpected_state(verb: str, intent: JsonObject) -> UnexpectedState:
    expected = " or ".join(OPEN_STATUSES)
    message = f"You cannot {verb} this PaymentIntent: its status is {intent['status']}, not {expected}."
    return UnexpectedState(message, intent)


def _fault_partition(intent: JsonObject) -> str:
    """Return the partition that records the fault of an order forever, for all its intents and keys."""
    return f"misbehaved#{intent['metadata'].get('order_id') or intent['id']}"


def _next_fault(intent: JsonObject, method: str) -> Fault | None:
    """Return the fault of this confirmation, or None if the order has had its fault."""
    fault = CARDS[method].fault
    return None if fault and store.get_item(_fault_partition(intent), "-") else fault


def _fault_write(fault: Fault, intent: JsonObject) -> store.LedgerWrite:
    return store.new_item_write(_fault_partition(intent), "-", fault={"S": fault})
