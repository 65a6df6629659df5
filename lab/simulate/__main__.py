"""`make simulate`: run all scenarios, write results.json and lab/docs/scale.md, and plots to build/. Takes minutes.

`python -m lab.simulate page` writes the pages from the stored results.
"""

import sys

from rich.console import Console

from lab.simulate import page, runs
from lab.simulate.scenarios import scenarios


def main() -> None:
    if sys.argv[1:] != ["page"]:
        ran, console = [], Console(highlight=False)
        for scenario in scenarios():
            ran.append(runs.run(scenario))
            console.print(
                f"{scenario.name}, seed {scenario.setup.seed}: p99 {ran[-1].p99_s:,.1f} s, {ran[-1].parked} parked"
            )
        runs.store(ran)
    page.write(runs.stored())


main()
