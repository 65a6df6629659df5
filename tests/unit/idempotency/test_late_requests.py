"""A request may be applied long after its sender gave it up. A late copy of a claim must not take the key again."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from botocore.exceptions import ClientError

from shared.idempotency.records import Claim
from shared.idempotency.store import Store
from tests.harness.layer_world import World

KEY = "op#1"


class Recorder:
    """A DynamoDB client that keeps the claims that it sends."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.claims: list[dict[str, Any]] = []

    def update_item(self, **request: Any) -> Any:
        if ":lease" in request["ExpressionAttributeValues"]:
            self.claims.append(request)
        return self._client.update_item(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def claimed(store: Store, owner: str, fingerprint: str = "v1:a") -> Claim:
    claim = store.claim(
        KEY,
        fingerprint,
        owner=owner,
        lease_until_ms=store.clock.now_ms() + 30_000,
        correlation_id="c-1",
        deadline_ms=store.clock.now_ms() + 20_000,
    )
    assert isinstance(claim, Claim)
    return claim


def release(world: World, store: Store, claim: Claim, *, forget: bool) -> None:
    world.clock.advance(1)
    store.release(claim, forget=forget, deadline_ms=world.clock.now_ms() + 20_000)


def forgotten(world: World, store: Store, first: Claim) -> None:
    release(world, store, first, forget=True)


def forgotten_at_once(world: World, store: Store, first: Claim) -> None:
    """In the millisecond of the claim, or by a clock that was set back."""
    store.release(first, forget=True, deadline_ms=world.clock.now_ms() + 20_000)


def released_in_doubt(world: World, store: Store, first: Claim) -> None:
    release(world, store, first, forget=False)


def claimed_and_forgotten_by_another(world: World, store: Store, first: Claim) -> None:
    release(world, store, first, forget=True)
    world.clock.advance(1)
    release(world, store, claimed(store, "another"), forget=True)


def completed(world: World, store: Store, first: Claim) -> None:
    store.commit(first, "1", None, [], world.clock.now_ms() + 20_000)


@pytest.mark.parametrize(
    "meanwhile",
    [forgotten, forgotten_at_once, released_in_doubt, claimed_and_forgotten_by_another, completed],
    ids=lambda f: f.__name__,
)
def test_a_late_copy_of_a_claim_is_not_applied(world: World, meanwhile: Callable[[World, Store, Claim], None]) -> None:
    client = Recorder(world.dynamodb)
    store = msgspec.structs.replace(world.store, client=client)
    first = claimed(store, "first")
    meanwhile(world, store, first)
    before = world.record(KEY)

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        world.dynamodb.update_item(**client.claims[0])

    assert world.record(KEY) == before
