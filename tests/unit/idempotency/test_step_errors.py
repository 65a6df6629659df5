"""How a try ends without an outcome, and what the next one is told."""

from typing import Any

import pytest

from shared.idempotency import (
    Busy,
    EffectWithoutState,
    KeyReused,
    NotDone,
    Outcome,
    Permanent,
    StepError,
    Superseded,
    Unknown,
)
from shared.idempotency.engine import StepResult
from tests.harness.interceptor import Killed, refused
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    record,
)
from tests.unit.idempotency.script import DONE, SEND, Script, lapse, run

denied = refused("AccessDeniedException")


def test_what_is_known_not_to_be_done_is_released_and_its_next_try_is_certain(world: World) -> None:
    script = Script(NotDone("throttled"), DONE)
    with pytest.raises(NotDone):
        run(world, script)
    assert record(world, SEND)["in_progress_expiration"] == world.clock.now_ms()

    assert run(world, script) == StepResult("done", replayed=False, attempt=2, uncertain=False)


def test_a_key_under_which_nothing_was_ever_done_is_not_held_by_the_false_request_that_came_first(
    world: World,
) -> None:
    with pytest.raises(NotDone):
        run(world, Script(NotDone("no such order yet")), weight=2)

    assert run(world, Script(DONE)) == StepResult("done", replayed=False, attempt=2, uncertain=False)
    with pytest.raises(KeyReused):
        run(world, Script(DONE), weight=2)


def test_a_key_under_which_something_may_have_been_done_stays_that_requests_through_a_release(world: World) -> None:
    with pytest.raises(Unknown):
        run(world, Script(Unknown("timeout")))
    lapse(world)
    with pytest.raises(NotDone):
        run(world, Script(NotDone("throttled")))

    with pytest.raises(KeyReused):
        run(world, Script(DONE), weight=2)
    assert run(world, Script(DONE)).uncertain


def test_a_request_that_the_row_contradicts_leaves_its_key_also_after_a_try_that_died(world: World) -> None:
    """Row facts do not change, so that no try of it can have done anything; else the true request had to wait a TTL."""
    with pytest.raises(Killed):
        run(world, Script(Killed()), weight=2)
    lapse(world)
    with pytest.raises(KeyReused):
        run(world, Script(KeyReused("another total")), weight=2)

    assert run(world, Script(DONE)) == StepResult("done", replayed=False, attempt=3, uncertain=True)


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

    assert run(world, script) == StepResult("done", replayed=False, attempt=3, uncertain=True)


@pytest.mark.parametrize("error", [Permanent("bad_card"), KeyReused("other amount")])
def test_a_request_refused_before_anything_was_done_leaves_its_key_to_another(world: World, error: Permanent) -> None:
    with pytest.raises(type(error)):
        run(world, Script(error), weight=1)

    assert run(world, Script(DONE), weight=2) == StepResult("done", replayed=False, attempt=2, uncertain=False)


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
def test_a_verdict_stands_where_its_release_fails(world: World, error: StepError) -> None:
    with pytest.raises(type(error)) as told:
        run(world, Script(error, before=lambda: world.wire.plan("UpdateItem", denied)))

    assert told.value is error
    assert "not released" in "".join(told.value.__notes__)


@pytest.mark.parametrize("error", [NotDone("no"), Permanent("bad")])
def test_the_verdict_of_a_superseded_worker_counts_for_nothing(world: World, error: StepError) -> None:
    with pytest.raises(Superseded):
        run(world, Script(error, before=lambda: world.empty("idempotency", "id")))


def test_a_release_that_failed_makes_the_next_try_uncertain(world: World) -> None:
    with pytest.raises(NotDone):
        run(world, Script(NotDone("no"), before=lambda: world.wire.plan("UpdateItem", denied)))
    lapse(world)

    assert run(world, Script(DONE)).uncertain


@pytest.mark.parametrize("outcome", [None, Outcome("done", publish=["no event"])], ids=["none", "odd events"])  # type: ignore[list-item]
def test_a_step_that_answers_nonsense_after_its_effect_is_unknown(world: World, outcome: Any) -> None:
    with pytest.raises(Unknown):
        run(world, Script(outcome))

    assert record(world, SEND)["unsettled"] is True
