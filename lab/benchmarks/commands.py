"""Seconds of the commands that people wait for, with their longest parts."""

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
    """Measure `make synth`, `make up` and the parts of `make test`, once each."""
    rows = [_make("synth", "STAGE=prod"), *_up()]
    if not quick:
        rows += [_make("lint"), _make("types"), *(_pytest(name) for name in ("unit", "stacks", "e2e"))]
        rows.append({"": "make test", "seconds": round(sum(float(str(row["seconds"])) for row in rows[-5:]), 1)})
    return Figure(
        "commands",
        "Commands, in seconds of wall time",
        rows,
        [(str(row[""]), float(str(row["seconds"]))) for row in rows if not str(row[""]).startswith("·")],
        "s",
        (),
        ("make test is the sum of lint, types, unit, stacks and e2e.",),
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
    return {"": f"make {target}", "seconds": round(took, 1), "longest parts": ", ".join(slowest)}


def _pytest(target: str) -> dict[str, object]:
    return _make(target, PYTEST_ADDOPTS="--durations=3")


def _up() -> list[dict[str, object]]:
    """Measure the work of `make up` in a folder of its own, beside a local AWS that may be up."""
    with tempfile.TemporaryDirectory() as directory:
        stack = LocalStack(Path(directory) / "local")
        began, output = time.perf_counter(), io.StringIO()
        try:
            with redirect_stdout(output):
                running = stack.start()
            took = time.perf_counter() - began
            require("ApiUrl" in running.outputs, f"outputs are {sorted(running.outputs)}")
        finally:
            stack.stop()
    steps = ", ".join(f"{what} {seconds} s" for what, seconds in STEP.findall(output.getvalue()))
    return [{"": "make up", "seconds": round(took, 1), "longest parts": steps}]
