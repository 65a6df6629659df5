"""Claim: what it leaves in the record, and what the next one is told."""

import pytest

from shared.idempotency import Busy
from shared.idempotency.records import Claim
from tests.harness.interceptor import answer_lost, meanwhile
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    FINGERPRINT,
    KEY,
    TTL_S,
    acquire,
    claim,
    commit,
    completed,
    put_record,
    record,
    release,
)


def test_a_claim_leaves_a_record_in_the_documented_attributes_and_units(world: World) -> None:
    now = world.clock.now_ms()

    assert claim(world, lease_s=30) == Claim(KEY, "me", attempt=1, uncertain=False)

    assert record(world) == {
        "id": KEY,
        "status": "INPROGRESS",
        "owner": "me",
        "validation": FINGERPRINT,
        "expiration": now // 1000 + TTL_S,  # epoch seconds
        "in_progress_expiration": now + 30_000,  # epoch milliseconds
        "attempt": 1,
        "uncertain": False,
        "unsettled": True,
        "correlation_id": "c-1",
    }


def test_a_claim_is_one_request_and_needs_no_read(world: World) -> None:
    put_record(world, in_progress_expiration=1)
    world.wire.sent.clear()

    claim(world)

    assert [operation for operation, _ in world.wire.sent] == ["UpdateItem"]


def test_a_claim_whose_answer_was_lost_is_recognised_as_ones_own(world: World) -> None:
    world.wire.plan("UpdateItem", answer_lost)

    assert claim(world, "me") == Claim(KEY, "me", attempt=1, uncertain=False)

    assert world.wire.count("UpdateItem") == 2


def test_a_takeover_whose_answer_was_lost_is_told_of_its_count_and_its_doubt(world: World) -> None:
    put_record(world, in_progress_expiration=1, attempt=4)
    world.wire.plan("UpdateItem", answer_lost)

    assert claim(world, "me") == Claim(KEY, "me", attempt=5, uncertain=True)


def test_a_claim_that_lost_the_race_while_it_was_sent_again_is_busy(world: World) -> None:
    world.wire.plan("UpdateItem", meanwhile(lambda: put_record(world, owner="quicker")))

    with pytest.raises(Busy):
        claim(world, "me")

    assert record(world)["owner"] == "quicker"


def test_a_lapsed_lease_is_taken_over_and_told_uncertain(world: World) -> None:
    claim(world, "first")
    world.clock.advance(31)

    assert claim(world, "second") == Claim(KEY, "second", attempt=2, uncertain=True)

    assert record(world)["owner"] == "second"


def test_after_a_release_the_next_claim_is_certain_and_counts_on(world: World) -> None:
    release(world, acquire(world, "first"))

    assert claim(world, "second") == Claim(KEY, "second", attempt=2, uncertain=False)


def test_uncertainty_sticks_through_any_number_of_releases(world: World) -> None:
    claim(world, "died")
    world.clock.advance(31)
    for attempt in (2, 3, 4):
        assert claim(world, f"try {attempt}") == Claim(KEY, f"try {attempt}", attempt, uncertain=True)
        release(world, Claim(KEY, f"try {attempt}", attempt, uncertain=True))


def test_an_expired_try_that_never_ended_leaves_its_doubt(world: World) -> None:
    put_record(world, expiration=1, in_progress_expiration=1)

    assert acquire(world).uncertain


def test_an_expired_completed_record_leaves_no_doubt_and_no_old_event(world: World) -> None:
    put_record(world, **completed(expiration=1, in_progress_expiration=1))

    assert not acquire(world).uncertain
    assert not {"data", "outbox"} & record(world).keys()


def test_a_takeover_does_not_carry_an_old_outbox_into_its_own_commit(world: World) -> None:
    put_record(world, outbox='["old"]', data='"old"', in_progress_expiration=1)

    commit(world, acquire(world))

    assert "outbox" not in record(world)
    assert record(world)["data"] == '"mine"'
