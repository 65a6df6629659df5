"""`make lab/demo`: three pipelines side by side on a local AWS of their own, the same orders and faults, and an audit.

Writes build/demo.html and build/demo.json.

Exit status 1 if ours broke its promise, or the run could not be made.
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

from tools.local.ministack import ROOT, LocalStackError
from tools.local.running import Running
from tools.local.stack import LocalStack
from tools.progress import Steps, console

from lab.contrast import synth_arguments
from lab.contrast.visibility import bring_back_sooner
from lab.demo.audit import audit
from lab.demo.comparison import as_data, report
from lab.demo.evidence import collect, figures, told
from lab.demo.lanes import LANES, OURS
from lab.demo.page import page
from lab.demo.report import show_audit, show_comparison, show_ours
from lab.demo.run import KILLS, OTHERS_WITHIN_S, Run
from lab.demo.sender import NotAccepted
from lab.demo.versions import versions
from lab.faults.journal import Journal

BUILD = ROOT / "build"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make lab/demo", usage="make lab/demo [ORDERS=100] [SEED=1] [FAULTS=6]", description=__doc__
    )
    parser.add_argument("--orders", type=int, default=100, help="how many, at least 100")
    parser.add_argument("--seed", type=int, default=None, help="what is drawn; printed, so that it can be had again")
    parser.add_argument("--faults", type=float, default=6, help="percent of first deliveries that meet a fault")
    asked = parser.parse_args()
    if asked.orders < 100:
        parser.error("100 orders at least: fewer do not keep the workers busy enough to be killed at work")
    if not 0 <= asked.faults <= 50:
        parser.error("faults in 0 to 50 percent: with more, nothing ends in time")
    seed = asked.seed if asked.seed is not None else random.randrange(10_000)
    console.print(f"{asked.orders} orders, SEED={seed}, FAULTS={asked.faults:g}\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the local AWS ends with us
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    journal = Journal(directory / "journal.jsonl")
    try:
        with LocalStack(directory, synth=synth_arguments(seed, asked.faults, journal.path)) as running:
            kept = _run(running, asked, seed, journal, started)
    except (LocalStackError, NotAccepted) as error:
        console.print(f"\n{error}", style="red", markup=False)
        kept = False
    if kept:
        shutil.rmtree(directory)
    else:
        shutil.rmtree(directory / "tmp", ignore_errors=True)
        console.print(f"\nThe local AWS's log and all that was deployed are kept in {directory}", markup=False)
    return 0 if kept else 1


def _run(running: Running, asked: argparse.Namespace, seed: int, journal: Journal, started: float) -> bool:
    """Whether ours kept its promise, and the run was what it says."""
    bring_back_sooner(running, LANES)
    run = Run(running, asked.orders, seed, asked.faults, [lane for lane in LANES if lane is not OURS], journal)
    with Steps() as steps:
        try:
            run(steps)
        except TimeoutError as late:
            console.print(f"{late}: the audit goes on with what there is", style="red", markup=False)
        done = run.done
        with ThreadPoolExecutor(1) as beside, steps.step("the witnesses, and some seconds more for the other lanes"):
            others = beside.submit(run.let_others_finish)
            evidence = collect(running)
            counted = figures(running, done, evidence)
            others.result()
            deliveries = journal.read()
            all_told = {lane: told(running, lane, done, deliveries) for lane in LANES}
    verdict = audit(list(done.tally.accepted.values()), evidence)
    lanes = [
        report(
            lane,
            list(done.tally.accepted.values()) if lane is OURS else done.tally.shared,
            all_told[lane],
            second_mails=verdict.second_mails if lane is OURS else (),
            violations=[f"{each.order_id or '-'}: {each.what}" for each in verdict.violations] if lane is OURS else (),
        )
        for lane in LANES
    ]
    few = [name for name in ("Payment", "Email") if counted.kills.get(name, 0) < KILLS]
    shared = len(done.tally.shared)
    remarks = [
        f"naive and powertools got {shared} of ours' orders, those due a fault first: as often, with the same plan.",
        "Ours got the others too, and its workers were killed from outside besides.",
        "A second mail after a send of unknown outcome nobody can avoid; ours names each, the others do not.",
        f"A lane is judged by ledger, mailbox, tables and queues; others had {OTHERS_WITHIN_S:.0f} s more than ours.",
    ]
    seconds = time.monotonic() - started
    data = as_data(
        {
            "seed": seed,
            "faults_percent": asked.faults,
            "seconds": round(seconds),
            "remarks": remarks,
            "kills_from_outside": dict(counted.kills),
            "versions": versions(),
        },
        lanes,
    )
    BUILD.mkdir(exist_ok=True)
    (BUILD / "demo.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    (BUILD / "demo.html").write_text(page(data))
    show_ours(console, counted)
    show_comparison(console, lanes, "The same orders, the same faults", remarks)
    ours = next(lane for lane in lanes if lane.name == OURS.name)
    show_audit(console, ours)
    for name in few:
        console.print(f"Only {counted.kills.get(name, 0)} {name.lower()} workers were killed at work.", style="red")
    console.print(f"\n{seconds:.0f} s, deployment included. The report: build/demo.html (and build/demo.json)")
    return ours.kept and not few


if __name__ == "__main__":
    sys.exit(main())
