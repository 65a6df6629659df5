"""The payment function between moto and the payment sandbox."""

import functools
import itertools
from collections.abc import Iterator
from io import StringIO
from logging import StreamHandler
from socketserver import StreamRequestHandler
from typing import Any

import boto3
import pytest
import stripe

from functions.payment_sandbox import host, store
from shared.idempotency import client, logger
from tests.harness.http_lambda import ConnectionCut, WorkerDied, serve
from tests.harness.interceptor import Wire
from tests.harness.moto_world import World
from tests.harness.payment import Payments
from tests.harness.provider_connection import OBSERVER, ProviderConnection
from tests.harness.tables import LEDGER_TABLE

API_KEY = "sk_test_first"


@pytest.fixture
def provider_connection(world: World, monkeypatch: pytest.MonkeyPatch) -> ProviderConnection:
    """The payment sandbox with a ledger and clients of its own, on this world's clock, ready to be served."""
    ticks = itertools.count()
    store.open_period.cache_clear()  # it names a table of an earlier test
    monkeypatch.setattr(host, "now", lambda: world.clock.now_ms() / 1000 + next(ticks) / 10_000)
    monkeypatch.setattr(host, "wait", _gone)
    monkeypatch.setattr(host, "die", _dead)
    monkeypatch.setattr(host, "client", sandbox_client)
    dynamodb = sandbox_client("dynamodb")
    monkeypatch.setenv("LEDGER_TABLE", "ledger")
    monkeypatch.setenv("SLOW_S", "1.5")
    dynamodb.create_table(**LEDGER_TABLE)
    return ProviderConnection()


@pytest.fixture
def payments(
    world: World, provider_connection: ProviderConnection, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Payments]:
    """The payment function as deployed; faults planned on the line must have come up by the end."""
    secrets = client("secretsmanager")
    ours, theirs = (secrets.create_secret(Name=name, SecretString=API_KEY)["ARN"] for name in ("ours", "theirs"))
    # Answers leave at once: headers and body are two packets, and the second would wait 40 ms for an acknowledgement.
    monkeypatch.setattr(StreamRequestHandler, "disable_nagle_algorithm", True)
    host.secret.cache_clear()
    with serve(provider_connection.handler) as url:
        for name, value in {
            "QUEUE_URL": world.queues["payments"],
            "PROVIDER_URL": url,
            "PROVIDER_SECRET_ARN": ours,
            "PROVIDER_LIVEMODE": "false",
            "API_KEY_SECRET_ARN": theirs,
            "PROVIDER_CONNECT_TIMEOUT_S": "5",
            "PROVIDER_READ_TIMEOUT_S": "15",
            "STEP_NEEDS_S": "75",  # five requests of 3 s to AWS, three of 20 s to the provider
        }.items():
            monkeypatch.setenv(name, value)
        world.wire.sent.clear()
        yield Payments(world, provider_connection, _observer(url))
        assert not provider_connection.unspent, f"planned faults that never came up: {provider_connection.unspent}"
    host.secret.cache_clear()


@functools.cache
def sandbox_client(service: str) -> Any:
    """Return the sandbox's own client, kept for all tests. The interceptor's lock makes moto's writes atomic."""
    client = boto3.client(service)  # type: ignore[call-overload]
    Wire().put_on(client)
    return client


def _observer(url: str) -> stripe.StripeClient:
    return stripe.StripeClient(API_KEY, stripe_account=OBSERVER, base_addresses={"api": url}, max_network_retries=0)


def _gone(_: float) -> None:
    """The client does not wait so long."""
    raise ConnectionCut


def _dead() -> None:
    raise WorkerDied


@pytest.fixture
def log() -> Iterator[StringIO]:
    """What is logged."""
    written = StringIO()
    handler = logger.registered_handler
    assert isinstance(handler, StreamHandler)
    before = handler.setStream(written)
    yield written
    handler.setStream(before)
