"""`python -m lab.benchmarks.one NAME [quick]`: one figure in a process of its own, so that none finds another's caches.

Prints it as JSON on the last line.
"""

import dataclasses
import importlib
import json
import sys

from lab.benchmarks import environment
from lab.benchmarks.machine import machine


def main(name: str, quick: bool) -> None:
    """Raises WrongEffect where the work was not done."""
    environment.enter()
    found = importlib.import_module(f"lab.benchmarks.{name}").measure(quick)
    verdicts = [{**dataclasses.asdict(verdict), "met": verdict.met} for verdict in found.verdicts]
    print(json.dumps({**dataclasses.asdict(found), "verdicts": verdicts, "machine": machine(), "quick": quick}))


if __name__ == "__main__":
    main(sys.argv[1], "quick" in sys.argv[2:])
