"""Depth-first search over all schedules of a scenario with so many faults. Stateless: each schedule starts anew.

Reduction: a schedule is given up where it reaches a state that another one has reached before, since all that can
follow was followed from there. A state is everything that decides what happens next and everything that an
invariant looks at (Run.state); test_explorer.py shows that nothing is hidden by it.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.schedules.bench import Bench
from tests.schedules.invariants import ALWAYS, FINALLY, broken
from tests.schedules.run import Run, Stuck
from tests.schedules.scenarios import SCENARIOS, Scenario


@dataclass
class Report:
    """What was explored. `seconds` of processor time."""

    scenario: str
    faults: int
    schedules: int = 0  # run to their end
    cut: int = 0  # given up in a state that was known
    moves: int = 0
    seconds: float = 0.0
    met: Counter[str] = field(default_factory=Counter)  # faults, by code
    second_mails: int = 0  # schedules within the stated window
    violations: list[tuple[str, str]] = field(default_factory=list)  # schedule, what is broken
    ends: set[bytes] = field(default_factory=set)  # final states, as digests

    @property
    def row(self) -> dict[str, object]:
        """For tables and files."""
        return {
            "scenario": self.scenario,
            "faults": self.faults,
            "schedules": self.schedules + self.cut,
            "ended": self.schedules,
            "moves": self.moves,
            "second_mails": self.second_mails,
            "violations": len(self.violations),
            "seconds": round(self.seconds, 1),
        }


class Diverged(AssertionError):
    """A schedule can not be repeated: something is not under the explorer's control."""


@dataclass
class Played:
    """One schedule, as far as it went."""

    moves: list[str]
    branches: list[list[str]]  # what else could have been done, as schedules to begin with
    cut: bool
    broken: list[str]
    run: Run


def play(
    bench: Bench,
    scenario: Scenario,
    begin: Sequence[str],
    faults: int,
    seen: set[bytes] | None = None,
    trace: list[str] | None = None,
) -> Played:
    """Follow a schedule, then go on in the plainest way. `seen`: states known before; None for no reduction."""
    run = scenario.start(bench, faults, trace)
    moves: list[str] = []
    branches: list[list[str]] = []
    try:
        while True:
            if not run.active:
                wrong = broken(scenario, run, ALWAYS)
                if wrong or not run.settle():
                    return Played(moves, branches, False, wrong or broken(scenario, run, FINALLY), run)
            possible = run.moves()
            at = len(moves)
            if at < len(begin):
                if begin[at] not in possible:
                    raise Diverged(f"{scenario.name}: {begin[at]} is not possible after {''.join(moves)}: {possible}")
                chosen = begin[at]
            else:
                if seen is not None:
                    state = run.state()
                    if state in seen:
                        return Played(moves, branches, True, [], run)
                    seen.add(state)
                branches += [[*moves, other] for other in possible[1:]]
                chosen = possible[0]
            moves.append(chosen)
            run.move(chosen)
    except Stuck as stuck:
        return Played(moves, branches, False, [f"every_order_ends: {stuck}"], run)
    finally:
        run.close()


def explore(
    bench: Bench, scenario: Scenario, faults: int, *, reduce: bool = True, stop_at: int = 10, limit: int | None = None
) -> Report:
    """All schedules of a scenario with up to `faults` faults; stops after so many violations, or schedules."""
    report = Report(scenario.name, faults)
    begun = time.process_time()
    seen: set[bytes] | None = set() if reduce else None
    waiting: list[list[str]] = [[]]
    while waiting and len(report.violations) < stop_at:
        if limit is not None and report.schedules + report.cut >= limit:
            break
        played = play(bench, scenario, waiting.pop(), faults, seen)
        count(report, scenario, played)
        waiting += reversed(played.branches)
    report.seconds = time.process_time() - begun
    return report


def count(report: Report, scenario: Scenario, played: Played) -> None:
    """Enter one schedule into a report."""
    report.moves += len(played.moves)
    report.met.update(fault[-1] for fault in played.run.faults)
    if played.cut:
        report.cut += 1
        return
    report.schedules += 1
    report.ends.add(played.run.state())
    report.second_mails += len(played.run.model.rest.mails) > 1
    report.violations += [(spell(scenario, played.moves), what) for what in played.broken]


def spell(scenario: Scenario, moves: Sequence[str]) -> str:
    """A schedule as text that `replay` takes."""
    return f"{scenario.name}:{''.join(moves)}"


def parse(schedule: str) -> tuple[Scenario, list[str]]:
    """A schedule from its text. Raises KeyError for a scenario that is not known."""
    name, _, text = schedule.partition(":")
    moves: list[str] = []
    for character in text:
        if character.isalpha():
            moves.append(character)
        else:
            moves[-1] += character
    return SCENARIOS[name], moves


def replay(bench: Bench, schedule: str) -> tuple[list[str], list[str]]:
    """Repeat a schedule: its trace, call by call, and what it breaks."""
    scenario, moves = parse(schedule)
    trace: list[str] = []
    played = play(bench, scenario, moves, faults=sum(len(move) > 1 for move in moves), trace=trace)
    return trace, played.broken
