"""The engine: how a try ends, and what is kept of it."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import msgspec
import pytest

from shared.idempotency import (
    Attempt,
    Busy,
    Damaged,
    EffectWithoutState,
    KeyReused,
    NotDone,
    NotWritten,
    Outcome,
    OutcomeUnknown,
    Permanent,
    StepError,
    Superseded,
    Unknown,
)
from shared.idempotency.engine import Ran
from shared.idempotency.outbox import unpack
from tests.unit.conftest import World
from tests.unit.idempotency.kit import (
    ParcelSent,
    ParcelWanted,
    deadline,
    external,
    internal,
    message,
    put_row,
    record,
    row,
    write,
)
from tests.unit.world import Killed, answer_lost, killed_after, refused

SEND = "parcel.send#p1"
denied = refused("AccessDeniedException")


class Script:
    """A step's function that comes to these ends, one a call and the last for ever; it keeps what it was told."""

    def __init__(self, *ends: Outcome | BaseException, before: Callable[[], object] = lambda: None) -> None:
        self.ends = list(ends)
        self.before = before
        self.attempts: list[Attempt] = []

    def __call__(self, _: ParcelWanted, attempt: Attempt) -> Outcome:
        self.attempts.append(attempt)
        self.before()
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, BaseException):
            raise end
        return end


DONE = Outcome("done")


def run(world: World, script: Script, *, seconds: float = 20, **data: Any) -> Ran:
    return world.engine.run(external(script), message(**data), deadline(world, seconds))


def run_once(world: World, script: Script, **data: Any) -> Ran:
    return world.engine.run(internal(script), message(**data), deadline(world))


def lapse(world: World) -> None:
    world.clock.advance(60)


def test_a_step_is_run_once_and_then_replayed(world: World) -> None:
    script = Script(Outcome({"parcel": 1}))

    assert run(world, script) == Ran({"parcel": 1}, replayed=False)
    assert run(world, script) == Ran({"parcel": 1}, replayed=True)


@pytest.mark.parametrize("result", [{}, [], 0, "", None, False, "é", [[{}]]])
@pytest.mark.parametrize("go", [run, run_once])
def test_a_falsy_result_is_replayed_exactly(world: World, go: Any, result: Any) -> None:
    script = Script(Outcome(result))
    go(world, script)

    again = go(world, script)

    assert again.replayed
    assert again.result == result
    assert type(again.result) is type(result)


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

    assert run(world, script) == Ran("done", replayed=False, attempt=2, uncertain=True)

    first, second = script.attempts
    assert (first.key, first.number, first.uncertain, first.now_ms) == (SEND, 1, False, now)
    assert (first.correlation_id, first.deadline_ms) == ("c-1", now + 20_000)
    assert (second.number, second.uncertain) == (2, True)


def test_an_effect_is_not_begun_with_less_time_than_it_needs(world: World) -> None:
    attempts = Script(DONE)
    run(world, attempts, seconds=20)
    attempt = attempts.attempts[0]

    attempt.require(20)
    world.clock.ms += 1
    with pytest.raises(NotDone):
        attempt.require(20)


def test_events_and_attempts_can_not_be_changed_by_a_step(world: World) -> None:
    with pytest.raises(AttributeError):
        message().event.weight = 2  # type: ignore[attr-defined]
    script = Script(DONE)
    run(world, script)
    with pytest.raises(FrozenInstanceError):
        script.attempts[0].uncertain = True  # type: ignore[misc]


def test_what_is_known_not_to_be_done_is_released_and_its_next_try_is_certain(world: World) -> None:
    script = Script(NotDone("throttled"), DONE)
    with pytest.raises(NotDone):
        run(world, script)
    assert record(world, SEND)["in_progress_expiration"] == world.clock.now_ms()

    with pytest.raises(KeyReused):  # it is still that of its request
        run(world, Script(DONE), weight=2)
    assert run(world, script) == Ran("done", replayed=False, attempt=2, uncertain=False)


