"""Commands of the explorer.

`replay <schedule>` shows a schedule call by call. `verify` is the long run. `mutants` runs the mutants.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from os import cpu_count
from pathlib import Path

from tests.schedules.environment import OtherHandlers, explorer_environment
from tests.schedules.equivalence import compare
from tests.schedules.explorer import Report, explore, replay
from tests.schedules.faults import MAKE_LATE
from tests.schedules.mutant_runs import run_all
from tests.schedules.scenarios import SCENARIOS, Scenario
from tests.schedules.story import tell
from tests.schedules.table import say, table
from tests.schedules.walks import walk

TWO_FAULTS = (
    *("payment-declined-once", "payment-once", "payment-cold", "email-once", "email-declined-once"),
    *("payment-refused-at-create", "payment-refused-at-confirm", "payment-wrong-key"),
    *("order-batch", "order-refused", "order", "relay", "api", "api-reused"),
)
# Two faults in what is longer, or with two copies of a message on top. The longest searches come first.
DEEP = ("payment-declined", "payment", "email", "email-declined", "chain")
ONE_FAULT = (
    *("pipeline", "chain-twice", "payment-forgetful", "payment-another"),
    *("payment-deleted", "payment-declined-deleted"),
    *("payment-slow", "payment-error-before", "payment-error-after", "payment-drop"),
)
WALKED = (
    *("pipeline", "chain-twice", "payment", "payment-declined", "payment-forgetful", "payment-slow", "payment-drop"),
    *("email", "order-batch"),
)
# Each schedule once more with real clients and new runs of the handlers: scenario, faults.
COMPARED = (
    *(("payment-once", 1), ("payment-declined-once", 1), ("email-once", 1), ("email", 1), ("chain", 1)),
    *(("order-batch", 1), ("order-refused", 1), ("relay", 1), ("api-reused", 1)),
    *(("order", 2), ("relay", 2)),
)
STEPS = 60  # of a story
WRITTEN = Path("build/verify.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 1 if an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.schedules", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("replay")
    show.add_argument("schedule", help="as the explorer prints it: payment:pAAA?pBA")
    long = commands.add_parser("verify")
    long.add_argument("--walks", type=int, default=1000, help="random walks for each scenario, and stories")
    long.add_argument("--seed", type=int, default=1, help="of the first walk; printed with what it breaks")
    long.add_argument("--deep", action="store_true", help="also two faults where there are two copies")
    mutants = commands.add_parser("mutants")
    mutants.add_argument("names", nargs="*", help="all, if none is named")
    chosen = parser.parse_args(arguments)
    match chosen.command:
        case "replay":
            return show_schedule(chosen.schedule)
        case "verify":
            return verify(chosen.walks, chosen.seed, (*(DEEP if chosen.deep else ()), *TWO_FAULTS))
    return run_all(chosen.names)


def show_schedule(
    schedule: str, scenarios: Mapping[str, Scenario] = SCENARIOS, others: OtherHandlers | None = None
) -> int:
    """Print a schedule's trace and the invariants that it breaks."""
    if schedule.partition(":")[0] not in scenarios:
        say(f"a schedule is a scenario and its moves, as payment:pAAA?pBA; scenarios are {', '.join(scenarios)}")
        return 2
    with explorer_environment(others=others) as environment:
        trace, wrong = replay(environment, schedule, scenarios)
    say("\n".join(trace))
    say("\n".join(wrong) or "nothing is broken")
    return 1 if wrong else 0


def _explore(name: str, faults: int) -> Report:
    scenario = SCENARIOS[name]
    if faults > 1:  # with late requests too, a search of two faults takes three to five times as long
        scenario = replace(scenario, kinds=scenario.kinds - MAKE_LATE)
    with explorer_environment() as environment:
        return explore(environment, scenario, faults, progress=lambda report: say(f"… {json.dumps(report.row)}"))


def _walk(name: str, walks: int, seed: int) -> Report:
    with explorer_environment() as environment:
        return walk(environment, SCENARIOS[name], walks, seed)


def _stories(stories: int) -> Report:
    with explorer_environment() as environment:
        return tell(environment, stories, STEPS, same_each_time=False)


def verify(walks: int, seed: int, two_faults: Sequence[str]) -> int:
    """Explore two faults for each handler and one fault for long scenarios, compare, and walk. Uses all processors."""
    begun = time.monotonic()
    jobs: list[tuple[Callable[..., Report], tuple[object, ...]]] = [
        *((_explore, (name, 2)) for name in two_faults),
        *((_explore, (name, 1)) for name in ONE_FAULT),
        *((compare, scenario_and_faults) for scenario_and_faults in COMPARED),
        *((_walk, (name, walks, seed)) for name in WALKED),
        (_stories, (walks,)),
    ]
    reports: list[Report] = []
    with ProcessPoolExecutor(cpu_count()) as pool:
        for done in as_completed([pool.submit(job, *arguments) for job, arguments in jobs]):
            report = done.result()
            reports.append(report)
            say(json.dumps(report.row))
            for schedule, what in report.violations:
                say(f"  {what}" + (f"\n  make replay SCHEDULE='{schedule}'" if schedule else ""))
    rows = [report.row for report in sorted(reports, key=lambda report: (report.scenario, str(report.faults)))]
    say("\n" + "\n".join(table(rows)))
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(json.dumps(rows, indent=2))
    say(f"{time.monotonic() - begun:.0f} s; written to {WRITTEN}")
    return 1 if any(report.violations for report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
