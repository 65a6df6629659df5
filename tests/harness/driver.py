"""The application as deployed, in one process: SQS, the stream and the schedule drive the real handlers.

moto holds the messages and the tables; what depends on time is done here, by the test's clock: visibility, back-off,
receive counts, and the move to a DLQ.
"""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import msgspec
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.dynamodb.models import dynamodb_backends

from functions.email.handler import handler as email
from functions.order.handler import handler as order
from functions.payment.handler import handler as payment
from functions.relay.handler import NotRelayed
from functions.relay.handler import handler as relay
from functions.sweep.handler import handler as sweep
from shared.idempotency.sqs import receives_to_ride_out
from tests.harness import samples
from tests.harness.api_fixtures import Api
from tests.harness.interceptor import Apply, Killed
from tests.harness.lost_messages import answer, body_of
from tests.harness.moto_world import World, new_consumer
from tests.harness.observations import Mailbox
from tests.harness.payment import Payments
from tests.harness.sqs_records import sqs_record

OUTAGE_S = 7200
SWEEP_AGE_S = OUTAGE_S + 1800
RELAY_RETRIES = 10
MAX_RECEIVES = receives_to_ride_out(OUTAGE_S, base_s=2, cap_s=900)

Handler = Callable[[dict[str, Any], Any], Any]


@dataclass
class Consumer:
    """A queue's function. Seconds: what its step needs at most, and its timeout, with the reserve of 9.25 s."""

    handler: Handler
    needs_s: int
    timeout_s: int


CONSUMERS = {"orders": Consumer(order, 3, 18), "payments": Consumer(payment, 75, 90), "emails": Consumer(email, 15, 30)}


@dataclass(eq=False)
class Delivery:
    """A message on a queue; `due_ms`: epoch milliseconds from which it can be seen."""

    message_id: str
    body: str
    attributes: dict[str, Any]
    message_attributes: dict[str, Any]
    due_ms: int = 0
    receives: int = 0


