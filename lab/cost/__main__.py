"""`make cost ORDERS_PER_MONTH=1000000 DUPLICATE_RATE=0.01 REGION=eu-west-1` shows the cost of a load.

`page` writes lab/docs/cost.md. `measure` counts again.
"""

import argparse
import json
import os
import subprocess
import sys

from rich.console import Console
from rich.markdown import Markdown

from lab.cost import page, table
from lab.cost.counts import WRITE, stored
from lab.cost.pricing import UnknownRegion, prices
from lab.cost.this_repo import Load

USAGE = "make cost [ORDERS_PER_MONTH=1000000] [DUPLICATE_RATE=0.01] [REGION=us-east-1]"
MEASURED_BY = "lab/tests/cost/test_measured.py"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make cost", usage=USAGE)
    parser.add_argument("what", nargs="?", default="show", choices=["show", "page", "measure"])
    parser.add_argument("--orders-per-month", type=float, default=1_000_000)
    parser.add_argument("--duplicate-rate", type=float, default=0.01, help="of messages, at each stage: 0.01 is 1 %%")
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "measure":
        sys.exit(subprocess.call([sys.executable, "-m", "pytest", MEASURED_BY], env={**os.environ, WRITE: "1"}))
    if arguments.what == "page":
        page.PATH.write_text(page.page(stored()))
        return
    if arguments.orders_per_month <= 0 or arguments.duplicate_rate < 0:
        parser.error("orders a month must be above 0, the duplicate rate not below")
    try:
        at = prices(arguments.region)
    except UnknownRegion as unknown:
        parser.error(str(unknown.args[0]))
    load = Load(arguments.orders_per_month, arguments.duplicate_rate)
    if arguments.json:
        both = [table.figures(stored(), each, at) for each in (load, Load(load.orders, load.duplicates, full=True))]
        sys.stdout.write(json.dumps(both, indent=1) + "\n")
    else:
        Console().print(Markdown(page.tables(stored(), load, at)))


main()
