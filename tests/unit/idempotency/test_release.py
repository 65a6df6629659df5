"""Release: only what is known not to have been done is given back."""

from typing import Any

import pytest

from shared.idempotency import Busy, KeyReused, Superseded
from tests.harness.interceptor import answer_lost, meanwhile
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import KEY, acquire, claim, commit, completed, put_record, record, release


def test_a_release_ends_the_lease_now_and_keeps_the_count(world: World) -> None:
    claimed = acquire(world)
    before = record(world)
    world.clock.advance(1)

    release(world, claimed)

    assert record(world) == before | {"in_progress_expiration": world.clock.now_ms(), "unsettled": False}


def test_a_released_key_is_still_that_of_its_request(world: World) -> None:
    release(world, acquire(world))

    with pytest.raises(KeyReused):
        claim(world, "second", fingerprint="v1:other")


def test_a_forgotten_key_is_free_for_another_request_at_once(world: World) -> None:
    release(world, acquire(world), forget=True)

    claim(world, "second", fingerprint="v1:other")

    assert record(world)["validation"] == "v1:other"
    assert record(world)["uncertain"] is False


def test_a_worker_whose_clock_is_behind_waits_for_a_key_that_was_just_forgotten(world: World) -> None:
    release(world, acquire(world), forget=True)
    released_at_ms = world.clock.now_ms()
    world.clock.advance(-5)

    with pytest.raises(Busy) as busy:
        claim(world, "second", fingerprint="v1:other")
    assert busy.value.until_ms == released_at_ms

    world.clock.advance(5)
    claim(world, "second", fingerprint="v1:other")
    assert record(world)["owner"] == "second"


def test_a_release_whose_answer_was_lost_is_just_done_again(world: World) -> None:
    claimed = acquire(world)
    world.wire.plan("UpdateItem", answer_lost)

    release(world, claimed)

    assert record(world)["in_progress_expiration"] == world.clock.now_ms() - int(world.clock.slept[0] * 1000)
    assert record(world)["unsettled"] is False


@pytest.mark.parametrize("forget", [False, True])
def test_a_release_whose_answer_was_lost_is_done_although_another_owner_has_claimed_since(
    world: World, forget: bool
) -> None:
    claimed = acquire(world)
    world.wire.plan("UpdateItem", answer_lost, meanwhile(lambda: put_record(world)))

    release(world, claimed, forget=forget)

    assert world.wire.count("UpdateItem") == 3
    assert record(world)["owner"] == "other"


def test_a_worker_that_stalled_past_its_deadline_may_have_lost_the_key_before_its_release(world: World) -> None:
    claimed = acquire(world)

    def stall() -> None:
        world.clock.advance(31)
        put_record(world)

    world.wire.plan("UpdateItem", answer_lost, meanwhile(stall))

    with pytest.raises(Superseded):
        release(world, claimed)


@pytest.mark.parametrize("theirs", [{}, completed()], ids=["in progress", "completed"])
@pytest.mark.parametrize("forget", [False, True])
def test_who_was_superseded_releases_nothing(world: World, theirs: dict[str, Any], forget: bool) -> None:
    claimed = acquire(world)
    before = put_record(world, **theirs)

    with pytest.raises(Superseded):
        release(world, claimed, forget=forget)

    assert world.record(KEY) == before


def test_what_was_committed_is_not_released(world: World) -> None:
    claimed = acquire(world)
    commit(world, claimed)
    before = world.record(KEY)

    with pytest.raises(Superseded):
        release(world, claimed)

    assert world.record(KEY) == before


def test_nothing_is_released_into_a_record_that_is_gone(world: World) -> None:
    claimed = acquire(world)
    world.empty("idempotency", "id")

    with pytest.raises(Superseded):
        release(world, claimed, forget=True)

    assert record(world) == {}
