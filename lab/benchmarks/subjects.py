"""The same work guarded in three ways: charge, mark the order paid, tell the next step.

The step of this repository returns its row write and its event, and one transaction contains both with the record. The
peers, by the code in lab/peers, write the row and send the event themselves.
"""

import importlib.util
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from functions.order import handler as order
from shared.idempotency import (
    Attempt,
    Effect,
    Outcome,
    Step,
    client,
    cloudevent,
    current_engine,
    epoch_ms,
    iso,
    no_guard,
    sqs_handler,
    step,
)
from shared.orders import writes
from shared.orders.events import Customer, Item, OrderPaid, OrderPlaced, OrderRequested
from tests.harness.decoding import decode

from lab.benchmarks.fake_network import FakeNetwork
from lab.benchmarks.figure import require
from lab.peers import step as published

Record = dict[str, Any]
LEFT_MS = 30_000  # of a worker
TOTAL = 2500


class Paid(msgspec.Struct, frozen=True):
    """The result of the step."""

    order_id: str
    payment_intent: str


@dataclass
class Effects:
    """The outside effect, `pause_s` seconds long. `done` keeps the order ids."""

    pause_s: float = 0.0
    done: list[str] = field(default_factory=list)

    def charge(self, order_id: str) -> str:
        """Charge an order. Returns the id of the intent."""
        if self.pause_s:
            time.sleep(self.pause_s)
        self.done.append(order_id)
        return f"pi_{order_id}"


class Context:
    """The part of Lambda's context that is used."""

    aws_request_id = "request"
    function_name = "benchmark"

    def get_remaining_time_in_millis(self) -> int:
        """The time left, in milliseconds."""
        return LEFT_MS


CONTEXT = Context()


def clients() -> list[Any]:
    """The clients of this repository and of the peers."""
    return [*(client(service) for service in ("dynamodb", "sqs")), published.dynamodb(), published.sqs()]


@dataclass(frozen=True)
class Subject:
    """`step` takes one record, `handler` a batch. `requests` counts the requests of one record by operation."""

    name: str
    step: Callable[[Record], object]
    handler: Callable[[dict[str, Any], Any], Any]
    requests: Counter[str]
    charges: bool = True  # whether it has the outside effect

    def check(self, records: Sequence[Record], network: FakeNetwork, effects: Effects) -> None:
        """Raises WrongEffect unless each order was charged once and marked, and its event sent, by these requests."""
        ids = [record["messageId"] for record in records]
        charged = ids if self.charges else []
        require(sorted(effects.done) == sorted(charged), f"{self.name}: charged {effects.done}, not {charged}")
        self.check_sent(records, network)

    def check_sent(self, records: Sequence[Record], network: FakeNetwork) -> None:
        """The requests alone, as where they are made again and nothing is charged. Raises WrongEffect."""
        ids = [record["messageId"] for record in records]
        expected = Counter({operation: count * len(ids) for operation, count in self.requests.items()})
        require(network.count() == expected, f"{self.name}: sent {network.count()}, not {expected}")
        state, event = ("paid", "order.paid") if self.charges else ("placed", "order.placed")
        for order_id in ids:
            mine = [body for _, body in network.sent if order_id.encode() in body]
            marked = any(f'"S": "{state}"'.encode() in body or f'"S":"{state}"'.encode() in body for body in mine)
            consumed = any(f"{order_id}/{event}".encode() in body for body in mine)
            require(marked and consumed, f"{self.name}: {order_id} is not {state}, or its event was not sent")


def records(kind: str, count: int, start: int = 0) -> list[Record]:
    """SQS records of `count` orders. The message id is the order id."""
    return [_record(kind, f"ord_{number:06d}") for number in range(start, start + count)]


