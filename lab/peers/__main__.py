"""`python -m lab.peers compare` writes lab/docs/peers.md. `replay <schedule>` shows one schedule."""

import argparse
import sys

from tests.schedules.__main__ import show_schedule

from lab.peers import cold_start
from lab.peers.report import compare
from lab.peers.scenarios import COMPARED


def main() -> int:
    """Return the exit status: 1 if a schedule breaks an invariant."""
    parser = argparse.ArgumentParser(prog="python -m lab.peers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("compare")
    commands.add_parser("replay").add_argument("schedule")
    chosen = parser.parse_args()
    if chosen.command == "compare":
        return compare()
    return show_schedule(chosen.schedule, COMPARED, cold_start)


if __name__ == "__main__":
    sys.exit(main())
