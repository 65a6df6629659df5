"""Measure all peers, show the table, and write lab/docs/peers.md: `make peers`."""

import json
from concurrent.futures import ProcessPoolExecutor, as_completed
from os import cpu_count
from pathlib import Path

from tests.schedules.environment import explorer_environment
from tests.schedules.table import say, table

from lab.peers import cold_start
from lab.peers.measurement import WORDS, Measurement, measure
from lab.peers.page import page
from lab.peers.scenarios import COMPARED, THIS_REPO

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/peers.md"
WRITTEN = Path("build/peers.json")


def _measured(name: str) -> Measurement:
    with explorer_environment(others=cold_start) as place:
        return measure(place, name)


def compare() -> int:
    """Measure all peers in parallel and write the page. Returns 1 if this repository breaks a rule, otherwise 0."""
    with ProcessPoolExecutor(cpu_count()) as pool:
        by_name = {}
        for done in as_completed([pool.submit(_measured, name) for name in COMPARED]):
            it = done.result()
            by_name[it.scenario] = it
            say(f"… {json.dumps(it.row)}")
    measured = [by_name[name] for name in COMPARED]
    rows = [{**it.row, "seconds": round(it.seconds, 1)} for it in measured]
    say("\n".join(table(rows)))
    for it in measured:
        for kind, schedule in sorted(it.shortest.items()):
            say(f"{WORDS[kind]}: make replay-peer SCHEDULE='{schedule}'")
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(json.dumps([{**row, **it.shortest} for row, it in zip(rows, measured, strict=True)], indent=2))
    with explorer_environment(others=cold_start) as place:
        PAGE.write_text(page(place, measured))
    say(f"written to {WRITTEN} and {PAGE.relative_to(ROOT.parent)}")
    return 1 if any(it.counts for it in measured if it.peer == THIS_REPO) else 0
