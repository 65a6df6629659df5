"""Runs the mutants: the explorer searches for a violation, then the unit tests run, until something fails."""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from tests.schedules.environment import explorer_environment
from tests.schedules.explorer import explore
from tests.schedules.mutants import MUTANTS, Mutant
from tests.schedules.scenarios import SCENARIOS
from tests.schedules.table import say, table

ROOT = Path(__file__).resolve().parents[2]
REPORT = Path("build/mutants.json")
LIMIT_S = 900.0
MAX_SCHEDULES = 10_000  # per scenario: a mutant is for the unit tests if the explorer has not noticed it by then

# Runs like a mutant and breaks nothing, so nothing may be noticed.
CONTROL = Mutant(
    "control",
    "",
    lambda _: None,
    tuple(sorted({name for mutant in MUTANTS.values() for name in mutant.scenarios})),
    tuple(sorted({test for mutant in MUTANTS.values() for test in mutant.tests})),
)


@dataclass(frozen=True)
class Result:
    """`noticed_by`: a schedule with the invariant that it breaks, or a test. Empty if nobody noticed the mutant."""

    mutant: str
    module: str
    noticed_by: str
    seconds: float
    failure: str = ""  # why there is no result

    @property
    def row(self) -> dict[str, object]:
        """One row of the table."""
        noticed_by = self.failure or self.noticed_by or "NOBODY"
        return {
            "mutant": self.mutant,
            "module": self.module,
            "noticed by": noticed_by,
            "seconds": round(self.seconds, 1),
        }


def run_all(names: Sequence[str] = (), workers: int | None = None) -> int:
    """Run the named mutants, or all of them and the control. Returns the exit status."""
    chosen = [MUTANTS[name] for name in names] if names else [CONTROL, *MUTANTS.values()]
    results: dict[str, Result] = {}
    with ProcessPoolExecutor(workers or os.cpu_count(), max_tasks_per_child=4) as pool:
        for done in as_completed([pool.submit(run, mutant.name) for mutant in chosen]):
            result = done.result()
            results[result.mutant] = result
            say(json.dumps(result.row, ensure_ascii=False))
    return report([results[mutant.name] for mutant in chosen])


def run(name: str) -> Result:
    """Run one mutant until something notices it."""
    mutant = MUTANTS.get(name, CONTROL)
    begun = time.monotonic()
    noticed_by = failure = ""
    try:
        noticed_by = search(mutant) or test(mutant)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
    return Result(mutant.name, mutant.module, noticed_by, time.monotonic() - begun, failure)


def search(mutant: Mutant) -> str:
    """Search the mutant's scenarios with one fault. Returns the first schedule that breaks an invariant."""
    for name in mutant.scenarios:
        with mutant.applied(), explorer_environment() as environment:
            for schedule, violation in explore(
                environment, SCENARIOS[name], 1, stop_at=1, limit=MAX_SCHEDULES
            ).violations:
                return f"{schedule}  {violation}"
    return ""


def test(mutant: Mutant) -> str:
    """Run the mutant's unit tests in a process of their own. Returns the first test that fails."""
    plugin = ["-p", "tests.schedules.mutant_plugin"] if mutant is not CONTROL else []
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *plugin, *mutant.tests],
        cwd=ROOT,
        env={**os.environ, "MUTANT": mutant.name},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if ran.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    if ran.returncode == 1 and failed:
        return failed[1].removeprefix("tests/unit/")
    raise RuntimeError(f"the tests did not run\n{ran.stdout[-3000:]}{ran.stderr[-1000:]}")


def report(results: Sequence[Result]) -> int:
    """Print the table and the numbers by module. Returns the exit status."""
    say("\n" + "\n".join(table([result.row for result in results])))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps([result.row for result in results], indent=2, ensure_ascii=False))
    mutants = [result for result in results if result.mutant != CONTROL.name]
    missed = [result.mutant for result in mutants if not result.noticed_by]
    in_all = Counter(result.module for result in mutants)
    noticed = Counter(result.module for result in mutants if result.noticed_by)
    say("\nnoticed: " + ", ".join(f"{module} {noticed[module]} of {count}" for module, count in in_all.items()))
    false_alarms = [result.noticed_by or result.failure for result in results if result.mutant == CONTROL.name]
    if any(false_alarms):
        say(f"the control fails too, so no result counts: {false_alarms}")
    say(f"{len(mutants)} mutants, not noticed: {missed or 'none'}; written to {REPORT}")
    return 1 if missed or any(false_alarms) else 0
