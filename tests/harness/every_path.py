"""Every path through the real handlers, driven once: what they asked AWS for, counted and logged on the way.

What is missing here shows: as a right that is granted and never used, as a metric that is drawn and never emitted.
The paths of a queue's function are in `tests/unit/<function>/paths.py`, which drives them with what `Paths` offers.
"""

import importlib
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from functions.sweep.handler import NotSwept
from shared.idempotency import Event, client, cloudevent, outbox
from tests.harness import api_fixtures as clients
from tests.harness import driver, samples
from tests.harness.driver import SWEEP_AGE_S, Pipeline
from tests.harness.interceptor import Fault, answer_lost, cancelled, meanwhile, never_sent, refused
from tests.harness.lost_messages import some_refused
from tests.harness.moto_world import SERVICES, World
from tests.harness.observations import Log
from tests.harness.payment_fixtures import sandbox_client
from tests.harness.synth import Consumer, Synthesised
from tests.harness.wiretap import Use, Wiretap

STAGE = "prod"
DENIED = refused("AccessDeniedException")
WORKER_S = 120
PAST_THE_LEASE_S = WORKER_S + 3

Line = dict[str, Any]
Routes = dict[str, dict[str, str]]  # queue URLs by event type, by who sends there


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
        found: Synthesised = request.getfixturevalue("synthesised")(STAGE)
        drives = [drive_of(consumer.function) for consumer in found.consumers]
        pipeline: Pipeline = request.getfixturevalue("pipeline")
        wiretap = Wiretap()
        with pytest.MonkeyPatch.context() as patch:
            routes = _as_deployed(found, pipeline, patch)
            with _listening(wiretap, patch, found.consumers):
                log = Log(patch)
                patch.setenv("STAGE", STAGE)
                Paths(pipeline, wiretap, routes).drive(drives)
        printed = capsys.readouterr().out.splitlines()
        emitted = [json.loads(text) for text in printed if text.startswith('{"_aws"')]
        _driven.append(EveryPath(wiretap.uses, emitted, log.lines))
    return _driven[0]


def drive_of(function: str) -> "Drive":
    """What drives the paths of a queue's function."""
    module = f"tests.unit.{function}.paths"
    try:
        drive: Drive = importlib.import_module(module).drive
    except ModuleNotFoundError as error:
        if not error.name or not module.startswith(error.name):
            raise
        pytest.fail(
            f"No path of functions/{function} is driven, so nobody knows what it needs: write tests/unit/{function}/"
            "paths.py with `def drive(paths: Paths) -> None`, as in tests/unit/email."
        )
    return drive


def _as_deployed(found: Synthesised, pipeline: Pipeline, patch: pytest.MonkeyPatch) -> Routes:
    """Each queue with its function, also of a stage that the driver does not know; answers ROUTES by sender."""
    urls = pipeline.world.queues
    for consumer in found.consumers:
        if consumer.queue not in driver.CONSUMERS:
            handler = importlib.import_module(f"functions.{consumer.function}.handler").handler
            patch.setitem(driver.CONSUMERS, consumer.queue, driver.Consumer(handler, 10, WORKER_S))
            pipeline.queues[consumer.queue] = []
            for name in (consumer.queue, f"{consumer.queue}-dlq"):
                urls[name] = pipeline.world.sqs.create_queue(QueueName=name)["QueueUrl"]
    named = {f"<{consumer.path}/Queue>": urls[consumer.queue] for consumer in found.consumers}
    told = {sender: json.loads(found.environment(found.functions[sender])["ROUTES"]) for sender in ("relay", "sweep")}
    return {
        sender: {kind: " ".join(named[name] for name in names.split(" ")) for kind, names in routes.items()}
        for sender, routes in told.items()
    }


