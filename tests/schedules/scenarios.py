"""The scenarios: a function's messages, the state before them, and the state at the end.

The state before a step is what the steps before it leave in a run without faults. No row is written by hand.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from functions.payment_sandbox import objects
from tests.schedules import provider
from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.facts import NOBODY
from tests.schedules.faults import MAKE_LATE, Fault
from tests.schedules.model import Call
from tests.schedules.person import Person
from tests.schedules.run import ALL_KINDS, LateRequest, Run
from tests.schedules.services import Mail, Message
from tests.schedules.sources import ClientSource, QueueSource, StreamSource

ORDER_ID = "ord_1"
# The local stage's function timeouts, in seconds.
TIMEOUTS_S = {"order": 5.0, "payment": 9.0, "email": 7.0, "relay": 5.0, "api": 3.0}
# Deaths, lost answers, refusals, stalls, late requests.
PARTS = ("!+", "?", "%&/", "~", "@^=")
SEEDED = "seed"  # the worker that sent the emails before a scenario begins
OPERATIONS = {"orders": "order.place", "payments": "payment.charge", "emails": "email.send"}


@dataclass(frozen=True)
class Scenario:
    """`ends`: the possible final states of the order. It is empty if there must be no order.

    `relayed`: the scenario has a relay, so every event must be sent. `parked`: the reasons of the messages in DLQs.
    `outcome_rules`: the invariants to check. It is empty for all invariants of invariants.py.
    `kinds`: the faults that may happen.
    """

    name: str
    prepare: Callable[[ExplorerEnvironment, Run], None]
    ends: frozenset[str]
    mailed: bool = False
    relayed: bool = False
    max_running: int = 2
    parked: frozenset[str] = frozenset()
    outcome_rules: tuple[Callable[["Scenario", Run], Iterator[str]], ...] = ()
    kinds: frozenset[Fault] = ALL_KINDS

    def parts(self) -> "list[Scenario]":
        """Split the scenario by kinds of faults. With at most one fault, the parts together are the whole."""
        return [replace(self, kinds=frozenset(map(Fault, codes))) for codes in PARTS]

    def start(self, environment: ExplorerEnvironment, faults: int, trace: list[str] | None = None) -> Run:
        """Return a run before its first move."""
        run = Run(environment, faults, self.max_running, self.kinds, trace=trace)
        environment.run = run
        self.prepare(environment, run)
        return run


def order_requested(order_id: str = ORDER_ID, method: str = "pm_card_visa", quantity: int = 2) -> str:
    """Return a message of a partner on the orders queue."""
    return json.dumps(
        {
            "specversion": "1.0",
            "id": f"{order_id}/order.requested",
            "source": "partner.example",
            "type": "order.requested",
            "correlationid": "c-1",
            "data": {
                "order_id": order_id,
                "customer": {"name": "A. Buyer", "email": "buyer@example.com"},
                "currency": "EUR",
                "items": [{"sku": "A-1", "quantity": quantity, "unit_price": 1250}],
                "payment_method": method,
            },
        }
    )


# Sources


def queue(run: Run, name: str, bodies: tuple[str, ...] = (), batch: int = 1) -> None:
    """Add a queue with its mapping and with messages."""

    def acknowledged(queue: str, message: Message) -> None:
        subject = json.loads(message.body)["data"]["order_id"]
        record = run.model.tables.items["idempotency"].get((f"{OPERATIONS[queue]}#{subject}",), {})
        parked = any(other.body == message.body for other in run.model.queues.sent[f"{queue}-dlq"])
        if record.get("status") != {"S": "COMPLETED"} and not parked:
            run.facts.offences.add(f"acknowledged_is_done: {message.id} on {queue} was acknowledged")

    function = {"orders": "order", "payments": "payment", "emails": "email"}[name]
    for body in bodies:
        run.model.queues.put(name, {"MessageBody": body})
    run.sources.append(
        QueueSource(function[0], function, name, TIMEOUTS_S[function], run.model.queues, acknowledged, batch)
    )


def stream(run: Run) -> None:
    """Add the stream of the idempotency table with the relay."""
    run.sources.append(StreamSource("r", "relay", TIMEOUTS_S["relay"], lambda: run.clock.ms))


def client(run: Run, label: str, quantity: int = 2) -> None:
    """Add a client of the API that repeats its request until the answer is final."""
    order = json.loads(order_requested(quantity=quantity))["data"]
    order.pop("order_id")
    run.sources.append(
        ClientSource(label, "api", TIMEOUTS_S["api"], lambda: run.clock.ms, json.dumps(order), run.facts)
    )


# Initial states


@dataclass(frozen=True)
class Seed:
    """Items by table, every message sent, by queue, S3's objects by bucket and key, and the emails."""

    items: Mapping[str, Mapping[tuple[str, ...], Mapping[str, Any]]]
    sent: Mapping[str, tuple[str, ...]]
    objects: Mapping[tuple[str, str], bytes]
    mails: tuple[Mail, ...]


