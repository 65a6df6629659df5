"""Judges mutants: each in a copy of the tree, hunted by the explorer, then by unit tests, until something kills it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.schedules.mutants import MUTANTS, Mutant
from tests.schedules.table import say, table

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("shared", "functions", "tests", "events", "stacks", "pyproject.toml")
WRITTEN = Path("build/mutants.json")
LIMIT_S = 900.0

# What the control runs: nothing is mutated, so nothing may be killed.
CONTROL = Mutant(
    "nothing (control)",
    "shared/idempotency/store.py",
    "RESEND_BASE_S = 0.05\n",
    "RESEND_BASE_S = 0.05\n",
    tuple(sorted({name for mutant in MUTANTS for name in mutant.hunts})),
    tuple(sorted({test for mutant in MUTANTS for test in mutant.tests})),
)


class Trouble(Exception):
    """The bench itself breaks."""


@dataclass(frozen=True)
class Verdict:
    """`by`: the schedule and the invariant that it breaks, or the test that failed; empty for a survivor."""

    mutant: str
    by: str
    seconds: float
    trouble: str = ""  # why there is no verdict

    @property
    def row(self) -> dict[str, object]:
        """For tables and files."""
        said = self.trouble or self.by or "SURVIVED"
        return {"mutant": self.mutant, "killed by": said, "seconds": round(self.seconds, 1)}


def judge_all(names: Sequence[str] = (), workers: int | None = None) -> int:
    """Judge the named mutants, or all with the control; the exit status."""
    chosen = [mutant for mutant in MUTANTS if mutant.name in names] if names else [CONTROL, *MUTANTS]
    verdicts: list[Verdict] = []
    count = workers or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory, ThreadPoolExecutor(count) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            trees.put(_copy(Path(directory) / str(number)))

        def judge_in_a_tree(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                return judge(mutant, tree)
            finally:
                trees.put(tree)

        for done in as_completed([pool.submit(judge_in_a_tree, mutant) for mutant in chosen]):
            verdicts.append(done.result())
            say(json.dumps(verdicts[-1].row, ensure_ascii=False))
    return _report(sorted(verdicts, key=lambda verdict: [mutant.name for mutant in chosen].index(verdict.mutant)))


def judge(mutant: Mutant, tree: Path) -> Verdict:
    """Mutate the tree, hunt, and mend it again."""
    begun = time.monotonic()
    file = tree / mutant.file
    source = file.read_text()
    file.write_text(mutant.apply(source))
    by = trouble = ""
    try:
        by = _hunt(mutant, tree) or _test(mutant, tree)
    except (Trouble, subprocess.TimeoutExpired) as error:
        trouble = str(error)
    finally:
        file.write_text(source)
    return Verdict(mutant.name, by, time.monotonic() - begun, trouble)


def _hunt(mutant: Mutant, tree: Path) -> str:
    if not mutant.hunts:
        return ""
    ran = _run(tree, "-m", "tests.schedules", "hunt", *mutant.hunts)
    if ran.returncode == 0:
        return ""
    if ran.returncode == 1 and ran.stdout.startswith("killed: "):
        return ran.stdout.splitlines()[0].removeprefix("killed: ")
    raise Trouble(f"the explorer broke\n{ran.stdout[-1000:]}{ran.stderr[-3000:]}")


def _test(mutant: Mutant, tree: Path) -> str:
    ran = _run(tree, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *mutant.tests)
    if ran.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    if ran.returncode == 1 and failed:
        return failed[1].removeprefix("tests/unit/")
    raise Trouble(f"the tests did not run\n{ran.stdout[-3000:]}{ran.stderr[-1000:]}")


def _run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # No bytecode: a mutation within the second of the last one would not be seen.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def _copy(tree: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "cdk.out")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=ignored)
        elif source.exists():
            shutil.copy(source, tree / name)
    return tree


def _report(verdicts: list[Verdict]) -> int:
    rows = [verdict.row for verdict in verdicts]
    say("\n" + "\n".join(table(rows)))
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(json.dumps(rows, indent=2, ensure_ascii=False))
    judged = [verdict for verdict in verdicts if verdict.mutant != CONTROL.name]
    survivors = [verdict.mutant for verdict in judged if not verdict.by]
    false = [verdict.by or verdict.trouble for verdict in verdicts if verdict.mutant == CONTROL.name]
    if any(false):
        say(f"with nothing mutated there is a kill too, so that no verdict counts: {false}")
    say(f"{len(judged)} mutants, {len(survivors)} survived or broke the bench: {survivors}; written to {WRITTEN}")
    return 1 if survivors or any(false) else 0
