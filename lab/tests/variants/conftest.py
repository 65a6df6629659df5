"""A variant's three functions between moto and the payment sandbox, each loaded anew, as a new worker loads it."""

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from socketserver import StreamRequestHandler
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import botocore.endpoint
import pytest
import stripe
from tests.harness.http_lambda import serve
from tests.harness.moto_world import World
from tests.harness.observations import Mailbox, mailbox
from tests.harness.payment_fixtures import provider_connection
from tests.harness.provider_connection import OBSERVER, ProviderConnection

from lab.tests.variants.steps import Shop
from lab.variants import NAIVE, POWERTOOLS, Variant

__all__ = ["mailbox", "provider_connection"]

STEPS = ("order", "payment", "email")

# Making one takes longer than most tests; moto forgets its state in between, the clients have none.
_client, _resource = functools.cache(boto3.client), functools.cache(boto3.resource)


@pytest.fixture
def shop_of(
    world: World,
    provider_connection: ProviderConnection,
    mailbox: Mailbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Variant], Shop]]:
    """A variant's shop; faults planned on the line to the provider must have come up by the end."""
    sleeping = SimpleNamespace(sleep=world.clock.sleep, time=lambda: world.clock.now_ms() / 1000)
    monkeypatch.setattr(botocore.endpoint, "time", sleeping)  # both SDKs wait before they try again
    monkeypatch.setattr(stripe._http_client, "time", sleeping)
    monkeypatch.setattr(boto3, "client", _client)
    monkeypatch.setattr(boto3, "resource", _resource)
    clients: list[Any] = []
    monkeypatch.setattr(StreamRequestHandler, "disable_nagle_algorithm", True)  # its packets would wait 40 ms
    with serve(provider_connection.handler) as url:
        monkeypatch.setenv("PROVIDER_URL", url)
        monkeypatch.setenv("STRIPE_API_KEY", "sk_test_variant")
        observer = stripe.StripeClient("sk_test_variant", stripe_account=OBSERVER, base_addresses={"api": url})

        def make(variant: Variant) -> Shop:
            modules = _loaded(variant, monkeypatch)
            clients.extend(_clients_of(modules.values()))
            for client in clients:
                world.wire.put_on(client)
            return Shop(world, provider_connection, mailbox, observer, modules)

        yield make
        for client in clients:
            world.wire.take_off(client)
        assert not provider_connection.unspent, f"planned faults that never came up: {provider_connection.unspent}"


@pytest.fixture
def naive(shop_of: Callable[[Variant], Shop]) -> Shop:
    return shop_of(NAIVE)


@pytest.fixture
def powertools(shop_of: Callable[[Variant], Shop]) -> Shop:
    return shop_of(POWERTOOLS)


@pytest.fixture(params=[NAIVE, POWERTOOLS], ids=lambda variant: variant.name)
def either(request: pytest.FixtureRequest, shop_of: Callable[[Variant], Shop]) -> Shop:
    return shop_of(request.param)


def _loaded(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    for name in [name for name in sys.modules if name.startswith(f"{variant.package}.")]:
        monkeypatch.delitem(sys.modules, name)
    return {step: importlib.import_module(f"{variant.package}.{step}") for step in STEPS}


def _clients_of(modules: Iterable[ModuleType]) -> list[Any]:
    """The boto3 clients that modules made, those inside of resources and of the utility's store included."""
    found = {}
    for value in (value for module in modules for value in vars(module).values()):
        client = getattr(value, "client", None) or getattr(getattr(value, "meta", None), "client", None) or value
        if hasattr(getattr(client, "meta", None), "service_model"):
            found[id(client)] = client
    return list(found.values())