@pytest.mark.parametrize("error", [Unknown("timeout"), ValueError("surprise"), KeyError("x"), RecursionError()])
def test_what_may_have_been_done_is_kept_until_the_lease_ends_and_then_uncertain(
    world: World, error: Exception
) -> None:
    script = Script(error, DONE)
    with pytest.raises(Unknown):
        run(world, script)
    with pytest.raises(Busy):
        run(world, script)
    lapse(world)

    assert run(world, script).uncertain
    assert len(script.attempts) == 2


def test_an_unexpected_error_is_named_by_its_type_and_its_words_are_kept_out(world: World) -> None:
    with pytest.raises(Unknown) as error:
        run(world, Script(ValueError("buyer@example.com")))

    assert "ValueError" in str(error.value)
    assert "buyer" not in str(error.value)
    assert isinstance(error.value.__cause__, ValueError)


def test_uncertainty_survives_a_release(world: World) -> None:
    script = Script(Unknown("?"), NotDone("no"), DONE)
    with pytest.raises(Unknown):
        run(world, script)
    lapse(world)
    with pytest.raises(NotDone):
        run(world, script)

    assert run(world, script) == Ran("done", replayed=False, attempt=3, uncertain=True)


@pytest.mark.parametrize("error", [Permanent("bad_card"), KeyReused("other amount")])
def test_a_request_refused_before_anything_was_done_leaves_its_key_to_another(world: World, error: Permanent) -> None:
    with pytest.raises(type(error)):
        run(world, Script(error), weight=1)

    assert run(world, Script(DONE), weight=2) == Ran("done", replayed=False, attempt=2, uncertain=False)


def test_a_refused_request_keeps_its_key_where_an_earlier_try_may_have_had_its_effect(world: World) -> None:
    with pytest.raises(Unknown):
        run(world, Script(Unknown("?")), weight=1)
    lapse(world)
    with pytest.raises(Permanent, match="bad_card"):
        run(world, Script(Permanent("bad_card")), weight=1)

    with pytest.raises(KeyReused):
        run(world, Script(DONE), weight=2)
    assert run(world, Script(DONE), weight=1).uncertain


def test_an_effect_without_state_said_by_the_step_keeps_the_record(world: World) -> None:
    with pytest.raises(EffectWithoutState):
        run(world, Script(EffectWithoutState("paid twice?")))

    assert record(world, SEND)["unsettled"] is True
    with pytest.raises(Busy):
        run(world, Script())


@pytest.mark.parametrize("error", [NotDone("no"), Permanent("bad")])
@pytest.mark.parametrize("trouble", ["denied", "superseded"])
def test_a_verdict_stands_where_its_release_fails(world: World, error: StepError, trouble: str) -> None:
    def fail() -> None:
        if trouble == "denied":
            world.wire.plan("UpdateItem", denied)
        else:
            world.empty("idempotency", "id")

    with pytest.raises(type(error)) as told:
        run(world, Script(error, before=fail))

    assert told.value is error
    assert "not released" in "".join(told.value.__notes__)


def test_a_release_that_failed_makes_the_next_try_uncertain(world: World) -> None:
    with pytest.raises(NotDone):
        run(world, Script(NotDone("no"), before=lambda: world.wire.plan("UpdateItem", denied)))
    lapse(world)

    assert run(world, Script(DONE)).uncertain


class Odd:
    """Nothing that JSON knows."""


UNFIT = {
    "an object": Odd(),
    "a dict with odd keys": {(1, 2): 3},
    "a lone surrogate": "\ud800",
    "too long": "x" * 200_000,
    "too many bytes": "\N{GRINNING FACE}" * 120_000,
    "JSON of its own that is none": msgspec.Raw(b"{"),
    "a number that no reader takes": 10**5000,
}


@pytest.mark.parametrize("result", UNFIT.values(), ids=UNFIT.keys())
@pytest.mark.parametrize("go", [run, run_once])
def test_a_result_that_can_not_be_stored_leaves_a_reference_and_no_second_effect(
    world: World, go: Any, result: object
) -> None:
    script = Script(Outcome(result))
    assert go(world, script).replayed is False

    again = go(world, script)

    assert again.replayed
    assert again.result["key"] in (SEND, "parcel.note#p1")
    assert again.result["result_not_stored"]
    assert len(script.attempts) == 1 or go is run_once


