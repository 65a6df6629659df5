"""`python -m lab.benchmarks`: runs the figures one after the other, shows them, and writes them down."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.benchmarks.page import page
from lab.benchmarks.perf_page import fill
from lab.benchmarks.table import shown, summary

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# In this order, the quick ones first.
FIGURES = ("requests", "cpu", "own", "batch", "imports", "size", "memory", "throughput", "growth", "commands")
MODULES = {"batch": "batches"}


class Failed(Exception):
    """A figure could not be measured, or what it measured was wrong."""


def run(name: str, quick: bool) -> dict[str, Any]:
    """Measure one figure in a process of its own. Raises Failed."""
    command = [sys.executable, "-m", "lab.benchmarks.one", MODULES.get(name, name), *(["quick"] if quick else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{name}: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """The exit status: 1 where a figure could not be measured. A goal that was missed is told, it is no failure."""
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks")
    parser.add_argument("--only", default="", help=f"some of {', '.join(FIGURES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, and no more")
    parser.add_argument("--out", type=Path, help="where results go: lab/benchmarks/, or build/ for a quick run's")
    asked = parser.parse_args()
    names = [name for name in asked.only.split(",") if name] or FIGURES
    if unknown := set(names) - set(FIGURES):
        parser.error(f"no such figure: {', '.join(sorted(unknown))}; there is {', '.join(FIGURES)}")
    out = asked.out or (ROOT / "build" if asked.quick else HERE)
    results = out / "results.json"
    known = json.loads(results.read_text()) if results.exists() else {}
    measured = []
    for name in names:
        print(f"… {name}", flush=True)
        try:
            known[name] = run(name, asked.quick)
        except Failed as error:
            print(f"✗ {error}", flush=True)
            continue
        measured.append(name)
        print("\n".join(shown(known[name])), flush=True)
        _write({name: known[name] for name in FIGURES if name in known}, out)
    print("\n".join(summary([known[name] for name in measured])))
    print(f"written to {out}")
    return 0 if len(measured) == len(names) else 1


def _write(found: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    (out / "results.html").write_text(page(found))
    if out == HERE:
        fill(found)


if __name__ == "__main__":
    sys.exit(main())
