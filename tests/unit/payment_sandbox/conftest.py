"""Fixtures: the sandbox on moto behind a real socket, called by Stripe's own SDK."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stripe
from moto import mock_aws

from functions.payment_sandbox import host, store
from functions.payment_sandbox.handler import handler
from tests.harness.http_lambda import serve
from tests.harness.payment_fixtures import sandbox_client
from tests.harness.tables import LEDGER_TABLE

TABLE = LEDGER_TABLE["TableName"]


def untyped(value: object) -> Any:
    """Return a value without the SDK's type, in which nearly every field is optional."""
    return value


class Clock:
    """A clock that advances one millisecond with each reading, so that ids differ. Tests advance it further."""

    def __init__(self) -> None:
        self.now_s = 1_767_225_600.0
        self.waits: list[float] = []

    def now(self) -> float:
        self.now_s += 0.001
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(host, "now", clock.now)
    monkeypatch.setattr(host, "wait", clock.wait)
    return clock


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "CLIENT_CONNECT_TIMEOUT_S": "0.1",
        "CLIENT_READ_TIMEOUT_S": "0.5",
        "LEDGER_TABLE": TABLE,
        "SLOW_S": "1.5",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("API_KEY_SECRET_ARN", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    store.open_period.cache_clear()  # another table of the same name
    with mock_aws():
        monkeypatch.setattr(host, "client", sandbox_client)
        sandbox_client("dynamodb").create_table(**LEDGER_TABLE)
        yield


@pytest.fixture
def url(aws: None, clock: Clock) -> Iterator[str]:  # noqa: ARG001 - the tables and the clock must exist first
    with serve(handler) as url:
        yield url


Connect = Callable[[str], stripe.StripeClient]


@pytest.fixture
def connect(url: str) -> Connect:
    """Make a client with an API key."""

    def connect(api_key: str) -> stripe.StripeClient:
        return stripe.StripeClient(
            api_key,
            base_addresses={"api": url},
            http_client=stripe.RequestsClient(timeout=(2, 20)),
            max_network_retries=0,
        )

    return connect


@pytest.fixture
def api(connect: Connect) -> stripe.StripeClient:
    return connect("sk_test_1")


class Sandbox:
    """The requests that most tests need."""

    def __init__(self, api: stripe.StripeClient) -> None:
        self.api = api
        self.intents = api.v1.payment_intents

    def create_intent(self, method: str = "pm_card_visa", order_id: str = "ord_1") -> stripe.PaymentIntent:
        return self.intents.create(
            params={
                "amount": 2500,
                "currency": "eur",
                "payment_method": method,
                "allowed_payment_method_types": ["card"],
                "metadata": {"order_id": order_id},
            }
        )

    def confirm(self, intent: stripe.PaymentIntent, key: str | None = None) -> stripe.PaymentIntent:
        return self.intents.confirm(intent.id, options={"idempotency_key": key} if key else {})

    def status(self, intent: stripe.PaymentIntent) -> str:
        return self.intents.retrieve(intent.id).status

    def ledger(self) -> list[tuple[str, str]]:
        """Return the order id and the status of each charge, the newest first."""
        charges = self.api.v1.charges.list(params={"limit": 100}).data
        return [(charge.metadata["order_id"], charge.status) for charge in charges]


@pytest.fixture
def sandbox(api: stripe.StripeClient) -> Sandbox:
    return Sandbox(api)
