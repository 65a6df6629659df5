"""Every path through the real handlers, driven once: what they asked AWS for, counted and logged on the way.

What is missing here shows: as a right that is granted and never used, as a metric that is drawn and never emitted.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from functions.sweep.handler import NotSwept
from shared import aws
from shared.idempotency import runtime
from shared.idempotency.events import Event
from tests.stacks.wiretap import Use, Wiretap
from tests.unit.api import conftest as clients
from tests.unit.conftest import SERVICES, World
from tests.unit.payment import line
from tests.unit.payment.conftest import _of_the_sandbox
from tests.unit.pipeline import driver, samples
from tests.unit.pipeline.driver import SWEEP_AGE_S, Pipeline
from tests.unit.pipeline.faults import some_refused
from tests.unit.pipeline.witnesses import Log
from tests.unit.world import Fault, answer_lost, cancelled, meanwhile, never_sent, refused

STAGE = "prod"
DENIED = refused("AccessDeniedException")
WORKER_S = 120
PAST_THE_LEASE_S = WORKER_S + 3

Line = dict[str, Any]


@dataclass
class EveryPath:
    """What the functions did."""

    uses: set[Use] = field(default_factory=set)
    emitted: list[Line] = field(default_factory=list)  # metrics, in EMF
    logged: list[Line] = field(default_factory=list)


_driven: list[EveryPath] = []


@pytest.fixture
def every_path(request: pytest.FixtureRequest) -> EveryPath:
    """Driven when first asked for, and the same for every test after it."""
    if not _driven:
        capsys: pytest.CaptureFixture[str] = request.getfixturevalue("capsys")
        pipeline: Pipeline = request.getfixturevalue("pipeline")
        wiretap = Wiretap()
        with pytest.MonkeyPatch.context() as patch, _listening(wiretap, patch):
            log = Log(patch)
            patch.setenv("STAGE", STAGE)
            Paths(pipeline, wiretap).drive()
        printed = capsys.readouterr().out.splitlines()
        emitted = [json.loads(text) for text in printed if text.startswith('{"_aws"')]
        _driven.append(EveryPath(wiretap.uses, emitted, log.lines))
    return _driven[0]


def _listening(wiretap: Wiretap, patch: pytest.MonkeyPatch) -> ExitStack:
    """All clients are heard, and each handler is known by its function's name, which metrics carry as well."""

    def known(function: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            with pytest.MonkeyPatch.context() as service:
                service.setenv("POWERTOOLS_SERVICE_NAME", function)
                return handler(*given)

        return wiretap.during(function, call)

    for module, name, function in ((clients, "handler", "api"), (driver, "relay", "relay"), (driver, "sweep", "sweep")):
        patch.setattr(module, name, known(function, getattr(module, name)))
    for queue, function in {"orders": "order", "payments": "payment", "emails": "email"}.items():
        consumer = driver.CONSUMERS[queue]
        patch.setattr(consumer, "handler", known(function, consumer.handler))
    listening = ExitStack()
    for service in SERVICES:
        listening.enter_context(wiretap.on(aws.client(service)))
    for service in ("dynamodb", "secretsmanager"):
        listening.enter_context(wiretap.on(_of_the_sandbox(service), "payment_sandbox"))
    return listening


@dataclass
class Paths:
    """Each method drives one function's. What becomes of the orders, other tests tell."""

    pipeline: Pipeline
    wiretap: Wiretap
    _queue: str = ""

    def drive(self) -> None:
        """All of them."""
        self.all_the_way()
        self.api()
        self.order()
        self.payment()
        self.email()
        self.relay()
        self.sweep()

    @property
    def world(self) -> World:
        return self.pipeline.world

    def all_the_way(self) -> None:
        """Paid and declined; everything twice; and again with all records gone, so that the rows decide."""
        for key, method in (("k-1", "pm_card_visa"), ("k-2", "pm_card_chargeDeclined")):
            self.pipeline.post(key, payment_method=method)
        self.pipeline.run()
        self.pipeline.repeat_everything()
        self.pipeline.run()
        self.pipeline.shop.forget()
        self.pipeline.repeat_everything()
        self.pipeline.run()

    def api(self) -> None:
        """Placed, replayed, refused, shown; too late, in conflict, not known."""
        api, wire = self.pipeline.api, self.world.wire
        self.pipeline.setenv("STEP_NEEDS_S", "3")
        order_id = api.post(_new(), "k-3").json["order_id"]
        api.post(_new(), "k-3")
        api.post(_new(quantity=7), "k-3")
        api.get(order_id)
        api.get(order_id, iam=clients.role("session", unique_id="AROAANOTHER"))
        api.post(_new(), None)
        api.post("{", "k-4")
        api.post(_new(), "k-4", seconds=1)
        faults: list[Fault] = [answer_lost, cancelled("TransactionConflict", "None"), DENIED, never_sent]
        for n, fault in enumerate(faults):
            wire.plan("TransactWriteItems", fault)
            api.post(_new(), f"k-5-{n}")
        wire.plan("GetItem", DENIED, DENIED)
        api.get(order_id)
        self.world.empty("idempotency", "id")
        api.post(_new(), "k-3")
        api.post(_new(quantity=7), "k-3")

    def order(self) -> None:
        """Placed, replayed, another order under its id, an id that is the API's, garbage, no permission, no time."""
        self._at("orders")
        for order_id, quantity in (("ord_1", 1), ("ord_1", 1), ("ord_1", 2), ("api_of_nobody", 1)):
            self._give(samples.requested(order_id, quantity=quantity))
        self._give("{")
        self.world.wire.plan("TransactWriteItems", DENIED)
        self._give(samples.requested("ord_2"))
        self._give(samples.requested("ord_2"), seconds=1)
        self._redrive()

    def payment(self) -> None:
        """Whatever can become of a claim; and the provider is down, vague, refuses, misbehaves, wants another key."""
        self._at("payments")
        shop = self.pipeline.shop
        self._claims(
            "pay", lambda name: shop.order(name), lambda fault: shop.line.plan("confirm", line.meanwhile(fault))
        )
        self._give(msgspec.structs.replace(shop.order("pay_false"), total=1))
        too_little = line.refuses(400, "invalid_request_error", code="amount_too_small", param="amount")
        for name, fault in {"down": line.refuses(500), "lost": line.cut_after, "too_little": too_little}.items():
            placed = shop.order(f"pay_{name}")
            shop.line.plan("confirm", fault)
            self._give(placed)
            self.world.clock.advance(PAST_THE_LEASE_S)
            self._give(placed)
        for card in ("slow", "error_before", "error_after", "drop"):
            self._give(shop.order(f"pay_{card}", method=f"pm_sandbox_{card}"))
        placed = shop.order("pay_rotated")
        shop.line.plan("create", line.refuses(401, "invalid_request_error"))
        self._give(placed)
        self.world.wire.plan("GetSecretValue", DENIED)
        self._give(placed)
        self._give(placed)
        self._redrive()

    def email(self) -> None:
        """Whatever can become of a claim; and SES refuses, or does not say."""
        self._at("emails")
        wire = self.world.wire
        self._claims("mail", self._paid, lambda happens: wire.plan("SendEmail", meanwhile(happens)))
        self._give(msgspec.structs.replace(self._paid("mail_false"), total=1))
        self._give(samples.decline(self.world, samples.requested("mail_declined")))
        for name, fault in {"refused": refused("MessageRejected"), "lost": answer_lost}.items():
            paid = self._paid(f"mail_{name}")
            wire.plan("SendEmail", fault)
            self._give(paid)
            self.world.clock.advance(PAST_THE_LEASE_S)
            self._give(paid)
        self._redrive()

    def relay(self) -> None:
        """Sent and sent again, refused for good, unreadable, not in time."""
        wire = self.world.wire
        for n, fault in enumerate(
            (
                some_refused(lambda _: True),
                some_refused(lambda _: True, code="InvalidMessageContents", sender_fault=True),
            )
        ):
            self.pipeline.post(f"k-6-{n}")
            wire.plan("SendMessageBatch", fault)
            self.pipeline.relay()
        unreadable = {"id": {"S": "order.place#bad"}, "status": {"S": "COMPLETED"}, "outbox": {"S": "[{"}}
        self.world.dynamodb.put_item(TableName="idempotency", Item=unreadable)
        self.pipeline.post("k-7")
        wire.always("SendMessageBatch", DENIED)
        self.pipeline.relay()
        wire.always("SendMessageBatch", None)
        self.pipeline.relay()

    def sweep(self) -> None:
        """An order that stands still at each stage; then one that can not be helped."""
        samples.accept(self.world, samples.requested("api_still"))
        samples.place(self.world, samples.requested("ord_still"))
        self._paid("paid_still")
        self.world.clock.advance(SWEEP_AGE_S)
        self.pipeline.sweep()
        self.world.clock.advance(2 * SWEEP_AGE_S)
        self.world.wire.always("SendMessageBatch", DENIED)
        with suppress(NotSwept):
            self.pipeline.sweep()
        self.world.wire.always("SendMessageBatch", None)

    def _at(self, queue: str) -> None:
        """From here on, messages are this queue's."""
        self._queue = queue
        self.pipeline.setenv("QUEUE_URL", self.world.queues[queue])
        self.pipeline.setenv("DLQ_URL", self.world.queues[f"{queue}-dlq"])
        self.pipeline.setenv("STEP_NEEDS_S", "10")
        runtime.consumer.cache_clear()

    def _give(self, message: Event | str, seconds: float = WORKER_S) -> None:
        """Hand a message to the queue's function."""
        body = message if isinstance(message, str) else samples.body_of(message)
        driver.CONSUMERS[self._queue].handler(samples.sqs_event(body), self.world.context(seconds))

    def _redrive(self) -> None:
        """All that was parked comes once more."""
        self.pipeline.redrive(self._queue)
        self.pipeline.deliver(self._queue)

    def _claims(
        self, prefix: str, event_of: Callable[[str], Event], during: Callable[[Callable[[], object]], None]
    ) -> None:
        """A step with an outside effect: done, replayed, busy, superseded, refused by its row, not committed."""
        wire = self.world.wire
        event = event_of(f"{prefix}_busy")
        during(lambda: self._give(event))
        self._give(event)
        self._give(event)

        stalled = event_of(f"{prefix}_stalled")

        def taken_over() -> None:
            self.world.clock.advance(PAST_THE_LEASE_S)
            self._give(stalled)

        during(taken_over)
        self._give(stalled)

        event = event_of(f"{prefix}_no_row")
        wire.plan("TransactWriteItems", meanwhile(self.wiretap.during(None, self._lose_rows)))
        self._give(event)

        event = event_of(f"{prefix}_not_committed")
        wire.plan("TransactWriteItems", DENIED)
        self._give(event)
        self.world.clock.advance(PAST_THE_LEASE_S)
        self._give(event)

        self._give(event_of(f"{prefix}_late"), seconds=1)
        self._give("{")

    def _lose_rows(self) -> None:
        self.world.empty("orders", "order_id")

    def _paid(self, order_id: str) -> Event:
        return samples.pay(self.world, samples.requested(order_id))


def _new(**other: Any) -> dict[str, Any]:
    """The body of a request."""
    order: dict[str, Any] = msgspec.to_builtins(samples.requested(**other))
    return {name: value for name, value in order.items() if name != "order_id"}
