"""DynamoDB requests and units of each kind of step, by the deployed handlers and MiniStack's tables."""

import importlib
import json
import os
from collections.abc import Callable
from typing import Any

import msgspec
from shared.idempotency import (
    Attempt,
    Effect,
    Event,
    NotDone,
    Outcome,
    client,
    cloudevent,
    epoch_ms,
    iso,
    no_guard,
    sqs_handler,
    step,
)
from shared.orders.events import OrderPaid, OrderPlaced
from tests.harness.http_lambda import serve

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, GoalResult, require
from lab.benchmarks.request_counter import RequestCounter
from lab.benchmarks.subjects import CONTEXT, Effects, Record, batch
from lab.benchmarks.tables import local_aws
from lab.peers import step as published

Handler = Callable[[dict[str, Any], Any], Any]


def measure(quick: bool) -> Figure:
    """Process one order by the real handlers, each message again, one that fails, and the peers."""
    del quick  # one message of each kind
    with local_aws(), quiet():
        return _measured()


def _measured() -> Figure:
    counted, effects = RequestCounter(), Effects()
    counted.look_at(client("dynamodb"))
    counted.look_at(published.dynamodb())
    rows: list[dict[str, Any]] = []

    def count(what: str, handler: Handler, record: Record, fails: bool = False) -> int:
        counted.clear()
        answer = handler(batch([record]), CONTEXT)
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        require(failed == ([record["messageId"]] if fails else []), f"{what}: failed {failed}")
        rows.append({"": what, **counted.row()})
        return counted.requests.total()

    goals = [*_this_repo(counted, rows, count), *_plain(effects, count)]
    _peers(effects, count)
    return Figure(
        "requests",
        "DynamoDB requests and units of one message, as MiniStack counts them",
        rows,
        [(row[""], float(row["requests"])) for row in rows],
        "requests",
        goals,
        (
            "A guard reads the order row before the effect: it protects the order when all records are deleted.",
            (
                "A transacted write costs two units, a plain write one. A change of the index keys writes the index. "
                "MiniStack counts less than AWS; lab/docs/cost.md counts by AWS's rules."
            ),
            (
                "AWS charges a refused write too: add 1 unit for a refused UpdateItem or PutItem, and 2 for each item "
                "of a refused transaction."
            ),
            "The peers' row write is included. SendMessage is not: it is a request to SQS.",
        ),
    )


def _this_repo(counted: RequestCounter, rows: list[dict[str, Any]], count: Callable[..., int]) -> list[GoalResult]:
    order, payment, email, api, sandbox = (
        importlib.import_module(f"functions.{name}.handler").handler
        for name in ("order", "payment", "email", "api", "payment_sandbox")
    )
    ordered = subjects.records("order.requested", 1)[0]
    order_id = ordered["messageId"]
    placed = subjects.records("order.placed", 1)[0]
    with open("events/api.json") as sample:
        request = json.load(sample)
    counted.clear()
    answer = api(request, CONTEXT)
    require(answer["statusCode"] == 202, f"the API says {answer}")
    rows.append({"": "POST /orders", **counted.row()})
    goals = [
        GoalResult("POST /orders (internal step), requests", counted.requests.total(), 1),
        GoalResult("order (internal step), requests", count("order", order, ordered), 1),
        GoalResult("order, a duplicate, requests", count("order, a duplicate", order, ordered), 1),
    ]
    os.environ.update(LEDGER_TABLE="ledger", SLOW_S="1")
    with serve(sandbox) as url:
        os.environ["PROVIDER_URL"] = url
        goals += [
            GoalResult("payment (external step), requests", count("payment", payment, placed), 4),
            GoalResult("payment, a duplicate, requests", count("payment, a duplicate", payment, placed), 1),
        ]
    row = _row(order_id)
    require(row.get("state") == {"S": "paid"}, f"the order is {row.get('state')}")
    paid = OrderPaid(order_id=order_id, currency="EUR", total=subjects.TOTAL, payment_intent=row["intent_id"]["S"])
    mail = _record(paid)
    goals += [
        GoalResult("email (external step), requests", count("email", email, mail), 3),
        GoalResult("email, a duplicate, requests", count("email, a duplicate", email, mail), 1),
    ]
    require("mailed_at" in _row(order_id), "the order is not mailed")
    return goals


def _plain(effects: Effects, count: Callable[..., int]) -> list[GoalResult]:
    """A step that reads nothing, and a step that fails before its effect."""

    @step("bench.plain", event=OrderPlaced, key=lambda order: order.order_id, effect=Effect.EXTERNAL, guard=no_guard)
    def plain(order: OrderPlaced, _: Attempt, __: None) -> Outcome:
        if effects.pause_s:
            raise NotDone("as planned")
        return Outcome(effects.charge(order.order_id))

    handler = sqs_handler(plain)
    first, second = subjects.records("order.placed", 2, start=100)
    done = count("external step with no guard read", handler, first)
    effects.pause_s = 1.0
    failed = count("a step that fails before its effect", handler, second, fails=True)
    effects.pause_s = 0.0
    require(effects.done == [first["messageId"]], f"effects {effects.done}")
    effects.done.clear()
    return [GoalResult("external step, requests", done, 2), GoalResult("a failure, requests", failed, 2)]


def _peers(effects: Effects, count: Callable[..., int]) -> None:
    for number, make in enumerate((subjects.powertools, subjects.claim_with_expiry)):
        peer = make(effects)
        first = subjects.records("order.placed", 1, start=200 + number)[0]
        count(peer.name, peer.handler, first)
        count(f"{peer.name}, a duplicate", peer.handler, first)
        require(effects.done == [first["messageId"]], f"{peer.name}: effects {effects.done}")
        require(_row(first["messageId"]).get("state") == {"S": "paid"}, f"{peer.name}: the order is not paid")
        effects.done.clear()


def _row(order_id: str) -> dict[str, Any]:
    key = {"order_id": {"S": order_id}}
    answer = client("dynamodb").get_item(TableName="orders", Key=key, ConsistentRead=True)
    item: dict[str, Any] = answer.get("Item", {})
    return item


def _record(event: Event) -> Record:
    envelope = cloudevent(event, correlation_id="c-1", time=iso(epoch_ms()))
    record = subjects.records("order.placed", 1)[0]
    return {**record, "body": msgspec.json.encode(envelope).decode()}