def test_the_largest_result_that_is_stored_fits_an_item_whatever_its_script(world: World) -> None:
    run(world, Script(Outcome("\N{GRINNING FACE}" * 32_000)))

    item = world.record(SEND)
    assert item is not None
    assert sum(len(name) + len(str(*value.values()).encode()) for name, value in item.items()) < 400 * 1024 / 2
    assert run(world, Script()).result == "\N{GRINNING FACE}" * 32_000


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
    assert go(world, Script(Outcome("done", duplicate=True)), parcel_id="p2").replayed


def test_a_commit_that_the_row_refuses_is_an_effect_without_state_and_runs_nothing_again(world: World) -> None:
    put_row(world, facts="theirs")
    with pytest.raises(EffectWithoutState):
        run(world, Script(Outcome("done", writes=[write()])))

    assert record(world, SEND)["status"] == "INPROGRESS"
    with pytest.raises(Busy):
        run(world, Script())


def test_a_step_without_effect_meets_other_facts_with_its_own_error(world: World) -> None:
    put_row(world, facts="theirs")

    with pytest.raises(NotDone):
        run_once(world, Script(Outcome("done", writes=[write()])))


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
@pytest.mark.parametrize(("go", "operation"), [(run, "UpdateItem"), (run_once, "TransactWriteItems")])
def test_a_missing_permission_or_table_is_waited_for_and_then_finished(
    world: World, go: Any, operation: str, code: str
) -> None:
    world.wire.plan(operation, refused(code))
    with pytest.raises(NotWritten) as error:
        go(world, Script(DONE))
    assert not isinstance(error.value, Permanent)

    assert go(world, Script(DONE)).replayed is False


def test_a_commit_that_is_not_allowed_is_neither_released_nor_parked_and_finishes_later(world: World) -> None:
    world.wire.plan("TransactWriteItems", denied)
    with pytest.raises(NotWritten):
        run(world, Script(Outcome("done", writes=[write()])))
    with pytest.raises(Busy):
        run(world, Script())
    lapse(world)

    assert run(world, Script(Outcome("done", writes=[write()]))) == Ran(
        "done", replayed=False, attempt=2, uncertain=True
    )


def test_a_commit_of_unknown_outcome_that_was_applied_is_found_done(world: World) -> None:
    world.wire.always("TransactWriteItems", answer_lost)
    with pytest.raises(OutcomeUnknown):
        run(world, Script(Outcome("done", writes=[write()])))
    world.wire.always("TransactWriteItems", None)

    assert run(world, Script()) == Ran("done", replayed=True)


def test_who_dies_after_his_commit_was_applied_left_it_done(world: World) -> None:
    world.wire.plan("TransactWriteItems", killed_after)
    with pytest.raises(Killed):
        run(world, Script(Outcome("done", writes=[write()])))

    assert run(world, Script()) == Ran("done", replayed=True)


def test_who_dies_in_his_effect_leaves_a_lease_that_lapses_and_a_doubt(world: World) -> None:
    script = Script(Killed(), DONE)
    with pytest.raises(Killed):
        run(world, script)
    with pytest.raises(Busy):
        run(world, script)
    lapse(world)

    assert run(world, script).uncertain


def test_another_amount_under_the_same_key_is_refused_and_the_true_one_finishes(world: World) -> None:
    with pytest.raises(Killed):
        run(world, Script(Killed()), weight=1)
    lapse(world)
    with pytest.raises(KeyReused):
        run(world, Script(), weight=2)

    assert run(world, Script(DONE), weight=1).result == "done"


@pytest.mark.parametrize("outcome", [None, Outcome("done", publish=["no event"])], ids=["none", "odd events"])  # type: ignore[list-item]
def test_a_step_that_answers_nonsense_after_its_effect_is_unknown(world: World, outcome: Any) -> None:
    with pytest.raises(Unknown):
        run(world, Script(outcome))

    assert record(world, SEND)["unsettled"] is True


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
