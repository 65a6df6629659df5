"""Once: a step with no outside effect, whole, in one transaction."""

import pytest

from shared.idempotency import NotDone
from shared.idempotency.records import StoredResult
from tests.harness.interceptor import answer_lost
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    FINGERPRINT,
    KEY,
    TTL_S,
    completed,
    once,
    put_record,
    put_row,
    record,
    row,
    write,
)


def test_record_writes_and_events_come_together(world: World) -> None:
    assert once(world, "me", [write("a"), write("b")], data="{}", outbox="[1]") is False

    assert record(world) == {
        "id": KEY,
        "status": "COMPLETED",
        "owner": "me",
        "validation": FINGERPRINT,
        "expiration": world.clock.now_ms() // 1000 + TTL_S,
        "attempt": 1,
        "uncertain": False,
        "unsettled": False,
        "correlation_id": "c-1",
        "data": "{}",
        "outbox": "[1]",
    }
    assert (row(world, "a"), row(world, "b")) == ("mine", "mine")


def test_once_is_one_request(world: World) -> None:
    once(world, "me", [write()])

    assert [operation for operation, _ in world.wire.sent] == ["TransactWriteItems"]


@pytest.mark.parametrize("writes", [[], [write()]], ids=["alone", "with writes"])
def test_once_with_its_answer_lost_is_recognised_as_ones_own(world: World, writes: list[object]) -> None:
    world.wire.plan("TransactWriteItems", answer_lost)

    assert once(world, "me", writes) is False  # type: ignore[arg-type]

    assert world.wire.count("TransactWriteItems") == 2
    assert record(world)["owner"] == "me"


def test_a_duplicate_writes_nothing(world: World) -> None:
    put_record(world, **completed())

    assert once(world, "me", [write()]) == StoredResult("theirs")

    assert row(world) is None


def test_a_row_that_already_holds_the_facts_completes_the_record_and_emits_again(world: World) -> None:
    put_row(world)

    assert once(world, "me", [write()], outbox="[1]") is True

    assert record(world)["status"] == "COMPLETED"
    assert record(world)["outbox"] == "[1]"


def test_other_facts_are_the_steps_own_error_and_nothing_is_written(world: World) -> None:
    put_row(world, facts="theirs")

    with pytest.raises(NotDone, match="theirs"):
        once(world, "me", [write("fresh"), write()])

    assert record(world) == {}
    assert row(world) == "theirs"
    assert row(world, "fresh") is None


def test_an_expired_record_is_replaced_whole(world: World) -> None:
    put_record(world, **completed(expiration=1, in_progress_expiration=5, attempt=7))

    assert once(world) is False

    assert record(world)["attempt"] == 1
    assert not {"outbox", "in_progress_expiration"} & record(world).keys()
