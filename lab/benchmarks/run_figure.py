"""Measure one figure in a process of its own: `python -m lab.benchmarks.run_figure NAME [quick]`.

Prints the figure as JSON on the last line.
"""

import dataclasses
import importlib
import json
import sys

from lab.benchmarks import environment
from lab.benchmarks.machine import machine


def main(name: str, quick: bool) -> None:
    """Raises WrongEffect if the work was not done."""
    environment.enter()
    figure = importlib.import_module(f"lab.benchmarks.{name}").measure(quick)
    goals = [{**dataclasses.asdict(goal_result), "met": goal_result.met} for goal_result in figure.goals]
    print(json.dumps({**dataclasses.asdict(figure), "goals": goals, "machine": machine(), "quick": quick}))


if __name__ == "__main__":
    main(sys.argv[1], "quick" in sys.argv[2:])
