"""Run the scenarios and store the results."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.simulate.model import drained_s, quantile, simulate
from lab.simulate.parameters import describe
from lab.simulate.scenarios import BEFORE_S, Scenario

PATH = Path(__file__).with_name("results.json")
POINTS = 240  # of each plot


@dataclass(frozen=True)
class RunSummary:
    """Seconds, and orders as they would be without slicing; `backlog` by queue, at `times`."""

    name: str
    title: str
    seed: int
    slice_of: int
    workers: dict[str, str]
    orders: int
    left: int
    parked: int
    p50_s: float
    p99_s: float
    longest_s: float
    most_backlog: dict[str, int]
    most_in_flight: dict[str, int]
    throttled: dict[str, int]
    most_receives: dict[str, int]
    max_receives: dict[str, int]
    drained_s: float | None
    times: list[float]
    backlog: dict[str, list[int]]


def run(scenario: Scenario) -> RunSummary:
    setup = scenario.setup
    result = simulate(setup, scenario.sample_s)
    ordered = result.latencies
    parked, k = sum(result.parked.values()), setup.slice_of
    drained = None
    if scenario.event_ends_s is not None:
        usual = [b for t, b in zip(result.times, result.backlog["payments"], strict=True) if 60 < t < BEFORE_S]
        drained = drained_s(result, "payments", scenario.event_ends_s, max(usual))
    step = max(1, len(result.times) // POINTS)
    return RunSummary(
        name=scenario.name,
        title=scenario.title,
        seed=setup.seed,
        slice_of=k,
        workers=dict(describe(list(setup.stages))),
        orders=len(result.arrived) * k,
        left=(len(result.arrived) - len(ordered) - parked) * k,
        parked=parked * k,
        p50_s=round(quantile(ordered, 0.5), 2),
        p99_s=round(quantile(ordered, 0.99), 2),
        longest_s=round(ordered[-1], 2) if ordered else 0.0,
        most_backlog={name: max(backlog) for name, backlog in result.backlog.items()},
        most_in_flight={name: most * k for name, most in result.most_in_flight.items()},
        throttled={name: count * k for name, count in result.throttled.items()},
        most_receives=result.most_receives,
        max_receives={stage.name: stage.max_receives for stage in setup.stages},
        drained_s=drained,
        times=[round(t) for t in result.times[::step]],
        backlog={name: backlog[::step] for name, backlog in result.backlog.items()},
    )


def store(ran: list[RunSummary]) -> None:
    PATH.write_text(json.dumps([asdict(each) for each in ran], separators=(",", ":")) + "\n")


def stored() -> list[RunSummary]:
    return [RunSummary(**each) for each in json.loads(PATH.read_text())]