@dataclass
class Pipeline:
    """The functions and what lies between them."""

    world: World
    payments: Payments
    mailbox: Mailbox
    setenv: Callable[[str, str], None]
    queues: dict[str, list[Delivery]] = field(default_factory=lambda: {name: [] for name in CONSUMERS})
    seen: dict[str, list[Delivery]] = field(default_factory=lambda: defaultdict(list))  # all that was ever on a queue
    streamed: int = 0  # stream records that the relay has done
    relays_failed: int = 0  # with the next ones
    _ids: "itertools.count[int]" = field(default_factory=itertools.count)
    _waits: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world.dynamodb.update_table(
            TableName="idempotency", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
        )
        for name in CONSUMERS:
            self.world.queues[f"{name}-dlq"] = self.world.sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
        self.world.wire.always("ChangeMessageVisibilityBatch", self._hide)
        self.setenv("ROUTES", json.dumps(samples.routes(self.world)))
        self.setenv("SWEEP_AGE_S", str(SWEEP_AGE_S))
        self.api = Api(self.world, StringIO())

    # What happens from outside

    def post(self, key: str, *, payment_method: str = "pm_card_visa", headers: dict[str, str] | None = None) -> str:
        """An order by the API; its id."""
        order = samples.requested(payment_method=payment_method)
        self.set_times(3, after_commit_s=0)
        new = {name: value for name, value in msgspec.to_builtins(order).items() if name != "order_id"}
        answered = self.api.post(new, key, headers=headers or {})
        assert answered.status == 202, answered.text
        return str(answered.json["order_id"])

    def set_times(self, needs_s: int, after_commit_s: int) -> None:
        """Set the seconds that the next function's step needs, and those of its requests after the commit."""
        self.setenv("STEP_NEEDS_S", str(needs_s))
        self.setenv("RESERVE_S", str(after_commit_s + 0.25))
        new_consumer()

    def put(self, body: str, queue: str = "orders") -> None:
        """A message, from a producer or by a redrive."""
        self.world.sqs.send_message(QueueUrl=self.world.queues[queue], MessageBody=body)

    def run_up_to(self, queue: str) -> None:
        """Everything before this queue's function."""
        for name in CONSUMERS:
            self.relay()
            if name == queue:
                break
            self.deliver(name)

    def repeat_everything(self) -> None:
        """All messages that ever were on a queue come once more."""
        for queue, deliveries in self.seen.items():
            for delivery in deliveries:
                self.put(delivery.body, queue)

    def park(self, delivery: Delivery, queue: str) -> None:
        """A message ends in its queue's DLQ."""
        self.put(delivery.body, f"{queue}-dlq")

    def redrive(self, queue: str) -> None:
        """All of a DLQ back to its queue."""
        for message in self.world.messages(f"{queue}-dlq"):
            self.world.sqs.send_message(
                QueueUrl=self.world.queues[queue],
                MessageBody=message["Body"],
                MessageAttributes=message.get("MessageAttributes", {}),
            )

    def sweep(self) -> None:
        """The schedule comes round."""
        self.set_times(0, after_commit_s=0)
        sweep(samples.sample_event("sweep"), self.world.context(60))

    # What AWS does

    def relay(self) -> bool:
        """The stream's mapping: new records that its filter lets through; whether there were any.

        Where the relay fails, or dies, the same records come again, until the mapping gives them up.
        """
        records = [record.to_json() for record in self._stream[self.streamed :]]
        wanted = [record for record in records if _has_outbox(record)]
        self.setenv("DLQ_URL", self.world.queues["relay-dlq"])
        try:
            if wanted:
                self.set_times(0, after_commit_s=0)
                relay({"Records": wanted}, self.world.context(10))
        except (Killed, NotRelayed):
            self.relays_failed += 1
            if self.relays_failed <= RELAY_RETRIES:
                return True
        self.relays_failed = 0
        self.streamed += len(records)
        return bool(wanted)

    @property
    def _stream(self) -> list[Any]:
        """All records of the idempotency table's stream, as moto keeps them."""
        shard: Any = dynamodb_backends["123456789012"]["eu-west-1"].tables["idempotency"].stream_shard
        return list(shard.items)

    def lose_stream(self) -> None:
        """What is in the stream now is gone."""
        self.streamed = len(self._stream)

    def deliver(self, queue: str) -> bool:
        """The queue's mapping: what can be seen, in tens; whether there was anything."""
        self._take(queue)
        now_ms = self.world.clock.now_ms()
        due = [delivery for delivery in self.queues[queue] if delivery.due_ms <= now_ms]
        for start in range(0, len(due), 10):
            self._invoke(queue, due[start : start + 10])
        return bool(due)

    def run(self, until_s: float | None = None) -> None:
        """Until nothing moves and nothing waits; or until a time (epoch seconds)."""
        for _ in range(300):
            moved = self.relay()
            for queue in CONSUMERS:
                moved |= self.deliver(queue)
            waiting = [delivery.due_ms for deliveries in self.queues.values() for delivery in deliveries]
            stuck = len(self._stream) > self.streamed
            if not moved and not waiting and not stuck:
                break
            next_ms = min([*waiting, *([self.world.clock.now_ms() + 1000] if stuck else [])], default=0)
            if until_s is not None and max(next_ms, self.world.clock.now_ms()) > until_s * 1000:
                break
            self.world.clock.ms = max(self.world.clock.ms, next_ms)
        else:
            raise AssertionError(f"still not quiet: {self.queues}")
        if until_s is not None:
            self.world.clock.ms = max(self.world.clock.ms, int(until_s * 1000))

    def _take(self, queue: str) -> None:
        """From moto, which measures visibility in real time, into our hands."""
        traces = self._traces()
        url = self.world.queues[queue]
        for message in self.world.messages(queue):
            self.world.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            attributes = message["Attributes"]
            if message["Body"] in traces:
                attributes["AWSTraceHeader"] = traces[message["Body"]]
            found = {
                name: {"dataType": value["DataType"], "stringValue": value["StringValue"]}
                for name, value in message.get("MessageAttributes", {}).items()
            }
            delivery = Delivery(f"{queue}-{next(self._ids)}", message["Body"], attributes, found)
            self.queues[queue].append(delivery)
            self.seen[queue].append(delivery)

    def _traces(self) -> dict[str, str]:
        """The trace header of each message that was sent in a batch: moto loses it there."""
        entries = [e for body in self.world.wire.bodies("SendMessageBatch") for e in json.loads(body)["Entries"]]
        return {
            entry["MessageBody"]: entry["MessageSystemAttributes"]["AWSTraceHeader"]["StringValue"]
            for entry in entries
            if "MessageSystemAttributes" in entry
        }

    def _invoke(self, queue: str, batch: list[Delivery]) -> None:
        consumer = CONSUMERS[queue]
        self.setenv("QUEUE_URL", self.world.queues[queue])
        self.setenv("DLQ_URL", self.world.queues[f"{queue}-dlq"])
        self.set_times(consumer.needs_s, after_commit_s=9)
        self._waits.clear()
        failed = {delivery.message_id for delivery in batch}  # as long as nobody says otherwise
        with suppress(Killed):
            answered = consumer.handler(self._event(queue, batch), self.world.context(consumer.timeout_s))
            failed = {failure["itemIdentifier"] for failure in answered["batchItemFailures"]}
        for delivery in batch:
            wait_s = self._waits.get(delivery.message_id, 6 * consumer.timeout_s)
            delivery.due_ms = self.world.clock.now_ms() + wait_s * 1000
            if delivery.message_id not in failed:
                self.queues[queue].remove(delivery)
            elif delivery.receives >= MAX_RECEIVES:
                self.queues[queue].remove(delivery)
                self.park(delivery, queue)

    def _event(self, queue: str, batch: list[Delivery]) -> dict[str, Any]:
        for delivery in batch:
            delivery.receives += 1
        return {
            "Records": [
                sqs_record(
                    delivery.message_id,
                    delivery.body,
                    queue=queue,
                    receipt=delivery.message_id,
                    attributes={**delivery.attributes, "ApproximateReceiveCount": str(delivery.receives)},
                    message_attributes=delivery.message_attributes,
                )
                for delivery in batch
            ]
        }

    def _hide(self, request: AWSPreparedRequest, _: Apply) -> AWSResponse:
        """ChangeMessageVisibilityBatch, by the test's clock."""
        entries = body_of(request)["Entries"]
        self._waits |= {entry["ReceiptHandle"]: entry["VisibilityTimeout"] for entry in entries}
        return answer(request, {"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []})

    # What came of it

    def dead_letters(self) -> dict[str, list[str]]:
        """Reasons, by DLQ; takes the messages off."""
        found = {}
        for name in (*(f"{queue}-dlq" for queue in CONSUMERS), "relay-dlq"):
            messages = self.world.messages(name)
            if messages:
                found[name] = [
                    message.get("MessageAttributes", {}).get("reason", {}).get("StringValue", "received too often")
                    for message in messages
                ]
        return found

    def settled_once(self, order_id: str, state: str, *, mails: int = 1) -> None:
        """Assert one final state, the one charge that belongs to it, one email of its kind, and nothing parked."""
        row = self.rows()[order_id]
        kind, status, subject = {
            "paid": ("receipt", "succeeded", f"Receipt for order {order_id}"),
            "declined": ("decline", "failed", f"Order {order_id} was declined"),
        }[state]
        assert (row["state"]["S"], row["mail"]["S"]) == (state, kind)
        assert not {"open_shard", "open_since", "sweeps"} & set(row)
        assert self.payments.charges(order_id) == [(status, int(row["total"]["N"]))]
        assert [mail for mail in self.mailbox.mails if order_id in mail[1]] == mails * [(samples.ADDRESS, subject)]
        assert self.dead_letters() == {}

    def rows(self) -> dict[str, dict[str, Any]]:
        """All orders."""
        return {row["order_id"]["S"]: row for row in self.world.dynamodb.scan(TableName="orders")["Items"]}


def _has_outbox(record: dict[str, Any]) -> bool:
    """The mapping's filter."""
    image = record["dynamodb"].get("NewImage", {})
    return bool(image.get("status", {}).get("S") == "COMPLETED" and "S" in image.get("outbox", {}))


@pytest.fixture
def pipeline(world: World, payments: Payments, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    return Pipeline(world, payments, mailbox, monkeypatch.setenv)
