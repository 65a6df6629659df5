"""Seconds of the commands that people wait for, with what each spends them on."""

import io
import os
import re
import subprocess
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

from tools.local.stack import LocalStack

from lab.benchmarks.environment import ENVIRONMENT
from lab.benchmarks.figure import Figure, require

ROOT = Path(__file__).resolve().parents[2]
DURATION = re.compile(r"^ *([\d.]+)s (?:call|setup)\s+(\S+)", re.M)

STEP = re.compile(r"✓ (.+) ([\d.]+) s")


def measure(quick: bool) -> Figure:
    """`make synth`, `make up` and the parts of `make test`, one after the other, once each."""
    rows = [_make("synth", "STAGE=prod"), *_up()]
    if not quick:
        rows += [_make("lint"), _make("types"), *(_pytest(name) for name in ("unit", "stacks", "e2e"))]
        rows.append({"": "make test", "seconds": round(sum(float(str(row["seconds"])) for row in rows[-5:]), 1)})
    return Figure(
        "commands",
        "What people wait for, in seconds of wall time",
        rows,
        [(str(row[""]), float(str(row["seconds"]))) for row in rows if not str(row[""]).startswith("·")],
        "s",
        (),
        ("make test is the sum of lint, types, unit, stacks and e2e, which it runs one after the other.",),
    )


def _make(target: str, *variables: str, **environment: str) -> dict[str, object]:
    began = time.perf_counter()
    done = subprocess.run(
        ["make", "--no-print-directory", target, *variables],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in ENVIRONMENT} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    require(done.returncode == 0, f"make {target} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    slowest = [f"{name.rpartition('/')[2]} {seconds} s" for seconds, name in DURATION.findall(done.stdout)[:3]]
    return {"": f"make {target}", "seconds": round(took, 1), "the longest in it": ", ".join(slowest)}


def _pytest(target: str) -> dict[str, object]:
    return _make(target, PYTEST_ADDOPTS="--durations=3")


def _up() -> list[dict[str, object]]:
    """`make up` is this, in a folder of its own: it must not meet one that is up already."""
    with tempfile.TemporaryDirectory() as directory:
        stack = LocalStack(Path(directory) / "local")
        began, said = time.perf_counter(), io.StringIO()
        try:
            with redirect_stdout(said):
                running = stack.start()
            took = time.perf_counter() - began
            require("ApiUrl" in running.outputs, f"outputs are {sorted(running.outputs)}")
        finally:
            stack.stop()
    steps = ", ".join(f"{what} {seconds} s" for what, seconds in STEP.findall(said.getvalue()))
    return [{"": "make up", "seconds": round(took, 1), "the longest in it": steps}]