@functools.cache
def seed(environment: ExplorerEnvironment, method: str, *stages: str) -> Seed:
    """Return the state after the first stages in a run without faults."""
    run = Run(environment, 0)
    before, environment.run = environment.run, run
    stream(run)
    for stage in stages:
        queue(run, stage, (order_requested(method=method),) if stage == "orders" else ())
    while run.active or run.settle():
        run.move(run.moves()[0])
    environment.run = before
    return Seed(
        {table: dict(items) for table, items in run.model.tables.items.items()},
        {name: tuple(dict.fromkeys(message.body for message in sent)) for name, sent in run.model.queues.sent.items()},
        dict(run.model.rest.objects),
        tuple(replace(mail, by=SEEDED) for mail in run.model.rest.mails),
    )


def plant(run: Run, found: Seed) -> None:
    """Start the run with this state."""
    for table, items in found.items.items():
        for key, item in items.items():
            run.model.tables.place(table, key, item)
    run.model.rest.objects.update(found.objects)
    run.model.rest.mails.extend(found.mails)
    run.facts.committed.add(SEEDED)


# The scenarios


def _order(_: ExplorerEnvironment, run: Run) -> None:
    queue(run, "orders", (order_requested(),) * 2)


def _order_refused(_: ExplorerEnvironment, run: Run) -> None:
    """An id with the API's prefix, without a row of the API."""
    queue(run, "orders", (order_requested("api_1"),) * 2)


def _order_in_one_batch(_: ExplorerEnvironment, run: Run) -> None:
    queue(run, "orders", (order_requested(), order_requested("ord_2"), order_requested()), batch=3)


def _payment(method: str, copies: int = 2) -> Callable[[ExplorerEnvironment, Run], None]:
    def prepare(environment: ExplorerEnvironment, run: Run) -> None:
        found = seed(environment, method, "orders")
        plant(run, found)
        queue(run, "payments", found.sent["payments"] * copies)

    return prepare


def _payment_of_another_amount(environment: ExplorerEnvironment, run: Run) -> None:
    """Two messages with one order id: the correct one, and one with another amount. A person redrives parked messages.

    The message that claims second is parked. If this is the correct one, it finishes after its redrive.
    """
    found = seed(environment, "pm_card_visa", "orders")
    plant(run, found)
    (true,) = found.sent["payments"]
    another = json.loads(true)
    another["data"]["total"] += 1
    queue(run, "payments", (true, json.dumps(another)))
    run.redrives_left = 2


def _payment_cold(environment: ExplorerEnvironment, run: Run) -> None:
    """One message, and workers that must fetch the API key first."""
    found = seed(environment, "pm_card_visa", "orders")
    plant(run, found)
    queue(run, "payments", found.sent["payments"])
    run.warm = False


def _payment_forgetful(environment: ExplorerEnvironment, run: Run) -> None:
    """The provider deletes its idempotency keys as soon as it has answered, so that no guarantee depends on them."""
    _payment("pm_card_visa")(environment, run)
    run.forgetful = True


def _payment_refused_at_confirm(environment: ExplorerEnvironment, run: Run) -> None:
    """The provider refuses the method only when the intent is confirmed."""
    _payment("pm_card_visa", 1)(environment, run)
    run.refuses = {"confirm": {"param": "payment_method"}}


def _payment_with_wrong_key(environment: ExplorerEnvironment, run: Run) -> None:
    """The key of another account, until a person corrects the secret and redrives."""
    _payment_cold(environment, run)
    run.wrong_key = True
    run.redrives_left = 1


def _payment_settled(environment: ExplorerEnvironment, run: Run) -> None:
    """A person settles the order while a worker charges it, or has not begun, or is late."""
    _payment("pm_card_visa", 1)(environment, run)
    run.sources.append(Person("s", ORDER_ID, lambda: run.clock.ms))


