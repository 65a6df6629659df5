"""What `make up`, `make down`, `make invoke` and `make logs` call: `python -m tools.local up|down|invoke|logs`."""

import argparse
import json
import re
import sys
from collections.abc import Iterable

from tools.local import logs, processes, state
from tools.local.errors import LocalStackError
from tools.local.ministack import ROOT
from tools.local.running import Running
from tools.local.stack import LocalStack
from tools.progress import console


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
    console.print("  environment  .local/env, e.g.: set -a; . .local/env; set +a")
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


def invoke(name: str) -> int:
    """Run a function with events/<name>.json. Answers 1 if it raised."""
    running = state.running()
    sample = ROOT / "events" / f"{name}.json"
    if not sample.exists():
        names = _one_of(path.stem for path in sample.parent.glob("*.json"))
        raise LocalStackError(f"Which function? FUNCTION={names}: these have a sample in events/")
    answer = running.client("lambda").invoke(FunctionName=_function(running, name), Payload=sample.read_bytes())
    console.print_json(json.dumps(json.load(answer["Payload"])))
    return 1 if answer.get("FunctionError") else 0


def show_logs(name: str) -> None:
    """Print what a function logged, oldest first."""
    running = state.running()
    for line in logs.texts(running, _function(running, name)):
        console.print(line, markup=False, soft_wrap=True)


def _function(running: Running, name: str) -> str:
    """From `payment_sandbox` to what it is called in AWS."""
    suffix = "FunctionName"
    output = "".join(word.capitalize() for word in name.split("_")) + suffix
    if output not in running.outputs:
        known = (key.removesuffix(suffix) for key in running.outputs if key.endswith(suffix))
        names = (re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower() for key in known)
        raise LocalStackError(f"Which function? FUNCTION={_one_of(names)}")
    return running.outputs[output]


def _one_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names))


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"port {port} is not one of 1 to 65535")
    return port


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up").add_argument("--port", type=_port, default=None)
    commands.add_parser("down")
    for command in ("invoke", "logs"):
        commands.add_parser(command).add_argument("function", nargs="?", default="")
    asked = parser.parse_args()
    try:
        match asked.command:
            case "up":
                up(asked.port)
            case "down":
                down()
            case "invoke":
                return invoke(asked.function)
            case "logs":
                show_logs(asked.function)
    except LocalStackError as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
