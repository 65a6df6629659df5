"""Tables, queues and clients for every unit test, on moto, with the names that the stacks give."""

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from moto import mock_aws
from moto.s3.models import s3_backends
from moto.sqs.models import sqs_backends

from functions.payment_sandbox import store as sandbox
from shared.idempotency import Engine, client, runtime
from shared.idempotency.sqs import current_consumer
from shared.idempotency.store import Store
from tests.harness.interceptor import Context, FakeClock, Wire
from tests.harness.tables import ORDERS_TABLE

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "STAGE": "test",
    "POWERTOOLS_SERVICE_NAME": "test",
    "POWERTOOLS_METRICS_NAMESPACE": "EffectivelyOnce",
    "CLIENT_CONNECT_TIMEOUT_S": "1",
    "CLIENT_READ_TIMEOUT_S": "2",
    "IDEMPOTENCY_TABLE": "idempotency",
    "ORDERS_TABLE": "orders",
    "OPEN_ORDERS_INDEX": "open-orders",
    "RECORD_TTL_S": str(30 * 86400),
    "LEASE_SKEW_S": "2",
    "STEP_NEEDS_S": "10",
    "BACKOFF_BASE_S": "2",
    "BACKOFF_CAP_S": "900",
    "CONCURRENCY": "4",
    "RECEIPTS_BUCKET": "receipts",
    "SENDER": "shop@example.com",
}
QUEUES = ("orders", "payments", "emails", "dlq", "relay-dlq")
SERVICES: tuple[runtime.Service, ...] = ("dynamodb", "sqs", "s3", "sesv2", "secretsmanager")

# Making a client takes longer than most tests; moto forgets its state in between, the clients have none.
_client = functools.cache(runtime.make_client)


@dataclass
class World:
    """What a test holds in its hands."""

    clock: FakeClock
    wire: Wire
    queues: dict[str, str]

    @property
    def dynamodb(self) -> Any:
        return client("dynamodb")

    @property
    def sqs(self) -> Any:
        return client("sqs")

    def context(self, seconds: float = 30.0) -> Context:
        """Lambda's context for a worker with this many seconds."""
        return Context(self.clock, seconds)

    def record(self, key: str) -> dict[str, Any] | None:
        """An idempotency record in DynamoDB's spelling."""
        return self._item("idempotency", {"id": {"S": key}})

    def row(self, order_id: str) -> dict[str, Any] | None:
        """An order row in DynamoDB's spelling."""
        return self._item("orders", {"order_id": {"S": order_id}})

    def _item(self, table: str, key: dict[str, Any]) -> dict[str, Any] | None:
        item: dict[str, Any] | None = self.dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        return item

    def empty(self, table: str, key: str) -> None:
        """Delete all items of a table, as TTL or a hand would."""
        for item in self.dynamodb.scan(TableName=table)["Items"]:
            self.dynamodb.delete_item(TableName=table, Key={key: item[key]})

    def messages(self, queue: str) -> list[dict[str, Any]]:
        """Take all visible messages off a queue."""
        found: list[dict[str, Any]] = []
        while True:
            batch = self.sqs.receive_message(
                QueueUrl=self.queues[queue],
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            ).get("Messages", [])
            if not batch:
                return found
            found += batch

    @property
    def store(self) -> Store:
        """A store as the functions make it, on this world's clock."""
        return Store(
            client=self.dynamodb,
            table="idempotency",
            clock=self.clock,
            rng=random.Random(7),
            ttl_s=int(ENVIRONMENT["RECORD_TTL_S"]),
            request_s=3.0,
        )

    @property
    def engine(self) -> Engine:
        """An engine as the functions make it, on this world's clock."""
        return Engine(store=self.store, clock=self.clock, skew_s=2.0)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A fresh world: empty tables and queues, no faults planned; planned faults must have come up by the end."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
    clock = FakeClock()
    before = runtime.install(runtime.Runtime(clock, random.Random(7), make_client=_client))
    sandbox.open_period.cache_clear()
    with mock_aws():
        wire = Wire()
        for service in SERVICES:
            wire.put_on(client(service))
        queues = _create_queues_and_bucket()
        monkeypatch.setenv("QUEUE_URL", queues["orders"])
        monkeypatch.setenv("DLQ_URL", queues["dlq"])
        _create_tables(client("dynamodb"))
        wire.sent.clear()
        yield World(clock, wire, queues)
        for service in SERVICES:
            wire.take_off(client(service))
        assert not wire.unspent, f"planned faults that never came up: {wire.unspent}"
    runtime.install(before)
    sandbox.open_period.cache_clear()


def new_consumer() -> None:
    """Make the process's consumer anew when it is next used: the environment has changed."""
    runtime.current()._singles.pop(current_consumer, None)


def _create_queues_and_bucket() -> dict[str, str]:
    """In moto itself: most tests need none of them, and by requests they would take longer than the test."""
    account, region = "123456789012", ENVIRONMENT["AWS_DEFAULT_REGION"]
    s3_backends[account]["aws"].create_bucket(ENVIRONMENT["RECEIPTS_BUCKET"], region)
    for name in QUEUES:
        sqs_backends[account][region].create_queue(name)
    return {name: f"https://sqs.{region}.amazonaws.com/{account}/{name}" for name in QUEUES}


def _create_tables(dynamodb: Any) -> None:
    dynamodb.create_table(
        TableName="idempotency",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.create_table(**ORDERS_TABLE)
