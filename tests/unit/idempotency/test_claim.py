"""Claim, and what it finds."""

from shared.idempotency.records import Claim
from tests.unit.conftest import World
from tests.unit.world import answer_lost


def claim(world: World, owner: str, fingerprint: str = "v1:a") -> object:
    now = world.clock.now_ms()
    return world.store.claim(
        "op#1", fingerprint, owner=owner, lease_until_ms=now + 30_000, correlation_id="c", deadline_ms=now + 20_000
    )


def test_a_claim_whose_answer_was_lost_is_recognised_as_ones_own(world: World) -> None:
    world.wire.plan("UpdateItem", answer_lost)

    assert claim(world, "me") == Claim("op#1", "me", attempt=1, uncertain=False)

    assert world.wire.count("UpdateItem") == 2


def test_a_lapsed_lease_is_taken_over_and_told_uncertain(world: World) -> None:
    claim(world, "first")
    world.clock.advance(31)

    assert claim(world, "second") == Claim("op#1", "second", attempt=2, uncertain=True)
