"""Searches all schedules of a scenario with a number of faults. Each schedule starts anew.

`every_schedule` is the plain search: depth first, each schedule to its end. `every_state` is the search in use: it
takes each pair of state and move once. If a schedule reaches a known state, it continues with a move that was not taken
from that state yet. If all moves were taken, the schedule is abandoned: everything that can follow was explored.
A state is everything that decides what happens next, and everything that an invariant reads (Run.state).
test_explorer.py shows that both searches find the same.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.invariants import ALWAYS, FINALLY, Invariant, broken
from tests.schedules.run import ALL_KINDS, Run, Stuck
from tests.schedules.scenarios import SCENARIOS, Scenario

STUCK = "stuck"  # endless deliveries


class Diverged(AssertionError):
    """A schedule cannot be repeated: something is not under the explorer's control."""


Choose: TypeAlias = Callable[[Run, list[str], list[str]], str | None]  # run, moves so far, possible moves → move


@dataclass
class Played:
    """One schedule: to its end, or until there was no new move."""

    moves: list[str]
    ended: bool
    broken: list[str]
    run: Run


@dataclass
class Report:
    """What was explored. `seconds` is processor time."""

    scenario: str
    faults: int
    walk: bool = False  # random schedules, not all
    schedules: int = 0
    ended: int = 0  # schedules that ran to their end; the others reached a known state without new moves
    moves: int = 0
    seconds: float = 0.0
    met: Counter[str] = field(default_factory=Counter)  # faults that happened, by code
    second_mails: int = 0  # schedules with a second email, in its documented window
    violations: list[tuple[str, str]] = field(default_factory=list)  # schedule, broken invariant
    ends: set[bytes] = field(default_factory=set)  # final states, as digests

    @property
    def row(self) -> dict[str, object]:
        """One row of the table."""
        return {
            "scenario": self.scenario,
            "faults": f"{self.faults} at random" if self.walk else self.faults,
            "schedules": self.schedules,
            "ended": self.ended,
            "moves": self.moves,
            "second_mails": self.second_mails,
            "violations": len(self.violations),
            "seconds": round(self.seconds, 1),
        }

    def enter(self, scenario: Scenario, played: Played) -> None:
        """Add one schedule to the report."""
        self.schedules += 1
        self.moves += len(played.moves)
        self.met.update(fault[-1] for fault in played.run.faults)
        if played.ended:
            self.ended += 1
            self.ends.add(played.run.state())
            self.second_mails += len(played.run.model.rest.mails) > 1
            self.violations += [(spell(scenario, played.moves), what) for what in played.broken]


def play(
    environment: ExplorerEnvironment,
    scenario: Scenario,
    begin: Sequence[str],
    faults: int,
    choose: Choose,
    trace: list[str] | None = None,
) -> Played:
    """Follow the moves of `begin`, then the moves of `choose`. If `choose` returns None, the schedule is abandoned."""
    moves: list[str] = []
    run = Run(environment, faults)
    always, at_last = _rules(scenario)
    try:
        run = scenario.start(environment, faults, trace)
        while True:
            if not run.active:
                wrong = broken(scenario, run, always)
                if not wrong and not run.settle():
                    wrong = broken(scenario, run, at_last)  # also if the late requests are never applied
                    if not run.late:
                        return Played(moves, True, wrong, run)
                if wrong:
                    return Played(moves, True, wrong, run)
            possible = run.moves()
            chosen = begin[len(moves)] if len(moves) < len(begin) else choose(run, moves, possible)
            if chosen is None:
                return Played(moves, False, [], run)
            if chosen not in possible:
                raise Diverged(f"{spell(scenario, moves)}: {chosen} is not possible, only {possible}")
            moves.append(chosen)
            run.move(chosen)
    except Stuck as stuck:
        if scenario.outcome_rules:
            return Played(moves, True, [*broken(scenario, run, scenario.outcome_rules), f"{STUCK}: {stuck}"], run)
        return Played(moves, True, [f"every_order_ends: {stuck}"], run)
    finally:
        run.close()


