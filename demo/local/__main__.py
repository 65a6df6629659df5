"""`python -m demo.local up [--port N]` and `python -m demo.local down`: what `make up` and `make down` call."""

import argparse
import sys

from demo.local import processes, state
from demo.local.errors import LocalStackError
from demo.local.stack import LocalStack
from demo.progress import console


def up(port: int | None) -> None:
    found = state.read()
    if found and found.is_alive() and state.OUTPUTS.exists():
        console.print(f"Already up on port {found.port}. To deploy anew: make down up")
        return
    down(quiet=True)  # what an interrupted `make up` left
    stack = LocalStack(state.DIRECTORY, port, on_start=state.record_process)
    running = stack.start()
    state.record_deployment(running)
    console.print(f"\nUp: {running.endpoint}")
    console.print("  outputs      .local/outputs.json")
    console.print("  environment  .local/env, e.g.: set -a; . .local/env")
    console.print("  log          .local/ministack.log")
    console.print("  end it       make down")


def down(quiet: bool = False) -> None:
    found = state.read()
    if found and found.is_alive():
        processes.end_group(found.pid)
        said = f"Down: the local AWS on port {found.port} is gone, and all that was in it."
    elif found:
        said = "The local AWS had ended by itself; its files are cleared."
    else:
        said = "Nothing is up."
    state.clear()
    if not quiet:
        console.print(said)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up").add_argument("--port", type=int, default=None)
    commands.add_parser("down")
    asked = parser.parse_args()
    try:
        up(asked.port) if asked.command == "up" else down()
    except LocalStackError as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