def _payment_deleted(method: str) -> Callable[[ExplorerEnvironment, Run], None]:
    """The record is deleted in any attempt or between two. The next attempt counts from 1 again.

    So the provider replays its answers of up to a day ago. The first is a failure without effect.
    """

    def prepare(environment: ExplorerEnvironment, run: Run) -> None:
        _payment(method, 1)(environment, run)
        intent = _intent(1, payment_method=method)
        provider.plant(run.model, intent)
        orders = run.model.tables.items["orders"]
        row = {**orders[(ORDER_ID,)], "intent_id": {"S": intent["id"]}}
        run.model.tables.call("PutItem", {"TableName": "orders", "Item": row})
        provider.plant_failure(
            run.model,
            f"/v1/payment_intents/{intent['id']}/confirm",
            {"error_on_requires_action": "true"},
            f"{intent['id']}/confirm/1",
            run.clock.ms // 1000 + 24 * 3600,
        )
        delete = {
            "TableName": "idempotency",
            "Key": {"id": {"S": f"payment.charge#{ORDER_ID}"}},
            "ConditionExpression": "#status = :inprogress",
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": {":inprogress": {"S": "INPROGRESS"}},
        }
        call = Call("dynamodb", "DeleteItem", delete, b"", "")
        run.late += (LateRequest(NOBODY, NOBODY, call, b"", frozenset()),)

    return prepare


OTHER_ORDER = {"amount": 9900, "metadata": {"order_id": "ord_other"}}


def _intent(number: int, **fields: Any) -> dict[str, Any]:
    """An intent for the order that waits to be confirmed, with these fields instead."""
    made = objects.new_payment_intent(2500, "eur", "pm_card_visa", None, {"order_id": ORDER_ID})
    return {**made, "id": f"pi_{number:024}", "created": 0, **fields}


def _payment_with_other_answers(
    call: str, fields: Mapping[str, Any], method: str = "pm_card_visa", planted: tuple[dict[str, Any], ...] = ()
) -> Callable[[ExplorerEnvironment, Run], None]:
    """The provider does what a call asks for, and answers with fields of another intent.

    `planted`: intents that the provider has before the run begins. If there are two, the first is on the order row.
    """

    def prepare(environment: ExplorerEnvironment, run: Run) -> None:
        _payment(method, 1)(environment, run)
        for intent in planted:
            provider.plant(run.model, intent)
        if len(planted) > 1:
            orders = run.model.tables.items["orders"]
            row = {**orders[(ORDER_ID,)], "intent_id": {"S": planted[0]["id"]}}
            run.model.tables.call("PutItem", {"TableName": "orders", "Item": row})
        run.other_fields = {call: fields}

    return prepare


_OWN, _SECOND = _intent(1), _intent(2)
_OF_ANOTHER_ORDER, _OF_ANOTHER_AMOUNT = _intent(3, **OTHER_ORDER), _intent(4, amount=1)


def _email(method: str, copies: int = 2) -> Callable[[ExplorerEnvironment, Run], None]:
    def prepare(environment: ExplorerEnvironment, run: Run) -> None:
        found = seed(environment, method, "orders", "payments")
        plant(run, found)
        queue(run, "emails", found.sent["emails"] * copies)

    return prepare


def _records_forgotten(*stages: str) -> Callable[[ExplorerEnvironment, Run], None]:
    """The last stage is done, its record and the provider's keys are gone, and its message is delivered again."""

    def prepare(environment: ExplorerEnvironment, run: Run) -> None:
        found, last = seed(environment, "pm_card_visa", *stages), stages[-1]
        plant(run, found)
        key = {"id": {"S": f"{OPERATIONS[last]}#{ORDER_ID}"}}
        run.model.tables.call("DeleteItem", {"TableName": "idempotency", "Key": key})
        provider.forget_keys(run.model)
        queue(run, last, found.sent[last])

    return prepare


def _relay(environment: ExplorerEnvironment, run: Run) -> None:
    found = seed(environment, "pm_card_visa", "orders", "payments")
    plant(run, found)
    stream(run)
    source = run.sources[0]
    assert isinstance(source, StreamSource)
    for item in found.items["idempotency"].values():
        source.changed(dict(item))


def _api(_: ExplorerEnvironment, run: Run) -> None:
    client(run, "a")
    client(run, "b")


def _api_reused(_: ExplorerEnvironment, run: Run) -> None:
    client(run, "a")
    client(run, "b", quantity=3)


def _chain(copies: int) -> Callable[[ExplorerEnvironment, Run], None]:
    def prepare(_: ExplorerEnvironment, run: Run) -> None:
        queue(run, "orders", (order_requested(),) * copies)
        stream(run)
        queue(run, "payments")

    return prepare


def _pipeline(_: ExplorerEnvironment, run: Run) -> None:
    queue(run, "orders", (order_requested(),) * 2)
    stream(run)
    queue(run, "payments")
    queue(run, "emails")


