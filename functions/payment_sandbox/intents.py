"""Payment intents: https://docs.stripe.com/api/payment_intents

A change is conditional on the intent being as it was read, and one transaction holds the change, the ledger entry, the
stored answer and the note that a fault was met. So concurrent confirmations make one charge, and a worker that dies
anywhere leaves all of it or nothing.
"""

import os
from collections.abc import Callable

from functions.payment_sandbox import host, keys, params, store
from functions.payment_sandbox.cards import CARDS, Fault, chosen, only_cards
from functions.payment_sandbox.errors import Contended, Failed, Missing, UnexpectedState
from functions.payment_sandbox.objects import (
    JsonObject,
    canceled,
    card_error,
    charge,
    payment_intent,
    settled,
)
from functions.payment_sandbox.wire import Answer, Request

OPEN = ("requires_payment_method", "requires_confirmation")
REASONS = ("abandoned", "duplicate", "fraudulent", "requested_by_customer")
TRIES = 3


def create(request: Request) -> Answer:
    """A new intent, not confirmed."""
    sent = request.params
    params.only(
        sent,
        *("amount", "currency", "description", "metadata", "payment_method"),
        *("allowed_payment_method_types", "payment_method_types", "automatic_payment_methods"),
    )
    amount, currency, metadata = params.amount(sent), params.currency(sent), params.metadata(sent)
    only_cards(sent)
    method = chosen(sent)

    def execute(claim: keys.Claim | None) -> Answer:
        new = payment_intent(amount, currency, method, sent.get("description"), metadata)
        answer = Answer(200, new)
        store.transact([*keys.answered(claim, answer), store.add_intent(new)])
        return answer

    return keys.once(request, execute)


def retrieve(request: Request, id_: str) -> Answer:
    """The intent as it is."""
    params.only(request.params)
    return Answer(200, _found(id_).intent)


def confirm(request: Request, id_: str) -> Answer:
    """Charge the card: 200 if it pays, 402 if it is declined; either way one entry in the ledger."""
    # What a client off the customer's screen sends along to Stripe; there is nothing to do about it here.
    params.only(request.params, "payment_method", "return_url", "off_session", "error_on_requires_action")
    method = chosen(request.params)
    return keys.once(request, lambda claim: _again(lambda: _confirm(id_, method, claim)))


def cancel(request: Request, id_: str) -> Answer:
    """End an intent that has not succeeded: it can not be confirmed any more."""
    params.only(request.params, "cancellation_reason")
    reason = params.one_of(request.params, "cancellation_reason", REASONS)
    return keys.once(request, lambda claim: _again(lambda: _cancel(id_, reason, claim)))


def _again(attempt: Callable[[], Answer]) -> Answer:
    """Read and judge afresh if the intent changed in between."""
    for _ in range(TRIES - 1):
        try:
            return attempt()
        except Contended:
            continue
    return attempt()


def _found(id_: str) -> store.Stored:
    stored = store.intent(id_)
    if not stored:
        raise Missing("payment_intent", id_, "intent", 404)
    return stored


def _confirm(id_: str, method: str | None, claim: keys.Claim | None) -> Answer:
    stored = _found(id_)
    method = method or stored.intent["payment_method"]
    if stored.intent["status"] not in OPEN:
        raise _unexpected("confirm", stored.intent)
    if not method:
        raise UnexpectedState("This PaymentIntent has no payment method to confirm it with.", stored.intent)

    fault = _fault_due(stored.intent, method)
    if fault is Fault.ERROR_BEFORE:
        # Stripe keeps a 500 only if the endpoint began to execute; this one is a front end that gave up first. Were it
        # kept, a client whose key is constant for an intent could never finish, though nothing was done.
        store.transact([_met(fault, stored.intent)])
        raise Failed

    entry = charge(stored.intent, method)
    intent = settled(stored.intent, entry)
    answer = Answer(200, intent) if entry["paid"] else _declined(intent, entry)
    if fault is Fault.ERROR_AFTER:
        answer = Failed().answer
    late = float(os.environ["SLOW_S"]) if fault is Fault.SLOW else 0
    store.transact(
        [
            *keys.answered(claim, answer, host.now() + late),
            store.change_intent(stored, intent),
            *store.add_charge(entry),
            *([_met(fault, intent)] if fault else []),
        ]
    )
    if fault is Fault.SLOW:
        host.wait(late)
    if fault is Fault.DROP:
        host.die()
    return answer


def _declined(intent: JsonObject, entry: JsonObject) -> Answer:
    return Answer(402, {"error": card_error(entry) | {"payment_intent": intent}})


def _cancel(id_: str, reason: str | None, claim: keys.Claim | None) -> Answer:
    stored = _found(id_)
    if stored.intent["status"] not in OPEN:
        raise _unexpected("cancel", stored.intent)
    answer = Answer(200, canceled(stored.intent, reason))
    store.transact([*keys.answered(claim, answer), store.change_intent(stored, answer.body)])
    return answer


def _unexpected(verb: str, intent: JsonObject) -> UnexpectedState:
    message = f"You cannot {verb} this PaymentIntent: its status is {intent['status']}, not {' or '.join(OPEN)}."
    return UnexpectedState(message, intent)


def _misbehaved(intent: JsonObject) -> str:
    """Where it is remembered, for ever, that an order has met its fault: whatever intents and keys it uses."""
    return f"misbehaved#{intent['metadata'].get('order_id') or intent['id']}"


def _fault_due(intent: JsonObject, method: str) -> Fault | None:
    fault = CARDS[method].fault
    return None if fault and store.get(_misbehaved(intent), "-") else fault


def _met(fault: Fault, intent: JsonObject) -> store.Write:
    return store.put(_misbehaved(intent), "-", fault={"S": fault})
