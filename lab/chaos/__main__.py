"""`make chaos`: ours and the naive lane under kills, triplicates and DLQ replays. Writes build/chaos.json and .md.

Interrupted and started again, it goes on. Exit status 1 if ours broke its promise, or the run was not what it says.
"""

import argparse
import random
import resource
import signal
import sys
import time

from tools.local.ministack import ROOT, LocalStackError
from tools.progress import Steps, console

from lab.chaos.leg import run_leg
from lab.chaos.page import page
from lab.chaos.state import Asked, State, resume, save, set_aside
from lab.chaos.totals import totals

STATE = ROOT / "build" / "chaos.json"
PAGE = ROOT / "build" / "chaos.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make chaos", usage="make chaos [ORDERS=10000] [SEED=1] [FAULTS=10]", description=__doc__
    )
    parser.add_argument("--orders", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="what is drawn; printed, so that it can be had again")
    parser.add_argument("--faults", type=float, default=10, help="percent of first deliveries that meet a fault")
    asked = parser.parse_args()
    if asked.orders < 1:
        parser.error("at least one order")
    if not 8 <= asked.faults <= 50:
        parser.error("faults in 8 to 50 percent: with fewer, too few workers die; with more, nothing ends in time")
    state = resume(STATE, asked.orders, asked.faults, asked.seed)
    if state is None:
        seed = asked.seed if asked.seed is not None else random.randrange(10_000)
        state = State(Asked(asked.orders, seed, asked.faults))
        if aside := set_aside(STATE):
            console.print(
                f"An unfinished run of other orders, seed, faults or versions is kept: build/{aside.name}. "
                f"Named build/{STATE.name} again, it is gone on with.\n"
            )
    said = f"{state.asked.orders} orders, SEED={state.asked.seed}, FAULTS={state.asked.faults:g}"
    goes_on = f", going on after leg {len(state.done)} of {len(state.asked.legs)}" if state.done else ""
    console.print(f"{said}{goes_on}\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the local AWS ends with us
    save(state, STATE)  # with its seed, so that the same command goes on with it
    try:
        _run(state)
    except KeyboardInterrupt:
        kept = "build/chaos.md has the legs so far" if state.done else "no leg was whole"
        console.print(f"\nStopped: {kept}. The same command goes on after the last whole leg.")
        return 130
    except LocalStackError as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 1
    finally:
        if state.done and state.left:
            PAGE.write_text(page(state))
    return _conclude(state)


def _run(state: State) -> None:
    started, before = time.monotonic(), len(state.done)
    with Steps() as steps, steps.step("all legs", total=state.asked.orders) as tell:
        for numbers in state.left:
            tell(done=numbers.start)
            leg = run_leg(state.asked, numbers, tell)
            state.done.append(leg | {"peak_mb": _peak_mb()})
            save(state, STATE)
            each_s = (time.monotonic() - started) / (len(state.done) - before)
            ours, naive = leg["lanes"]["ours"], leg["lanes"]["naive"]
            console.print(
                f"  leg {len(state.done)} of {len(state.asked.legs)}: {leg['orders']} orders, {leg['seconds']} s, "
                f"{ours['dead_workers']} + {naive['dead_workers']} workers killed; wronged: ours {ours['wronged']}, "
                f"naive {naive['wronged']}; about {each_s * len(state.left) / 60:.0f} min left",
                markup=False,
            )


def _conclude(state: State) -> int:
    found = totals(state)
    PAGE.write_text(page(state))
    for violation in found.violations:
        console.print(f"  {violation}", style="red", markup=False)
    if found.too_tame:
        console.print(f"  {found.too_tame}", style="red")
    console.print(f"\n{PAGE.read_text()}", markup=False)
    console.print("The report: build/chaos.md (and build/chaos.json)")
    return 1 if found.violations or found.too_tame else 0


def _peak_mb() -> int:
    """Of the largest process so far, ours or the local AWS."""
    kilo = 1024 if sys.platform == "darwin" else 1  # getrusage(2): bytes there, kilobytes elsewhere
    used = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(used / kilo / 1024)


if __name__ == "__main__":
    sys.exit(main())
