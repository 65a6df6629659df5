"""Compares the search with the plain way: real clients, each schedule from its start, each handler run anew."""

import time
from dataclasses import dataclass, field

from tests.schedules import handler_runs, provider
from tests.schedules.environment import ExplorerEnvironment, explorer_environment
from tests.schedules.explorer import Played, every_state, play, spell
from tests.schedules.run import Run
from tests.schedules.scenarios import SCENARIOS, Scenario


@dataclass
class Comparison:
    """`differences`: what differs, by schedule. `seconds` are processor time, of the search and of the plain way."""

    scenario: str
    faults: int
    schedules: int = 0
    search_seconds: float = 0.0
    plain_seconds: float = 0.0
    differences: list[str] = field(default_factory=list)


def compare(name: str, faults: int) -> Comparison:
    """Play each schedule of a search again in the plain way. Its moves, its end and its violations must be the same."""
    scenario, it = SCENARIOS[name], Comparison(name, faults)
    begun = time.process_time()
    with explorer_environment() as environment:
        found = [_seen(played) for played in every_state(environment, scenario, faults)]
    it.search_seconds = time.process_time() - begun
    begun = time.process_time()
    with explorer_environment(light=False) as environment:
        for moves, *searched in found:
            it.schedules += 1
            plain = _seen(_plain(environment, scenario, moves, faults))
            if plain != (moves, *searched):
                it.differences.append(f"{spell(scenario, moves)}: {searched}, not {plain[1:]}")
    it.plain_seconds = time.process_time() - begun
    return it


def _plain(environment: ExplorerEnvironment, scenario: Scenario, moves: list[str], faults: int) -> Played:
    environment.runs.close()
    environment.runs = handler_runs.HandlerRuns(environment)
    environment.provider_answers = provider.Answers()

    def stop(*_: object) -> None:
        return None

    return play(environment, scenario, moves, faults, stop)


def _seen(played: Played) -> tuple[list[str], bool, list[str], list[str], bytes]:
    run: Run = played.run
    return list(played.moves), played.ended, played.broken, run.moves(), run.state()
