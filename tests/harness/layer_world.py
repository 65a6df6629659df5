"""What the tests of the idempotency layer run in: moto behind the real clients, and a clock that tests set.

It knows no orders, so that it can be copied out with the layer and its tests.
"""

import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from moto import mock_aws
from moto.sqs.models import sqs_backends

from shared.idempotency import Engine, client, current_engine, runtime
from shared.idempotency.sqs import current_consumer
from shared.idempotency.store import Store
from tests.harness.interceptor import Context, FakeClock, Wire

ACCOUNT, REGION = "123456789012", "eu-west-1"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": REGION,
    "STAGE": "test",
    "POWERTOOLS_SERVICE_NAME": "test",
    "POWERTOOLS_METRICS_NAMESPACE": "EffectivelyOnce",
    "CLIENT_CONNECT_TIMEOUT_S": "1",
    "CLIENT_READ_TIMEOUT_S": "2",
    "IDEMPOTENCY_TABLE": "idempotency",
    "RECORD_TTL_S": str(30 * 86400),
    "LEASE_SKEW_S": "2",
    "STEP_NEEDS_S": "10",
    "RESERVE_S": "9.25",
    "BACKOFF_BASE_S": "2",
    "BACKOFF_CAP_S": "900",
    "CONCURRENCY": "4",
}
SERVICES: tuple[runtime.Service, ...] = ("dynamodb", "sqs", "s3", "sesv2", "secretsmanager")
# The table of the tests' own business writes.
ROWS_TABLE = "rows"

# Making a client takes longer than most tests. moto forgets its state between tests, and the clients have none.
_client = functools.cache(runtime.make_client)


@dataclass
class World:
    """The clock, the interceptor and the queues of one test. `queues`: URLs by name."""

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
        """Return Lambda's context for a worker with this many seconds."""
        return Context(self.clock, seconds)

    def record(self, key: str) -> dict[str, Any] | None:
        """Return an idempotency record in DynamoDB's JSON."""
        return self.item("idempotency", {"id": {"S": key}})

    def item(self, table: str, key: dict[str, Any]) -> dict[str, Any] | None:
        """Return an item in DynamoDB's JSON."""
        found: dict[str, Any] | None = self.dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        return found

    def empty(self, table: str, key: str) -> None:
        """Delete all items of a table, as TTL or a person would."""
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
        return Engine(store=self.store, clock=self.clock, skew_s=2.0, step_needs_s=10.0, reserve_s=9.25)


@contextmanager
def clean_world(
    monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], queues: Sequence[str]
) -> Iterator[World]:
    """A world with the idempotency table and these queues, all empty. At the end all planned faults must be spent."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
    clock = FakeClock()
    before = runtime.install(runtime.Runtime(clock, random.Random(7), make_client=_client))
    with mock_aws():
        wire = Wire()
        for service in SERVICES:
            wire.put_on(client(service))
        for name in queues:  # in moto itself: as requests they would take longer than most tests
            sqs_backends[ACCOUNT][REGION].create_queue(name)
        create_table(client("dynamodb"), "idempotency", "id")
        wire.sent.clear()
        yield World(clock, wire, {name: f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}" for name in queues})
        for service in SERVICES:
            wire.take_off(client(service))
        assert not wire.unspent, f"planned faults that never came up: {wire.unspent}"
    runtime.install(before)


def create_table(dynamodb: Any, name: str, key: str) -> None:
    """Create a table with a string as its key."""
    dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def new_consumer() -> None:
    """Make the process's consumer and engine anew when they are next used: the environment has changed."""
    for single in (current_consumer, current_engine):
        runtime.current()._singles.pop(single, None)


@pytest.fixture
def layer_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world of the layer's tests: a source queue, its DLQ, the idempotency table, and a table of rows."""
    with clean_world(monkeypatch, ENVIRONMENT, ("source", "dlq")) as world:
        monkeypatch.setenv("QUEUE_URL", world.queues["source"])
        monkeypatch.setenv("DLQ_URL", world.queues["dlq"])
        create_table(world.dynamodb, ROWS_TABLE, "row_id")
        world.wire.sent.clear()
        yield world
