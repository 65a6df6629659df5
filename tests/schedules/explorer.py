"""Searches all schedules of a scenario with a number of faults.

`every_schedule` is the plain search: depth first, each schedule to its end. `every_state` is the search in use: it
takes each move of each state once. A schedule that reaches a known state is abandoned: everything that can follow is
explored from there. The search saves each state that has several moves, and returns to it for the next move.
A state is everything that decides what happens next, and everything that an invariant reads (Run.state).
test_explorer.py shows that both searches find the same.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.handler_runs import Diverged
from tests.schedules.invariants import ALWAYS, FINALLY, Invariant, broken
from tests.schedules.run import ALL_KINDS, Run, Stuck
from tests.schedules.scenarios import SCENARIOS, Scenario

STUCK = "stuck"  # endless deliveries


Choose: TypeAlias = Callable[[Run, list[str], list[str]], str | None]  # run, moves so far, possible moves → move


@dataclass
class Played:
    """One schedule: to its end, or until there was no new move."""

    moves: list[str]
    ended: bool
    broken: list[str]
    run: Run
    known: int = 0  # of its first moves, which an earlier schedule has made


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
        self.moves += len(played.moves) - played.known
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
    try:
        run = scenario.start(environment, faults, trace)
    except Stuck as stuck:
        return _stuck(scenario, Run(environment, faults), [], stuck)

    def follow(run: Run, moves: list[str], possible: list[str]) -> str | None:
        return begin[len(moves)] if len(moves) < len(begin) else choose(run, moves, possible)

    return _continue(scenario, run, [], follow)


def _continue(scenario: Scenario, run: Run, moves: list[str], choose: Choose, known: int = 0) -> Played:
    """Make moves until no work is left, or until `choose` returns None. After the `known` moves the rules were kept."""
    always, at_last = _rules(scenario)
    try:
        while True:
            if not run.active and (not known or len(moves) > known):
                wrong = broken(scenario, run, always)
                if not wrong and not run.settle():
                    wrong = broken(scenario, run, at_last)  # also if the late requests are never applied
                    if not run.late:
                        return Played(moves, True, wrong, run, known)
                if wrong:
                    return Played(moves, True, wrong, run, known)
            possible = run.moves()
            chosen = choose(run, moves, possible)
            if chosen is None:
                return Played(moves, False, [], run, known)
            if chosen not in possible:
                raise Diverged(f"{spell(scenario, moves)}: {chosen} is not possible, only {possible}")
            moves.append(chosen)
            run.move(chosen)
    except Stuck as stuck:
        return _stuck(scenario, run, moves, stuck, known)


def _stuck(scenario: Scenario, run: Run, moves: list[str], stuck: Stuck, known: int = 0) -> Played:
    if scenario.outcome_rules:
        wrong = [*broken(scenario, run, scenario.outcome_rules), f"{STUCK}: {stuck}"]
    else:
        wrong = [f"every_order_ends: {stuck}"]
    return Played(moves, True, wrong, run, known)


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
    """Search by states, depth first: take each move of each state once. `Played` is valid until the next one.

    A schedule is abandoned after a late request that changed nothing: what can follow equals what follows without it.
    """
    try:
        run = scenario.start(environment, faults)
    except Stuck as stuck:
        yield _stuck(scenario, Run(environment, faults), [], stuck)
        return
    moves: list[str] = []
    known: set[bytes] = set()
    branches: list[
        tuple[Any, int, list[str]]
    ] = []  # a saved run, its number of moves, its moves that are not taken yet
    chosen: list[str] = []  # the first move after a branch
    length = 0

    def choose(run: Run, moves: list[str], possible: list[str]) -> str | None:
        if chosen:
            return chosen.pop()
        if run.unchanged:
            return None
        state = run.state()
        if state in known:
            return None
        known.add(state)
        if len(possible) > 1:
            branches.append((run.save(), len(moves), possible[:0:-1]))
        return possible[0]

    while True:
        yield _continue(scenario, run, moves, choose, length)
        while branches and not branches[-1][-1]:
            branches.pop()
        if not branches:
            return
        saved, length, left = branches[-1]
        environment.run = run
        run.restore(saved)
        del moves[length:]
        chosen.append(left.pop())


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
        if report.schedules % 10_000 == 0:
            report.seconds = time.process_time() - begun
            progress(report)
        if len(report.violations) >= stop_at or report.schedules == limit:
            break
    report.seconds = time.process_time() - begun
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
