"""The engine: one step for one event, and what is kept of it."""

from typing import Any

import pytest

from shared.idempotency import (
    Damaged,
    NotDone,
    Outcome,
    Superseded,
    Unknown,
    iso,
)
from shared.idempotency.engine import StepResult
from shared.idempotency.outbox import unpack
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    ParcelSent,
    put_row,
    record,
    row,
    wanted,
    write,
)
from tests.unit.idempotency.script import DONE, SEND, Script, lapse, run, run_once


def test_a_step_is_run_once_and_then_replayed(world: World) -> None:
    script = Script(Outcome({"parcel": 1}))

    assert run(world, script) == StepResult({"parcel": 1}, replayed=False)
    assert "outbox" not in record(world, SEND)  # it would wake the relay
    assert run(world, script) == StepResult({"parcel": 1}, replayed=True)


def test_the_lease_ends_when_the_worker_is_gone_by_any_clock(world: World) -> None:
    leases: list[int] = []

    def look() -> None:
        leases.append(record(world, SEND)["in_progress_expiration"])

    run(world, Script(DONE, before=look), seconds=20)

    assert leases == [world.clock.now_ms() + 20_000 + 2_000]  # skew_s=2.0


def test_the_attempt_tells_the_step_where_it_stands(world: World) -> None:
    script = Script(Unknown("?"), DONE)
    now = world.clock.now_ms()
    with pytest.raises(Unknown):
        run(world, script)
    lapse(world)

    assert run(world, script) == StepResult("done", replayed=False, attempt=2, uncertain=True)

    first, second = script.attempts
    assert (first.key, first.number, first.uncertain) == (SEND, 1, False)
    assert first.correlation_id == "c-1"
    assert first.deadline_ms == now + 20_000 - 9_250 - 3_000  # the reserve, and the commit's request
    assert (second.number, second.uncertain) == (2, True)


def test_the_time_of_an_attempt_goes_on_and_an_event_is_dated_after_the_effect(world: World) -> None:
    times: list[int] = []
    now = world.clock.now_ms()

    def effect() -> None:
        times.append(script.attempts[0].now_ms)
        world.clock.advance(1.5)
        times.append(script.attempts[0].now_ms)

    script = Script(Outcome("done", publish=[ParcelSent(parcel_id="p1")]), before=effect)
    run(world, script)

    assert times == [now, now + 1_500]
    [entry] = unpack(record(world, SEND)["outbox"])
    assert entry.event.time == iso(now + 1_500)


def test_an_effect_is_not_begun_with_less_time_than_it_needs(world: World) -> None:
    attempts = Script(DONE)
    run(world, attempts, seconds=20)
    attempt = attempts.attempts[0]

    attempt.require(7.75)
    world.clock.ms += 1
    with pytest.raises(NotDone):
        attempt.require(7.75)


def test_events_and_attempts_can_not_be_changed_by_a_step(world: World) -> None:
    with pytest.raises(AttributeError):
        wanted().weight = 2  # type: ignore[misc]
    script = Script(DONE)
    run(world, script)
    with pytest.raises(AttributeError):
        script.attempts[0].uncertain = True  # type: ignore[misc]


def test_an_outcome_is_committed_with_its_writes_and_its_events(world: World) -> None:
    sent = ParcelSent(parcel_id="p1", weight=3)

    run(world, Script(Outcome("done", writes=[write()], publish=[sent])))

    assert row(world) == "mine"
    (entry,) = unpack(record(world, SEND)["outbox"])
    assert (entry.event.id, entry.event.correlationid) == ("p1/parcel.sent", "c-1")


@pytest.mark.parametrize("go", [run, run_once])
def test_work_that_the_row_holds_already_counts_as_replayed(world: World, go: Any) -> None:
    put_row(world)

    assert go(world, Script(Outcome("done", writes=[write()]))).replayed


def test_a_damaged_record_is_not_run(world: World) -> None:
    run(world, Script(DONE))
    world.dynamodb.update_item(
        TableName="idempotency",
        Key={"id": {"S": SEND}},
        UpdateExpression="REMOVE #d",
        ExpressionAttributeNames={"#d": "data"},
    )

    with pytest.raises(Damaged):
        run(world, Script())


def test_every_try_has_an_owner_of_its_own_that_fits_a_token(world: World) -> None:
    owners = [world.engine.new_owner() for _ in range(1000)]
    for parcel_id in ("p1", "p2"):
        run(world, Script(DONE), parcel_id=parcel_id)
        owners.append(record(world, f"parcel.send#{parcel_id}")["owner"])

    assert len(set(owners)) == 1002
    assert max(map(len, owners)) <= 32


def test_a_superseded_worker_says_so(world: World) -> None:
    def stall() -> None:
        lapse(world)
        run(world, Script(Outcome("theirs")))

    with pytest.raises(Superseded):
        run(world, Script(Outcome("mine"), before=stall))

    assert run(world, Script()).result == "theirs"
