"""Compares the search with the plain way: real clients, each schedule from its start, each handler run anew."""

import time

from tests.schedules import handler_runs, provider
from tests.schedules.environment import ExplorerEnvironment, explorer_environment
from tests.schedules.explorer import Played, Report, every_state, play, spell
from tests.schedules.scenarios import SCENARIOS, Scenario


def compare(name: str, faults: int) -> Report:
    """Play each schedule of a search again in the plain way. Reports each difference in its end or its violations."""
    scenario, report = SCENARIOS[name], Report(f"{name}, compared", faults)
    with explorer_environment() as environment:
        found = [_seen(played) for played in every_state(environment, scenario, faults)]
    begun = time.process_time()
    with explorer_environment(light=False) as environment:
        for moves, *searched in found:
            played = _plain(environment, scenario, moves, faults)
            report.enter(scenario, played)
            _, *plain = _seen(played)
            if plain != searched:
                report.violations.append((spell(scenario, moves), f"the search found {searched}, not {plain}"))
    report.seconds = time.process_time() - begun
    return report


def _plain(environment: ExplorerEnvironment, scenario: Scenario, moves: list[str], faults: int) -> Played:
    environment.runs.close()
    environment.runs = handler_runs.HandlerRuns(environment)
    environment.provider_answers = provider.Answers()
    return play(environment, scenario, moves, faults, lambda *_: None)


def _seen(played: Played) -> tuple[list[str], bool, list[str], list[str], bytes]:
    """Return a schedule, whether it ended, what it broke, its possible moves and its final state."""
    return list(played.moves), played.ended, played.broken, played.run.moves(), played.run.state()