def _listening(wiretap: Wiretap, patch: pytest.MonkeyPatch, consumers: Sequence[Consumer]) -> ExitStack:
    """All clients are heard, and each handler is known by its function's name, which metrics carry as well."""

    def known(function: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            with pytest.MonkeyPatch.context() as service:
                service.setenv("POWERTOOLS_SERVICE_NAME", function)
                return handler(*given)

        return wiretap.during(function, call)

    for module, name, function in ((clients, "handler", "api"), (driver, "relay", "relay"), (driver, "sweep", "sweep")):
        patch.setattr(module, name, known(function, getattr(module, name)))
    for consumer in consumers:
        driven = driver.CONSUMERS[consumer.queue]
        patch.setattr(driven, "handler", known(consumer.function, driven.handler))
    listening = ExitStack()
    for service in SERVICES:
        listening.enter_context(wiretap.on(client(service)))
    for service in ("dynamodb", "secretsmanager"):
        listening.enter_context(wiretap.on(sandbox_client(service), "payment_sandbox"))
    return listening


@dataclass
class Paths:
    """Those of the functions without a queue, and what drives the others'. What becomes of orders, other tests tell."""

    pipeline: Pipeline
    wiretap: Wiretap
    routes: Routes
    _queue: str = ""

    def drive(self, drives: "Sequence[Drive]") -> None:
        """All of them."""
        self.pipeline.setenv("ROUTES", json.dumps(self.routes["relay"]))
        self.all_the_way()
        self.api()
        for drive in drives:
            drive(self)
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
        self.pipeline.payments.forget()
        self.pipeline.repeat_everything()
        self.pipeline.run()

    def api(self) -> None:
        """Placed, replayed, refused, shown; too late, in conflict, not known."""
        api, wire = self.pipeline.api, self.world.wire
        self.pipeline.set_times(3, after_commit_s=0)
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

    def relay(self) -> None:
        """Sent on every route; sent again, refused for good, unreadable, not in time."""
        wire = self.world.wire
        for kind in self.routes["relay"]:
            event = cloudevent(samples.requested(f"to_{kind}"), correlation_id="c-1", time="2026-01-01T00:00:00.000Z")
            entries = msgspec.json.encode([outbox.Entry(msgspec.structs.replace(event, type=kind))]).decode()
            record = {"id": {"S": f"any#{kind}"}, "status": {"S": "COMPLETED"}, "outbox": {"S": entries}}
            self.world.dynamodb.put_item(TableName="idempotency", Item=record)
        self.pipeline.relay()
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
        self.paid("paid_still")
        self.pipeline.setenv("ROUTES", json.dumps(self.routes["sweep"]))
        self.world.clock.advance(SWEEP_AGE_S)
        self.pipeline.sweep()
        self.world.clock.advance(2 * SWEEP_AGE_S)
        self.world.wire.always("SendMessageBatch", DENIED)
        with suppress(NotSwept):
            self.pipeline.sweep()
        self.world.wire.always("SendMessageBatch", None)

    def at(self, queue: str) -> None:
        """From here on, messages are this queue's."""
        self._queue = queue
        self.pipeline.setenv("QUEUE_URL", self.world.queues[queue])
        self.pipeline.setenv("DLQ_URL", self.world.queues[f"{queue}-dlq"])
        self.pipeline.set_times(10, after_commit_s=9)

    def give(self, message: Event | str, seconds: float = WORKER_S) -> None:
        """Hand a message to the queue's function."""
        body = message if isinstance(message, str) else samples.body_of(message)
        driver.CONSUMERS[self._queue].handler(samples.sqs_event(body), self.world.context(seconds))

    def redrive(self) -> None:
        """All that was parked comes once more."""
        self.pipeline.redrive(self._queue)
        self.pipeline.deliver(self._queue)

    def claims(
        self, prefix: str, event_of: Callable[[str], Event], during: Callable[[Callable[[], object]], None]
    ) -> None:
        """A step with an outside effect: done, replayed, busy, superseded, refused by its row, not committed; garbage.

        `event_of` makes an order ready for the step, and its event; `during` lets something happen within the effect.
        """
        wire = self.world.wire
        event = event_of(f"{prefix}_busy")
        during(lambda: self.give(event))
        self.give(event)
        self.give(event)

        stalled = event_of(f"{prefix}_stalled")

        def taken_over() -> None:
            self.world.clock.advance(PAST_THE_LEASE_S)
            self.give(stalled)

        during(taken_over)
        self.give(stalled)

        event = event_of(f"{prefix}_no_row")
        wire.plan("TransactWriteItems", meanwhile(self.wiretap.during(None, self._lose_rows)))
        self.give(event)

        event = event_of(f"{prefix}_not_committed")
        wire.plan("TransactWriteItems", DENIED)
        self.give(event)
        self.world.clock.advance(PAST_THE_LEASE_S)
        self.give(event)

        self.give(event_of(f"{prefix}_late"), seconds=1)
        self.give("{")

    def _lose_rows(self) -> None:
        self.world.empty("orders", "order_id")

    def paid(self, order_id: str) -> Event:
        """An order with this id is paid; answers the event that says so."""
        return samples.pay(self.world, samples.requested(order_id))


def _new(**other: Any) -> dict[str, Any]:
    """The body of a request."""
    order: dict[str, Any] = msgspec.to_builtins(samples.requested(**other))
    return {name: value for name, value in order.items() if name != "order_id"}


Drive = Callable[[Paths], None]