PAID, DECLINED, PLACED, REQUESTED = (frozenset({state}) for state in ("paid", "declined", "placed", "requested"))

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("order", _order, PLACED),
        Scenario("order-batch", _order_in_one_batch, PLACED),
        Scenario("order-refused", _order_refused, frozenset(), parked=frozenset({"reserved_order_id"})),
        Scenario("payment", _payment("pm_card_visa"), PAID),
        Scenario("payment-declined", _payment("pm_card_chargeDeclined"), DECLINED),
        # One message has two workers too: while its worker stalls past the lease, the message is delivered again.
        Scenario("payment-once", _payment("pm_card_visa", 1), PAID),
        Scenario("payment-declined-once", _payment("pm_card_chargeDeclined", 1), DECLINED),
        Scenario("payment-cold", _payment_cold, PAID),
        Scenario("payment-forgetful", _payment_forgetful, PAID),
        # Without late requests: a late claim may be applied if its record was deleted (docs/correctness.md).
        Scenario("payment-deleted", _payment_deleted("pm_card_visa"), PAID, kinds=ALL_KINDS - MAKE_LATE),
        Scenario(
            "payment-declined-deleted",
            _payment_deleted("pm_card_chargeDeclined"),
            DECLINED,
            kinds=ALL_KINDS - MAKE_LATE,
        ),
        Scenario("payment-another", _payment_of_another_amount, PAID, parked=frozenset({"key_reused"})),
        # An answer about another order or amount. If a worker fixes, confirms or believes it, an invariant breaks.
        Scenario(
            "payment-other-create",
            _payment_with_other_answers("create", _OF_ANOTHER_ORDER, planted=(_OF_ANOTHER_ORDER,)),
            PLACED,
            parked=frozenset({"intent_mismatch"}),
        ),
        Scenario(
            "payment-other-amount-create",
            _payment_with_other_answers("create", _OF_ANOTHER_AMOUNT, planted=(_OF_ANOTHER_AMOUNT,)),
            PLACED,
            parked=frozenset({"intent_mismatch"}),
        ),
        Scenario(
            "payment-other-retrieve",
            _payment_with_other_answers("retrieve", _SECOND, planted=(_OWN, _SECOND)),
            PLACED,
            parked=frozenset({"intent_mismatch"}),
        ),
        Scenario(
            "payment-other-confirm",
            _payment_with_other_answers("confirm", {**OTHER_ORDER, "status": "canceled"}),
            PAID,
            max_running=1,  # with two workers at a time the search takes eight times as many moves
        ),
        Scenario(
            "payment-other-cancel",
            _payment_with_other_answers(
                "cancel", {**OTHER_ORDER, "status": "succeeded", "amount_received": 9900}, "pm_card_chargeDeclined"
            ),
            DECLINED,
            max_running=1,
        ),
        Scenario("payment-refused-at-create", _payment("pm_sandbox_unusable", 1), DECLINED),
        Scenario("payment-refused-at-confirm", _payment_refused_at_confirm, DECLINED),
        Scenario("payment-wrong-key", _payment_with_wrong_key, PAID, parked=frozenset({"payment_method_missing"})),
        Scenario("payment-settled", _payment_settled, PAID | DECLINED),
        Scenario("payment-slow", _payment("pm_sandbox_slow"), PAID),
        Scenario("payment-error-before", _payment("pm_sandbox_error_before"), PAID),
        Scenario("payment-error-after", _payment("pm_sandbox_error_after"), PAID),
        Scenario("payment-drop", _payment("pm_sandbox_drop"), PAID),
        Scenario("email", _email("pm_card_visa"), PAID, mailed=True),
        Scenario("email-declined", _email("pm_card_chargeDeclined"), DECLINED, mailed=True),
        Scenario("email-once", _email("pm_card_visa", 1), PAID, mailed=True),
        Scenario("email-declined-once", _email("pm_card_chargeDeclined", 1), DECLINED, mailed=True),
        # One for each step with an external effect.
        Scenario("payment-forgotten", _records_forgotten("orders", "payments"), PAID),
        Scenario("email-forgotten", _records_forgotten("orders", "payments", "emails"), PAID, mailed=True),
        Scenario("relay", _relay, PAID, relayed=True),
        Scenario("api", _api, REQUESTED),
        Scenario("api-reused", _api_reused, REQUESTED),
        Scenario("chain", _chain(1), PAID, relayed=True),
        Scenario("chain-twice", _chain(2), PAID, relayed=True),
        Scenario("pipeline", _pipeline, PAID, mailed=True, relayed=True),
    )
}
