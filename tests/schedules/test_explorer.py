"""The explorer: schedules repeat, and the reduced search finds what the plain search finds."""

import pytest

from tests.schedules.environment import ExplorerEnvironment, explorer_environment
from tests.schedules.explorer import Report, every_schedule, every_state, explore, parse, plainest, play, replay, spell
from tests.schedules.expressions import Unmodelled
from tests.schedules.scenarios import SCENARIOS, Scenario


def everything(environment: ExplorerEnvironment, scenario: Scenario, faults: int) -> Report:
    """The plain search."""
    report = Report(scenario.name, faults)
    for played in every_schedule(environment, scenario, faults):
        report.enter(scenario, played)
    return report


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        *(("order", 1), ("api", 1), ("relay", 1), ("email-declined-once", 1)),
        *(("order-batch", 0), ("email", 0), ("payment", 0), ("payment-declined", 0)),
    ],
)
def test_the_search_by_states_ends_in_the_same_states_as_the_plain_one(
    environment: ExplorerEnvironment, name: str, faults: int
) -> None:
    plain, reduced = everything(environment, SCENARIOS[name], faults), explore(environment, SCENARIOS[name], faults)

    assert reduced.ends == plain.ends
    assert set(reduced.met) == set(plain.met)
    assert reduced.schedules <= plain.schedules


def test_a_schedule_repeats_call_by_call(environment: ExplorerEnvironment) -> None:
    scenario = SCENARIOS["payment"]
    for played in every_state(environment, scenario, 1):
        if played.ended and played.run.faults and len(played.moves) > 20:
            break
    schedule = spell(scenario, played.moves)

    first, second = replay(environment, schedule), replay(environment, schedule)

    assert first == second
    assert len(first[0]) >= len(played.moves)


def test_a_schedule_is_read_as_it_was_spelled() -> None:
    moves = ["o", "A", "A1?", "p", "t", "B~", "B2", "A/"]

    assert parse(spell(SCENARIOS["order"], moves)) == (SCENARIOS["order"], moves)


def test_a_request_that_the_model_does_not_know_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(*_: object) -> None:
        raise Unmodelled("a request")

    with explorer_environment() as anew:
        monkeypatch.setattr(anew, "handler", lambda _: handler)

        with pytest.raises(Unmodelled):
            play(anew, SCENARIOS["order"], [], 0, plainest)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_the_simplest_schedule_breaks_nothing_and_ends_in_the_same_state_each_time(
    environment: ExplorerEnvironment, scenario: Scenario
) -> None:
    """Two runs with different ends would depend on something that the environment does not control."""
    first, second = (play(environment, scenario, [], 0, plainest) for _ in range(2))

    assert first.ended
    assert not first.broken
    assert first.run.state() == second.run.state()
