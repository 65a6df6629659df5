"""Late requests: each is applied at every later point in turn, or never."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import Played, every_schedule, parse, plainest, play, replay
from tests.schedules.faults import MAKE_LATE
from tests.schedules.run import ALL_KINDS, Run
from tests.schedules.scenarios import SCENARIOS, Scenario


def schedules(environment: ExplorerEnvironment, begin: list[str]) -> list[Played]:
    """Return all schedules of one email that begin so."""
    late = replace(SCENARIOS["email-declined-once"], kinds=MAKE_LATE)
    found = every_schedule(environment, late, 1)
    return [played for played in found if played.moves[: len(begin)] == begin]


@pytest.mark.parametrize("fault", ["A@", "A^", "A="])
def test_a_late_request_is_applied_at_every_later_point(environment: ExplorerEnvironment, fault: str) -> None:
    found = schedules(environment, ["e", fault])

    points = {played.moves.index("l") for played in found}
    assert points == set(range(2, max(points) + 1))
    assert max(points) > 5
    assert any(played.run.aged for played in found)


def test_a_dead_workers_claim_is_applied_after_another_worker_has_finished(environment: ExplorerEnvironment) -> None:
    (played,) = (
        played for played in schedules(environment, ["e", "A^"]) if played.moves[-1] == "l" and not played.run.aged
    )

    assert [name for name, _ in played.run.facts.claims.items()] == ["B"]
    assert not played.broken


def test_the_end_is_checked_also_if_a_late_request_is_never_applied(environment: ExplorerEnvironment) -> None:
    waiting: list[int] = []

    def rule(_: Scenario, run: Run) -> Iterator[str]:
        waiting.append(len(run.late))
        yield from ()

    scenario = replace(SCENARIOS["email-declined-once"], outcome_rules=(rule,))
    played = play(environment, scenario, ["e", "A@"], 1, plainest)

    assert played.moves[-1] == "l"
    assert waiting[0] == 1
    assert waiting[-1] == 0


LATE_CALLS = {
    "UpdateItem": "email-once:eA@l",
    "PutObject": "email-once:eAAA@l",
    "SendEmail": "email-once:eAAAA@l",
    "TransactWriteItems": "email-once:eAAAAA@l",
    "POST": "payment-once:pAAA@l",
    "SendMessage": "payment-other-create:pAAAAA@l",
    "ChangeMessageVisibilityBatch": "payment-drop:pAAAAAA@l",
    "SendMessageBatch": "relay:rA@l",
}


@pytest.mark.parametrize("operation", LATE_CALLS)
def test_each_kind_of_request_may_be_late(environment: ExplorerEnvironment, operation: str) -> None:
    trace, broken = replay(environment, LATE_CALLS[operation])

    (applied,) = (line.split() for line in trace if line.startswith("Al "))
    assert applied[2] == operation
    assert "200" in applied
    assert not broken


def test_after_its_record_was_deleted_a_late_claim_is_applied_and_nobody_is_charged_twice(
    environment: ExplorerEnvironment,
) -> None:
    """The bound that remains: docs/correctness.md, "late claim"."""
    scenario = replace(SCENARIOS["payment-deleted"], kinds=ALL_KINDS)
    _, moves = parse("payment-deleted:pA@AAAAAAtpBBllBBBBB")

    played = play(environment, scenario, moves, 1, plainest)

    assert {what.partition(":")[0] for what in played.broken} == {"a_zombie_wrote_nothing"}


def test_a_day_old_failure_under_the_first_attempts_key_costs_one_attempt(environment: ExplorerEnvironment) -> None:
    trace, broken = replay(environment, "payment-deleted:pAAAAAAlp")

    confirmed = [line.partition(" → ")[2] for line in trace if "/confirm " in line]
    assert confirmed == ["500", "500", "200 succeeded"]
    assert not broken
