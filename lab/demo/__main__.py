"""`make demo`: three pipelines side by side on a local AWS, with the same orders and faults, and an audit.

Writes build/demo.html and build/demo.json. Exit status 1 if this repository's pipeline is not as promised, or if the
run failed.
"""

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import ROOT, LocalStackError
from tools.local.stack import LocalStack
from tools.progress import Steps, console

from lab.demo.evidence import collect, figures, reports
from lab.demo.page import page
from lab.demo.run import KILLS, OTHERS_WITHIN_S, Run
from lab.demo.sender import NotAccepted
from lab.demo.terminal import show_audit, show_comparison, show_this_repo
from lab.demo.variant_report import as_data
from lab.demo.versions import versions
from lab.faults.journal import Journal
from lab.variants import THIS_REPO, VARIANTS, synth_arguments
from lab.variants.visibility import shorten_visibility

BUILD = ROOT / "build"


def main() -> int:
    """Parse the arguments, run, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="make demo", usage="make demo [ORDERS=100] [SEED=1] [FAULTS=6]", description=__doc__
    )
    parser.add_argument("--orders", type=int, default=100, help="number of orders, at least 100")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run; a random seed is printed")
    parser.add_argument("--faults", type=float, default=6, help="percentage of first deliveries that meet a fault")
    arguments = parser.parse_args()
    if arguments.orders < 100:
        parser.error("needs at least 100 orders: with fewer, too few workers are busy when the demo kills workers")
    if not 0 <= arguments.faults <= 50:
        parser.error("needs faults of 0 to 50 percent: with more, the run does not end in time")
    seed = arguments.seed if arguments.seed is not None else random.randrange(10_000)
    console.print(f"{arguments.orders} orders, SEED={seed}, FAULTS={arguments.faults:g}\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the local AWS too
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    journal = Journal(directory / "journal.jsonl")
    try:
        with LocalStack(directory, synth=synth_arguments(seed, arguments.faults, journal.path)) as running:
            succeeded = _run(running, arguments, seed, journal, started)
    except (LocalStackError, NotAccepted) as error:
        console.print(f"\n{error}", style="red", markup=False)
        succeeded = False
    if succeeded:
        shutil.rmtree(directory)
    else:
        shutil.rmtree(directory / "tmp", ignore_errors=True)
        console.print(f"\nThe log of the local AWS and all deployed files are in {directory}", markup=False)
    return 0 if succeeded else 1


def _run(running: LocalDeployment, arguments: argparse.Namespace, seed: int, journal: Journal, started: float) -> bool:
    """Returns whether this repository's pipeline is as promised and enough workers were killed."""
    shorten_visibility(running, VARIANTS)
    others = [variant for variant in VARIANTS if variant is not THIS_REPO]
    run = Run(running, arguments.orders, seed, arguments.faults, others, journal)
    with Steps() as steps:
        try:
            run(steps)
        except TimeoutError as error:
            console.print(f"{error}: the audit goes on with the present state", style="red", markup=False)
        with ThreadPoolExecutor(1) as pool, steps.step("the evidence, and some seconds for the other variants"):
            waiting = pool.submit(run.let_others_finish)
            evidence = collect(running)
            counts = figures(running, run.result, evidence)
            waiting.result()
            variant_reports = reports(running, run.result, evidence, VARIANTS)
    too_few_kills = [name for name in ("Payment", "Email") if counts.kills.get(name, 0) < KILLS]
    remarks = [
        f"The other variants got {len(run.result.tally.shared)} of the orders, as often, with the same plan of faults.",
        "This repository's pipeline got the other orders too, and its workers were killed from outside as well.",
        "If the outcome of a send is unknown, a second email is possible. This repository names each with its cause.",
        f"Read from ledger, mailbox, tables and queues. The other variants had {OTHERS_WITHIN_S:.0f} s more time.",
    ]
    seconds = time.monotonic() - started
    data = as_data(
        {
            "seed": seed,
            "faults_percent": arguments.faults,
            "seconds": round(seconds),
            "remarks": remarks,
            "kills_from_outside": dict(counts.kills),
            "versions": versions(),
        },
        variant_reports,
    )
    BUILD.mkdir(exist_ok=True)
    (BUILD / "demo.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    (BUILD / "demo.html").write_text(page(data))
    show_this_repo(console, counts)
    show_comparison(console, variant_reports, "The same orders, the same faults", remarks)
    this_repo = next(each for each in variant_reports if each.name == THIS_REPO.name)
    show_audit(console, this_repo)
    for name in too_few_kills:
        console.print(f"Only {counts.kills.get(name, 0)} {name.lower()} workers were killed at work.", style="red")
    console.print(f"\n{seconds:.0f} s, deployment included. The report: build/demo.html (and build/demo.json)")
    return this_repo.as_promised and not too_few_kills


if __name__ == "__main__":
    sys.exit(main())
