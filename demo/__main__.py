"""`make demo`: the deployed app on a local AWS of its own, traffic with faults and kills, and an audit.

Exit status 1 if the promise was broken, or the run could not be made.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from demo.audit import audit
from demo.evidence import collect, figures
from demo.local.errors import LocalStackError
from demo.local.running import Running
from demo.local.stack import LocalStack
from demo.progress import Steps, console
from demo.report import show
from demo.run import KILLS, Run
from demo.sender import NotAccepted


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--orders", type=int, default=120, help="how many, at least 100")
    parser.add_argument("--seed", type=int, default=None, help="what is drawn; printed, so that it can be had again")
    asked = parser.parse_args()
    if asked.orders < 100:
        parser.error("100 orders at least: fewer do not keep the workers busy enough to be killed at work")
    seed = asked.seed if asked.seed is not None else random.randrange(10_000)
    console.print(f"{asked.orders} orders, SEED={seed}\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the local AWS ends with us
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    try:
        with LocalStack(directory) as running:
            kept = _run(running, asked.orders, seed, started)
    except (LocalStackError, NotAccepted) as error:
        console.print(f"\n{error}", style="red", markup=False)
        kept = False
    if kept:
        shutil.rmtree(directory)
    else:
        shutil.rmtree(directory / "tmp", ignore_errors=True)
        console.print(f"\nThe local AWS's log and all that was deployed are kept in {directory}", markup=False)
    return 0 if kept else 1


def _run(running: Running, orders: int, seed: int, started: float) -> bool:
    """Whether the promise was kept, and the run was what it says."""
    run = Run(running, orders, seed)
    with Steps() as steps:
        try:
            run(steps)
        except TimeoutError as late:
            console.print(f"{late}: the audit goes on with what there is", style="red", markup=False)
        with steps.step("the witnesses"):
            evidence = collect(running)
            counted = figures(running, run.done, evidence, time.monotonic() - started)
    verdict = audit(list(run.done.tally.accepted.values()), evidence)
    show(console, counted, verdict)
    few = [name for name in ("Payment", "Email") if counted.kills.get(name, 0) < KILLS]
    for name in few:
        console.print(f"Only {counted.kills.get(name, 0)} {name.lower()} workers were killed at work.", style="red")
    return not verdict.violations and not few


if __name__ == "__main__":
    sys.exit(main())
