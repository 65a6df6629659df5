"""CPU time of the guard alone: the client is a stub that answers at once, so no botocore is included."""

import json
import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from shared.idempotency import Attempt, Effect, Engine, Outcome, Step, epoch_ms, no_guard
from shared.idempotency.runtime import SystemClock
from shared.idempotency.store import Store
from shared.orders.events import OrderPlaced
from tests.harness.decoding import decode

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, GoalResult, require
from lab.benchmarks.sampling import cpu_us, interleaved
from lab.benchmarks.subjects import LEFT_MS, Effects, Record


class Client:
    """A stub that accepts and counts every write. The peers use `exceptions`."""

    exceptions = SimpleNamespace(ConditionalCheckFailedException=KeyError)

    def __init__(self) -> None:
        self.requests = 0

    def _write(self, **_: Any) -> dict[str, Any]:
        self.requests += 1
        return {}

    put_item = update_item = transact_write_items = _write


class Result(msgspec.Struct, frozen=True):
    """The result of the step."""

    order_id: str
    payment_intent: str


def measure(quick: bool) -> Figure:
    """Measure a step that does nothing, in each guard."""
    rounds, times = (2, 50) if quick else (15, 2000)
    client, effects = Client(), Effects()
    record = subjects.records("order.placed", 1)[0]
    of = {
        "this repository, external step": (_this_repo(client, effects, Effect.EXTERNAL), 2),
        "this repository, internal step": (_this_repo(client, effects, Effect.NONE), 1),
        "Powertools": (_powertools(client, effects), 2),
        "claim with expiry": (_claim_with_expiry(client, effects), 2),
        "by hand, the minimum": (_by_hand(client, effects), 2),
    }

    def timed(run: Callable[[Record], object], requests: int) -> Callable[[], float]:
        def once() -> float:
            client.requests = 0
            effects.done.clear()
            cost = cpu_us(lambda: run(record), times)
            require(client.requests == requests * times, f"{client.requests} requests, not {requests * times}")
            require(effects.done == [record["messageId"]] * times, f"{len(effects.done)} effects, not {times}")
            return cost

        return once

    with quiet():
        samples = interleaved({name: timed(*it) for name, it in of.items()}, rounds)
    rows = [
        {"": name, "µs": round(samples.median(name), 1), "fastest round, µs": round(min(samples.by_subject[name]), 1)}
        for name in of
    ]
    return Figure(
        "guard",
        "Python of the guard alone, without botocore: read the message, claim, complete",
        rows,
        [(name, samples.median(name)) for name in of],
        "µs",
        [
            GoalResult(f"{name}, µs", round(samples.median(name), 1), round(samples.median("Powertools"), 1))
            for name in ("this repository, external step", "this repository, internal step")
        ],
        (
            "By hand: `json.loads`, two conditional writes, `json.dumps`, without fingerprint, limits or lease.",
            "The step does nothing and writes no row.",
        ),
    )


def _this_repo(client: Any, effects: Effects, effect: Effect) -> Callable[[Record], object]:
    clock = SystemClock()
    store = Store(client=client, table="t", clock=clock, rng=random.SystemRandom(), ttl_s=30 * 86400, request_s=3.0)
    engine = Engine(store=store, clock=clock, skew_s=2.0, step_needs_s=10.0, reserve_s=9.25)

    def nothing(order: OrderPlaced, _: Attempt, __: None = None) -> Outcome:
        return Outcome(Result(order.order_id, effects.charge(order.order_id)))

    guard = no_guard if effect is Effect.EXTERNAL else None
    of: Step[OrderPlaced] = Step(
        "bench.nothing", {OrderPlaced.type: OrderPlaced}, lambda order: order.order_id, effect, nothing, guard
    )

    def run(record: Record) -> object:
        envelope, event = decode(record["body"], of.kinds)
        return engine.run(of, event, epoch_ms() + LEFT_MS, correlation_id=envelope.correlation_id)

    return run


def _powertools(client: Any, effects: Effects) -> Callable[[Record], object]:
    peer = subjects.peer("powertools", _nothing(effects))
    peer.store.client = client
    return lambda record: peer.record_handler(record=SQSRecord(record))


def _claim_with_expiry(client: Any, effects: Effects) -> Callable[[Record], object]:
    peer = subjects.peer("claim_with_expiry", _nothing(effects))
    vars(peer)["dynamodb"] = lambda: client
    return lambda record: peer.once(json.loads(record["body"])["data"], LEFT_MS)


def _nothing(effects: Effects) -> Callable[[dict[str, Any]], dict[str, str]]:
    def pay(order: dict[str, Any]) -> dict[str, str]:
        return {"order_id": order["order_id"], "payment_intent": effects.charge(order["order_id"])}

    return pay


def _by_hand(client: Any, effects: Effects) -> Callable[[Record], object]:
    work = _nothing(effects)

    def run(record: Record) -> object:
        order = json.loads(record["body"])["data"]
        key = {"S": f"payment#{order['order_id']}"}
        client.put_item(
            TableName="t",
            Item={"id": key, "status": {"S": "INPROGRESS"}, "until": {"N": str(int(time.time()) + 30)}},
            ConditionExpression="attribute_not_exists(id)",
        )
        result = work(order)
        client.update_item(
            TableName="t",
            Key={"id": key},
            UpdateExpression="SET #status = :done, #data = :data",
            ExpressionAttributeNames={"#status": "status", "#data": "data"},
            ExpressionAttributeValues={":done": {"S": "COMPLETED"}, ":data": {"S": json.dumps(result)}},
        )
        return result

    return run
