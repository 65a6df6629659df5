"""The effect has happened, and its commit meets trouble."""

from typing import Any

import pytest

from shared.idempotency import (
    Busy,
    EffectWithoutState,
    KeyReused,
    NotDone,
    NotWritten,
    Outcome,
    Permanent,
    RequestInDoubt,
)
from shared.idempotency.engine import StepResult
from tests.harness.interceptor import Killed, answer_lost, killed_after, refused
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    put_row,
    record,
    write,
)
from tests.unit.idempotency.script import DONE, SEND, Script, lapse, run, run_once

denied = refused("AccessDeniedException")


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

    assert run(world, Script(Outcome("done", writes=[write()]))) == StepResult(
        "done", replayed=False, attempt=2, uncertain=True
    )


def test_a_commit_of_unknown_outcome_that_was_applied_is_found_done(world: World) -> None:
    world.wire.always("TransactWriteItems", answer_lost)
    with pytest.raises(RequestInDoubt):
        run(world, Script(Outcome("done", writes=[write()])))
    world.wire.always("TransactWriteItems", None)

    assert run(world, Script()) == StepResult("done", replayed=True)


def test_who_dies_after_his_commit_was_applied_left_it_done(world: World) -> None:
    world.wire.plan("TransactWriteItems", killed_after)
    with pytest.raises(Killed):
        run(world, Script(Outcome("done", writes=[write()])))

    assert run(world, Script()) == StepResult("done", replayed=True)


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
