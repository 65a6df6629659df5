"""Run the figures one after the other, show them, and store them: `make bench`."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.benchmarks.page import page
from lab.benchmarks.performance_page import fill
from lab.benchmarks.table import shown, summary

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# In this order: the quick ones first.
FIGURES = ("requests", "cpu", "guard", "batch", "imports", "size", "memory", "throughput", "growth", "commands")
MODULES = {"batch": "batches"}


class Failed(Exception):
    """A figure could not be measured, or its effects were wrong."""


def run(name: str, quick: bool) -> dict[str, Any]:
    """Measure one figure in a process of its own. Raises Failed."""
    command = [
        sys.executable,
        "-m",
        "lab.benchmarks.run_figure",
        MODULES.get(name, name),
        *(["quick"] if quick else []),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{name}: {done.stderr.strip()[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    """Return the exit status: 1 if a figure could not be measured. A missed goal is no failure."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", default="", help=f"some of {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try a benchmark")
    parser.add_argument("--out", type=Path, help="folder of the results: lab/benchmarks/, or build/ with --quick")
    arguments = parser.parse_args()
    names = [name for name in arguments.only.split(",") if name] or FIGURES
    if unknown := set(names) - set(FIGURES):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}. Figures: {', '.join(FIGURES)}")
    out = arguments.out or (ROOT / "build" if arguments.quick else HERE)
    results = out / "results.json"
    known = json.loads(results.read_text()) if results.exists() else {}
    measured = []
    for name in names:
        print(f"… {name}", flush=True)
        try:
            known[name] = run(name, arguments.quick)
        except Failed as error:
            print(f"✗ {error}", flush=True)
            continue
        measured.append(name)
        print("\n".join(shown(known[name])), flush=True)
        _write({name: known[name] for name in FIGURES if name in known}, out)
    print("\n".join(summary([known[name] for name in measured])))
    print(f"written to {out / 'results.json'} and build/benchmarks.html")
    return 0 if len(measured) == len(names) else 1


def _write(figures: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    lines = (f"{json.dumps(name)}: {json.dumps(figure, ensure_ascii=False)}" for name, figure in figures.items())
    (out / "results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "benchmarks.html").write_text(page(figures))
    if out == HERE:
        fill(figures)


if __name__ == "__main__":
    sys.exit(main())
