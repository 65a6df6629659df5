"""Search over all schedules of a scenario with so many faults. Stateless: each schedule starts anew.

`every_schedule` is the plain search: depth first, each schedule to its end. `every_state` is the one that is used: it
goes by (state, move) pairs, each taken once. Where a schedule comes to a state that is known, it goes on with a move
that was not taken from there yet, and is given up if there is none, since all that can follow was followed. A state is
everything that decides what happens next and everything that an invariant looks at (Run.state). test_explorer.py
shows that the one finds what the other finds.
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

STUCK = "stuck"  # deliveries without end


class Diverged(AssertionError):
    """A schedule can not be repeated: something is not under the explorer's control."""


Choose: TypeAlias = Callable[[Run, list[str], list[str]], str | None]  # run, moves so far, possible moves → move


@dataclass
class Played:
    """One schedule, as far as it went: to its end, or until there was nothing new to choose."""

    moves: list[str]
    ended: bool
    broken: list[str]
    run: Run


@dataclass
class Report:
    """What was explored. `seconds` of processor time."""

    scenario: str
    faults: int
    walk: bool = False  # drawn, not all
    schedules: int = 0
    ended: int = 0  # of them run to their end; the others came to where all was known
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
            "faults": f"{self.faults} at random" if self.walk else self.faults,
            "schedules": self.schedules,
            "ended": self.ended,
            "moves": self.moves,
            "second_mails": self.second_mails,
            "violations": len(self.violations),
            "seconds": round(self.seconds, 1),
        }

    def enter(self, scenario: Scenario, played: Played) -> None:
        """Count one schedule in."""
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
    """Follow a schedule, then go on as `choose` says; None gives the schedule up."""
    moves: list[str] = []
    run = Run(environment, faults)
    always, at_last = _rules(scenario)
    try:
        run = scenario.start(environment, faults, trace)
        while True:
            if not run.active:
                wrong = broken(scenario, run, always)
                if wrong or not run.settle():
                    return Played(moves, True, wrong or broken(scenario, run, at_last), run)
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
    """Whoever runs goes on, and nothing goes wrong."""
    return possible[0]


def every_schedule(environment: ExplorerEnvironment, scenario: Scenario, faults: int) -> Iterator[Played]:
    """The plain search."""
    waiting: list[list[str]] = [[]]

    def choose(_: Run, moves: list[str], possible: list[str]) -> str:
        waiting.extend([*moves, other] for other in reversed(possible[1:]))
        return possible[0]

    while waiting:
        yield play(environment, scenario, waiting.pop(), faults, choose)


def every_state(environment: ExplorerEnvironment, scenario: Scenario, faults: int) -> Iterator[Played]:
    """The search by states."""
    left: dict[bytes, list[str]] = {}  # state → moves not taken yet, the plainest last
    waiting: deque[tuple[bytes, list[str]]] = deque()  # states with such moves, and how each was reached first

    def choose(run: Run, moves: list[str], possible: list[str]) -> str | None:
        state = run.state()
        if state not in left:
            left[state] = possible[::-1]
            if len(possible) > 1:
                waiting.append((state, list(moves)))
        return left[state].pop() if left[state] else None

    yield play(environment, scenario, [], faults, choose)
    while waiting:
        state, moves = waiting[0]  # the shortest way in first: it flows on through states that still have moves left
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
    """A schedule as text that `replay` takes."""
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
