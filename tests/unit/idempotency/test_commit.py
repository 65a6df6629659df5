"""Commit, in both its forms: the record alone, and in one transaction with the step's writes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from shared.idempotency import EffectWithoutState, Superseded, Write
from tests.harness.interceptor import answer_lost, meanwhile, refused
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    FINGERPRINT,
    KEY,
    TTL_S,
    acquire,
    commit,
    completed,
    put_record,
    put_row,
    record,
    row,
    write,
)

both = pytest.mark.parametrize("writes", [[], [write()]], ids=["alone", "with writes"])
OTHERS: dict[str, dict[str, Any]] = {"in progress": {}, "in progress, lease over": {"in_progress_expiration": 1}}


@both
def test_a_commit_completes_the_record_with_writes_and_events(world: World, writes: Sequence[Write]) -> None:
    now = world.clock.now_ms()
    claimed = acquire(world)
    world.clock.advance(3)

    assert commit(world, claimed, writes, data="{}", outbox="[1]") is False

    assert record(world) == {
        "id": KEY,
        "status": "COMPLETED",
        "owner": "me",
        "validation": FINGERPRINT,
        "expiration": now // 1000 + 3 + TTL_S,
        "in_progress_expiration": now + 30_000,
        "attempt": 1,
        "uncertain": False,
        "unsettled": False,
        "correlation_id": "c-1",
        "data": "{}",
        "outbox": "[1]",
    }
    assert row(world) == ("mine" if writes else None)


@both
def test_a_commit_is_one_request(world: World, writes: Sequence[Write]) -> None:
    claimed = acquire(world)
    world.wire.sent.clear()

    commit(world, claimed, writes)

    assert [operation for operation, _ in world.wire.sent] == ["TransactWriteItems" if writes else "UpdateItem"]


@both
def test_a_commit_whose_answer_was_lost_is_recognised_as_ones_own(world: World, writes: Sequence[Write]) -> None:
    claimed = acquire(world)
    world.wire.plan("TransactWriteItems" if writes else "UpdateItem", answer_lost)

    assert commit(world, claimed, writes) is False

    assert record(world)["status"] == "COMPLETED"


@both
@pytest.mark.parametrize("theirs", [*OTHERS.values(), completed()], ids=[*OTHERS.keys(), "completed"])
def test_who_was_superseded_writes_nothing(world: World, writes: Sequence[Write], theirs: dict[str, Any]) -> None:
    claimed = acquire(world)
    before = put_record(world, **theirs)

    with pytest.raises(Superseded):
        commit(world, claimed, writes, outbox="[1]")

    assert world.record(KEY) == before
    assert row(world) is None


@both
def test_a_commit_on_a_record_that_is_gone_writes_nothing(world: World, writes: Sequence[Write]) -> None:
    claimed = acquire(world)
    world.empty("idempotency", "id")

    with pytest.raises(Superseded):
        commit(world, claimed, writes)

    assert record(world) == {}
    assert row(world) is None


@both
def test_who_is_late_with_nobody_in_his_place_may_still_commit(world: World, writes: Sequence[Write]) -> None:
    claimed = acquire(world)
    world.clock.advance(3600)

    assert commit(world, claimed, writes) is False

    assert record(world)["status"] == "COMPLETED"


def test_a_row_that_already_holds_the_facts_completes_the_record_and_emits_again(world: World) -> None:
    claimed = acquire(world)
    put_row(world)

    assert commit(world, claimed, [write()], outbox="[1]") is True

    assert record(world)["status"] == "COMPLETED"
    assert record(world)["outbox"] == "[1]"


def test_of_two_writes_only_the_one_that_is_missing_is_done(world: World) -> None:
    claimed = acquire(world)
    put_row(world, "second")

    assert commit(world, claimed, [write("first"), write("second")]) is True

    assert (row(world, "first"), row(world, "second")) == ("mine", "mine")
    assert record(world)["status"] == "COMPLETED"


def test_other_facts_after_an_effect_are_told_and_nothing_is_released_or_hidden(world: World) -> None:
    claimed = acquire(world)
    before = world.record(KEY)
    put_row(world, facts="theirs")

    with pytest.raises(EffectWithoutState) as told:
        commit(world, claimed, [write("fresh"), write()])

    assert told.value.reason == "effect_without_state"
    assert world.record(KEY) == before
    assert row(world) == "theirs"
    assert row(world, "fresh") is None


def _superseded(world: World) -> Callable[[], object]:
    return lambda: put_record(world, owner="other")


def test_who_is_superseded_between_two_transactions_completes_nothing(world: World) -> None:
    claimed = acquire(world)
    put_row(world)
    conflict = refused("TransactionConflictException")
    world.wire.plan("TransactWriteItems", meanwhile(lambda: None), meanwhile(_superseded(world), conflict))

    with pytest.raises(Superseded):
        commit(world, claimed, [write()])

    assert record(world)["status"] == "INPROGRESS"
    assert record(world)["owner"] == "other"


def test_the_answer_of_the_second_transaction_may_be_lost_too(world: World) -> None:
    claimed = acquire(world)
    put_row(world)
    world.wire.plan("TransactWriteItems", meanwhile(lambda: None), answer_lost)

    commit(world, claimed, [write()])

    assert record(world)["status"] == "COMPLETED"
    assert world.wire.count("TransactWriteItems") == 3
