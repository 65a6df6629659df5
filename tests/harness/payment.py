"""The payment function in a test: orders, deliveries and observations."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
import stripe

from functions.order.handler import place
from functions.payment.handler import charge, handler
from shared.idempotency import Attempt, cloudevent, iso
from shared.orders.events import Customer, Item, OrderPlaced, OrderRequested
from tests.harness.interceptor import Killed
from tests.harness.moto_world import World
from tests.harness.provider_connection import ProviderConnection
from tests.harness.sqs_records import sqs_record

WORKER_S = 120.0  # that a worker has; the timeouts in it are real, and a busy machine is slow
LEASE_S = 123  # past the end of its lease, skew included


@dataclass
class Delivery:
    """A message on the payments queue."""

    event: OrderPlaced
    message_id: str
    receives: int = 0

    def record(self) -> dict[str, Any]:
        """As Lambda hands it over, received once more."""
        self.receives += 1
        body = msgspec.json.encode(cloudevent(self.event, correlation_id="c-1", time=iso(0))).decode()
        return sqs_record(self.message_id, body, queue="payments", receive_count=self.receives)


@dataclass
class Payments:
    """Orders, their deliveries, and what the tables and the ledger say about them."""

    world: World
    connection: ProviderConnection
    provider: stripe.StripeClient  # the test's own

    def order(self, order_id: str = "ord_1", method: str = "pm_card_visa", total: int = 2500) -> OrderPlaced:
        """An order that the order step has placed; the event that it emitted."""
        requested = OrderRequested(
            order_id=order_id,
            customer=Customer(name="A. Buyer", email="buyer@example.com"),
            currency="EUR",
            items=(Item(sku="A-1", quantity=1, unit_price=total),),
            payment_method=method,
        )
        self.world.engine.run(place, requested, self.world.clock.now_ms() + 120_000, correlation_id="c-1")
        self.world.wire.sent.clear()
        return OrderPlaced(order_id=order_id, currency="EUR", total=total, payment_method=method)

    def delivery(self, method: str = "pm_card_visa") -> Delivery:
        """A placed order and the message that says so."""
        return Delivery(self.order(method=method), "message-1")

    def deliver(self, *deliveries: Delivery, seconds: float = WORKER_S) -> list[str]:
        """Hand the messages to a worker; the ids that it reports."""
        event = {"Records": [delivery.record() for delivery in deliveries]}
        answer = handler(event, self.world.context(seconds))
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def deliver_and_die(self, *deliveries: Delivery) -> None:
        """Hand the messages to a worker that is killed, as planned on the wire."""
        with pytest.raises(Killed):
            self.deliver(*deliveries)

    def until_quiet(self, *deliveries: Delivery) -> None:
        """Deliver again, each time after the wait that the worker asked for, until nothing is reported."""
        waiting = list(deliveries)
        for _ in range(50):
            reported = self.deliver(*waiting)
            waiting = [delivery for delivery in waiting if delivery.message_id in reported]
            if not waiting:
                return
            self.world.clock.advance(self.waits()[-1])
        raise AssertionError(f"still not done after 50 deliveries: {waiting}")

    def waits(self) -> list[int]:
        """The visibility timeouts that workers asked for, in seconds."""
        bodies = [json.loads(body) for body in self.world.wire.bodies("ChangeMessageVisibilityBatch")]
        return [entry["VisibilityTimeout"] for body in bodies for entry in body["Entries"]]

    def attempt(self, order: OrderPlaced, number: int = 1, seconds: float = WORKER_S) -> Attempt:
        """A try as the core hands it to the step, for tests of the step alone."""
        now_ms = self.world.clock.now_ms()
        return Attempt(
            key=charge.record_key(order),
            number=number,
            uncertain=False,
            correlation_id="c-1",
            deadline_ms=now_ms + int(seconds * 1000),
            clock=self.world.clock,
        )

    def forget(self) -> None:
        """A day and a TTL later: the provider's keys are pruned, the idempotency table is empty."""
        self.provider.raw_request("delete", "/v1/sandbox/idempotency_keys")
        self.world.empty("idempotency", "id")

    def charges(self, order_id: str = "ord_1") -> list[tuple[str, int]]:
        """Status and amount of every charge that the provider's ledger has for the order."""
        found = self.provider.v1.charges.list({"limit": 100}).data
        return [(entry.status, entry.amount) for entry in found if entry.metadata["order_id"] == order_id]

    def intents(self) -> list[str]:
        """The statuses of all intents, oldest first."""
        found = self.provider.v1.payment_intents.list({"limit": 100}).data
        return [intent.status for intent in reversed(found)]

    def state(self, order_id: str = "ord_1") -> str:
        """The order's state."""
        row = self.world.row(order_id)
        assert row
        return str(row["state"]["S"])

    def result(self, order_id: str = "ord_1") -> Any:
        """The stored result of the payment."""
        record = self.world.record(f"payment.charge#{order_id}")
        assert record
        return json.loads(record["data"]["S"])

    def outbox(self, order_id: str = "ord_1") -> list[tuple[str, Any]]:
        """Types and data of the events that the payment's record emits."""
        record = self.world.record(f"payment.charge#{order_id}")
        assert record
        events = [entry["event"] for entry in json.loads(record["outbox"]["S"])]
        return [(event["type"], event["data"]) for event in events]

    def parked(self) -> list[str]:
        """Reasons of what was parked since the last look."""
        return [message["MessageAttributes"]["reason"]["StringValue"] for message in self.world.messages("dlq")]

    def settled_once(self, state: str = "paid") -> None:
        """Assert one charge, the final state that belongs to it, a stored result, one event, and nothing parked."""
        assert self.charges() == [("succeeded" if state == "paid" else "failed", 2500)]
        assert self.state() == state
        assert self.result()["state"] == state
        assert [kind for kind, _ in self.outbox()] == [f"order.{state}"]
        assert self.parked() == []


def metrics(output: str) -> Counter[str]:
    """The counts in what was printed, by name."""
    counts: Counter[str] = Counter()
    for line in output.splitlines():
        entry = json.loads(line) if line.startswith("{") else {}
        for block in entry.get("_aws", {}).get("CloudWatchMetrics", []):
            for metric in block["Metrics"]:
                value = entry[metric["Name"]]
                counts[metric["Name"]] += int(sum(value) if isinstance(value, list) else value)
    return counts
