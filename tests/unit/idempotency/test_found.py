"""What claim and once find under a key, and what follows. Both judge alike."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.idempotency import Busy, Damaged, KeyReused
from shared.idempotency.records import Claim, StoredResult
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import claim, completed, once, put_record, record

Ask = Callable[..., object]

both = pytest.mark.parametrize("ask", [claim, once])

# What may stand in the way, all of the same fingerprint with a running lease unless it says otherwise.
HELD: dict[str, dict[str, Any]] = {
    "in progress": {},
    "in progress, lease over": {"in_progress_expiration": 1},
    "completed": completed(),
    "completed without a result": completed(data=None),
    "of an unknown status": {"status": "EXPIRED", "in_progress_expiration": 1},
    "without status": {"status": None},
    "without lease": {"in_progress_expiration": None},
}
DAMAGED = {
    **{
        name: held for name, held in HELD.items() if name not in ("in progress", "in progress, lease over", "completed")
    },
    "with a result that is no JSON": completed(data="{"),
    "with a result of another type": completed(data=7),
    "completed without fingerprint": completed(validation=None),
    "lapsed without fingerprint": {"validation": None, "in_progress_expiration": 1},
    "empty": dict.fromkeys(["status", "owner", "validation", "expiration", "in_progress_expiration", "attempt"]),
}


def named(cases: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("held", cases.values(), ids=cases.keys())


def acquired(answer: object) -> bool:
    return isinstance(answer, Claim) or answer is False


@both
def test_an_absent_record_is_free(world: World, ask: Ask) -> None:
    assert acquired(ask(world))
    assert record(world)["owner"] == "me"


@both
@named({name: held for name, held in (HELD | DAMAGED).items() if name not in ("empty", "without status")})
def test_a_record_past_its_expiration_counts_as_absent_whatever_it_holds(
    world: World, ask: Ask, held: dict[str, Any]
) -> None:
    expired: dict[str, Any] = {"validation": "v1:other", "in_progress_expiration": 1}
    put_record(world, **expired | held | {"expiration": world.clock.now_ms() // 1000})

    assert acquired(ask(world))

    now = record(world)
    assert now["owner"] == "me"
    assert now["validation"] == "v1:a"
    assert "outbox" not in now
    assert now.get("data") in (None, '"mine"')
    assert now["expiration"] > world.clock.now_ms() // 1000


@both
def test_a_record_in_its_last_second_still_stands(world: World, ask: Ask) -> None:
    put_record(world, **completed(expiration=world.clock.now_ms() // 1000 + 1))

    assert ask(world) == StoredResult("theirs")


@both
@named(HELD)
def test_another_fingerprint_is_a_reused_key_whatever_the_status(world: World, ask: Ask, held: dict[str, Any]) -> None:
    before = put_record(world, **held | {"validation": "v1:other"})

    with pytest.raises(KeyReused):
        ask(world)

    assert world.record("op#1") == before


@both
@pytest.mark.parametrize("stored", ["{}", "[]", "0", '""', "null", "false", "0.5", '{"a":[1,null]}', '"é\\u0000"'])
def test_a_completed_record_answers_with_its_result_exactly_as_stored(world: World, ask: Ask, stored: str) -> None:
    before = put_record(world, **completed(data=stored))

    answer = ask(world)

    assert isinstance(answer, StoredResult)
    expected = {"{}": {}, "[]": [], "0": 0, '""': "", "null": None, "false": False, "0.5": 0.5}
    if stored in expected:
        assert answer.result == expected[stored]
        assert type(answer.result) is type(expected[stored])
    else:
        assert answer.result in ({"a": [1, None]}, "é\0")
    assert world.record("op#1") == before


@both
def test_a_running_lease_is_busy_until_it_ends(world: World, ask: Ask) -> None:
    before = put_record(world)

    with pytest.raises(Busy) as busy:
        ask(world)

    assert busy.value.until_ms == world.clock.now_ms() + 30_000
    assert world.record("op#1") == before


@both
def test_a_lease_is_over_at_its_very_millisecond_and_not_before(world: World, ask: Ask) -> None:
    put_record(world)
    world.clock.ms += 29_999
    with pytest.raises(Busy):
        ask(world)
    world.clock.ms += 1

    assert acquired(ask(world))


@both
@named(DAMAGED)
def test_a_damaged_record_is_never_run_again(world: World, ask: Ask, held: dict[str, Any]) -> None:
    before = put_record(world, **held)

    with pytest.raises(Damaged):
        ask(world)

    assert world.record("op#1") == before