def _rules(scenario: Scenario) -> tuple[tuple[Invariant, ...], tuple[Invariant, ...]]:
    return ((), scenario.outcome_rules) if scenario.outcome_rules else (ALWAYS, FINALLY)


def plainest(_: Run, __: list[str], possible: list[str]) -> str:
    """Choose the running thread, and no fault."""
    return possible[0]


def every_schedule(environment: ExplorerEnvironment, scenario: Scenario, faults: int) -> Iterator[Played]:
    """Search depth first, each schedule to its end."""
    waiting: list[list[str]] = [[]]

    def choose(_: Run, moves: list[str], possible: list[str]) -> str:
        waiting.extend([*moves, other] for other in reversed(possible[1:]))
        return possible[0]

    while waiting:
        yield play(environment, scenario, waiting.pop(), faults, choose)


def every_state(environment: ExplorerEnvironment, scenario: Scenario, faults: int) -> Iterator[Played]:
    """Search by states: take each move of each state once.

    A schedule is abandoned after a late request that changed nothing: what can follow equals what follows without it.
    """
    left: dict[bytes, list[str]] = {}  # state → moves not taken yet, the simplest last
    waiting: deque[tuple[bytes, list[str]]] = deque()  # states with such moves, and the moves that first led there

    def choose(run: Run, moves: list[str], possible: list[str]) -> str | None:
        if run.unchanged:
            return None
        state = run.state()
        if state not in left:
            left[state] = possible[::-1]
            if len(possible) > 1:
                waiting.append((state, list(moves)))
        return left[state].pop() if left[state] else None

    yield play(environment, scenario, [], faults, choose)
    while waiting:
        state, moves = waiting[0]  # the shortest way first: it continues through states that still have moves
        if left[state]:
            yield play(environment, scenario, [*moves, left[state].pop()], faults, choose)
        else:
            waiting.popleft()


def explore(
    environment: ExplorerEnvironment,
    scenario: Scenario,
    faults: int,
    *,
    stop_at: int = 10,
    limit: int | None = None,
    progress: Callable[[Report], None] = lambda _: None,
) -> Report:
    """Explore all that can happen in a scenario with up to `faults` faults.

    `stop_at`: the number of violations after which the search stops. `limit`: the largest number of schedules.
    `progress` gets the report after every 10,000 schedules.
    """
    kinds = "" if scenario.kinds == ALL_KINDS else " " + "".join(sorted(fault.value for fault in scenario.kinds))
    report = Report(scenario.name + kinds, faults)
    begun = time.process_time()
    for played in every_state(environment, scenario, faults):
        report.enter(scenario, played)
        report.seconds = time.process_time() - begun
        if report.schedules % 10_000 == 0:
            progress(report)
        if len(report.violations) >= stop_at or report.schedules == limit:
            break
    return report


def spell(scenario: Scenario, moves: Sequence[str]) -> str:
    """Return a schedule as text for `replay`."""
    return f"{scenario.name}:{''.join(moves)}"


def parse(schedule: str, scenarios: Mapping[str, Scenario] = SCENARIOS) -> tuple[Scenario, list[str]]:
    """Parse a schedule. Raises KeyError if its scenario is not among `scenarios`."""
    name, _, text = schedule.partition(":")
    moves: list[str] = []
    for character in text:
        if character.isalpha():
            moves.append(character)
        else:
            moves[-1] += character
    return scenarios[name], moves


def replay(
    environment: ExplorerEnvironment, schedule: str, scenarios: Mapping[str, Scenario] = SCENARIOS
) -> tuple[list[str], list[str]]:
    """Repeat a schedule. Returns its trace, call by call, and the invariants that it breaks."""
    scenario, moves = parse(schedule, scenarios)
    trace: list[str] = []
    faults = sum(not move.isalnum() for move in moves)
    played = play(environment, scenario, moves, faults, plainest, trace)
    return trace, played.broken