def _record(kind: str, order_id: str) -> Record:
    event: OrderPlaced | OrderRequested
    if kind == "order.placed":
        event = OrderPlaced(order_id=order_id, currency="EUR", total=TOTAL, payment_method="pm_card_visa")
    else:
        event = OrderRequested(
            order_id=order_id,
            customer=Customer("A. Buyer", "buyer@example.com"),
            currency="EUR",
            items=(Item("A-1", 2, TOTAL // 2),),
            payment_method="pm_card_visa",
        )
    body = msgspec.json.encode(cloudevent(event, correlation_id=f"c-{order_id}", time=iso(epoch_ms()))).decode()
    return {
        "messageId": order_id,
        "receiptHandle": f"handle of {order_id}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:payments",
    }


def batch(of: Sequence[Record]) -> dict[str, Any]:
    """The event of an invocation."""
    return {"Records": list(of)}


def external(effects: Effects) -> Subject:
    """A step of this repository with an outside effect: claim, effect, commit."""

    @step("bench.charge", event=OrderPlaced, key=lambda order: order.order_id, effect=Effect.EXTERNAL, guard=no_guard)
    def charge(order: OrderPlaced, attempt: Attempt, _: None) -> Outcome:
        intent_id = effects.charge(order.order_id)
        return Outcome(
            result=Paid(order.order_id, intent_id),
            writes=[
                writes.record_paid(
                    os.environ["ORDERS_TABLE"],
                    order.order_id,
                    intent_id=intent_id,
                    charge_id="ch_1",
                    now_ms=attempt.now_ms,
                )
            ],
            publish=[
                OrderPaid(order_id=order.order_id, currency=order.currency, total=order.total, payment_intent=intent_id)
            ],
        )

    return _this_repo("this repository, external step", charge, Counter(UpdateItem=1, TransactWriteItems=1), True)


def internal() -> Subject:
    """The step of the order function: no outside effect, one transaction."""
    return _this_repo("this repository, internal step", order.place, Counter(TransactWriteItems=1), False)


def _this_repo(name: str, of: Step[Any], requests: Counter[str], charges: bool) -> Subject:
    def run(record: Record) -> object:
        envelope, event = decode(record["body"], of.kinds)
        engine = current_engine()
        deadline_ms = engine.clock.now_ms() + LEFT_MS
        return engine.run(of, event, deadline_ms, correlation_id=envelope.correlation_id)

    return Subject(name, run, sqs_handler(of), requests, charges)


def powertools(effects: Effects) -> Subject:
    """Powertools as documented: an idempotent function in the batch processor."""
    it = peer("powertools", _pay(effects))
    return Subject(
        "Powertools",
        lambda record: it.record_handler(record=SQSRecord(record)),
        it.handler,
        Counter(PutItem=1, UpdateItem=2, SendMessage=1),
    )


def claim_with_expiry(effects: Effects) -> Subject:
    """The published pattern."""
    it = peer("claim_with_expiry", _pay(effects))
    return Subject(
        "claim with expiry",
        lambda record: it.once(json.loads(record["body"])["data"], LEFT_MS),
        it.handler,
        Counter(PutItem=2, UpdateItem=1, SendMessage=1),
    )


def peer(name: str, pay: Callable[[dict[str, Any]], dict[str, str]]) -> Any:
    """A copy of the peer's module that guards `pay`, with its own boto3 clients."""
    spec = importlib.util.find_spec(f"lab.peers.{name}")
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["pay"] = pay
    if name == "powertools":
        module.config.register_lambda_context(CONTEXT)
    return module


def _pay(effects: Effects) -> Callable[[dict[str, Any]], dict[str, str]]:
    """The work of `pay` in lab/peers/step.py, with a charge by `effects`."""
    dynamodb, sqs = published.dynamodb(), published.sqs()

    def pay(order: dict[str, Any]) -> dict[str, str]:
        order_id = order["order_id"]
        intent_id = effects.charge(order_id)
        dynamodb.update_item(
            TableName=os.environ["ORDERS_TABLE"],
            Key={"order_id": {"S": order_id}},
            UpdateExpression="SET #state = :paid, intent_id = :intent",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={":paid": {"S": "paid"}, ":intent": {"S": intent_id}},
        )
        paid = {"order_id": order_id, "payment_intent": intent_id}
        event = {"specversion": "1.0", "id": f"{order_id}/order.paid", "type": "order.paid", "data": paid}
        sqs.send_message(QueueUrl=os.environ["NEXT_QUEUE_URL"], MessageBody=json.dumps(event))
        return paid

    return pay
