"""A line without a network, and clients of this test's own on it."""

import os
from collections.abc import Iterator

import pytest
from shared.idempotency import client, runtime

from lab.benchmarks.environment import ENVIRONMENT
from lab.benchmarks.fake_network import FakeNetwork
from lab.peers import step


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNetwork]:
    """As a benchmark sets it up; nothing of it outlives the test."""
    for name in set(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    before = runtime.install(runtime.Runtime())
    caches = (step.dynamodb, step.sqs)
    for cache in caches:
        cache.cache_clear()
    found = FakeNetwork()
    for each in (client("dynamodb"), client("sqs"), step.dynamodb(), step.sqs()):
        found.put_on(each)
    yield found
    runtime.install(before)
    for cache in caches:
        cache.cache_clear()
