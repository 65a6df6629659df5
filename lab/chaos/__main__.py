"""`make chaos`: a long run with kills, three copies of each order, DLQ replays. Writes build/chaos.json and .md.

A run that was interrupted continues when it is started again. Exit status 1 if this repository's pipeline is not as
promised, or if too few workers died.
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
from lab.chaos.state import RunParameters, State, resume, save, set_aside
from lab.chaos.totals import totals

STATE = ROOT / "build" / "chaos.json"
PAGE = ROOT / "build" / "chaos.md"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make chaos", usage="make chaos [ORDERS=10000] [SEED=1] [FAULTS=10]", description=__doc__
    )
    parser.add_argument("--orders", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run; a random seed is printed")
    parser.add_argument("--faults", type=float, default=10, help="percentage of first deliveries that meet a fault")
    parameters = parser.parse_args()
    if parameters.orders < 1:
        parser.error("needs at least one order")
    if not 8 <= parameters.faults <= 50:
        parser.error(
            "needs faults of 8 to 50 percent: with fewer, too few workers die; with more, the run does not end in time"
        )
    state = resume(STATE, parameters.orders, parameters.faults, parameters.seed)
    if state is None:
        seed = parameters.seed if parameters.seed is not None else random.randrange(10_000)
        state = State(RunParameters(parameters.orders, seed, parameters.faults))
        if aside := set_aside(STATE):
            console.print(
                f"An unfinished run with other orders, seed, faults or versions is now build/{aside.name}. "
                f"To continue it, rename it to build/{STATE.name}.\n"
            )
    header = f"{state.parameters.orders} orders, SEED={state.parameters.seed}, FAULTS={state.parameters.faults:g}"
    goes_on = f", continuing after leg {len(state.done)} of {len(state.parameters.legs)}" if state.done else ""
    console.print(f"{header}{goes_on}\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the local AWS too
    save(state, STATE)  # with its seed, so that the same command continues it
    try:
        _run(state)
    except KeyboardInterrupt:
        leg_note = "build/chaos.md has the complete legs" if state.done else "no leg was complete"
        console.print(f"\nStopped: {leg_note}. The same command continues after the last complete leg.")
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
    with Steps() as steps, steps.step("all legs", total=state.parameters.orders) as tell:
        for numbers in state.left:
            tell(done=numbers.start)
            leg = run_leg(state.parameters, numbers, tell)
            state.done.append(leg | {"peak_mb": _peak_mb()})
            save(state, STATE)
            each_s = (time.monotonic() - started) / (len(state.done) - before)
            this_repo, naive = leg["variants"]["this-repo"], leg["variants"]["naive"]
            console.print(
                f"  leg {len(state.done)} of {len(state.parameters.legs)}: {leg['orders']} orders, {leg['seconds']} s, "
                f"{this_repo['dead_workers']} + {naive['dead_workers']} workers killed; failed orders: "
                f"this repository {this_repo['failed_orders']}, "
                f"naive {naive['failed_orders']}; about {each_s * len(state.left) / 60:.0f} min left",
                markup=False,
            )


def _conclude(state: State) -> int:
    sums = totals(state)
    PAGE.write_text(page(state))
    for violation in sums.violations:
        console.print(f"  {violation}", style="red", markup=False)
    if sums.too_few_deaths:
        console.print(f"  {sums.too_few_deaths}", style="red")
    console.print(f"\n{PAGE.read_text()}", markup=False)
    console.print("The report: build/chaos.md (and build/chaos.json)")
    return 1 if sums.violations or sums.too_few_deaths else 0


def _peak_mb() -> int:
    """Peak memory in MB of the largest process so far, the local AWS included."""
    kilo = 1024 if sys.platform == "darwin" else 1  # getrusage(2): bytes there, kilobytes elsewhere
    used = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return round(used / kilo / 1024)


if __name__ == "__main__":
    sys.exit(main())
