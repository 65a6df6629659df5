"""`make up`, `make down`, `make invoke` and `make logs`: `python -m tools.local up|down|invoke|logs`."""

import argparse
import json
import re
import sys
from collections.abc import Iterable

from tools.local import logs, processes, state
from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import ROOT, LocalStackError
from tools.local.stack import LocalStack
from tools.progress import console


def up(port: int | None) -> None:
    """Start a local AWS, deploy the application to it, and leave it running."""
    recorded = state.read()
    if recorded and recorded.is_alive() and state.OUTPUTS.exists():
        console.print(f"Already up on port {recorded.port}. To deploy again: make down up")
        return
    down(quiet=True)  # an interrupted `make up` may have left a process
    stack = LocalStack(state.DIRECTORY, port, on_start=state.record_process)
    running = stack.start()
    state.record_deployment(running)
    console.print(f"\nUp: {running.endpoint}")
    console.print("  outputs      .local/outputs.json")
    console.print("  environment  .local/env, to load it: set -a; . .local/env; set +a")
    console.print("  log          .local/ministack.log")
    console.print("  an order     make order")
    console.print("  stop it      make down")


def down(quiet: bool = False) -> None:
    """Kill the recorded local AWS and delete its files."""
    recorded = state.read()
    if recorded and recorded.is_alive():
        processes.end_group(recorded.pid)
        text = f"Down: the local AWS on port {recorded.port} is gone, with all its data."
    elif recorded:
        text = "The local AWS had ended already. Its files are deleted."
    else:
        text = "Nothing is up."
    state.clear()
    if not quiet:
        console.print(text)


def invoke(name: str) -> int:
    """Invoke a function with events/<name>.json and print its result. Returns 1 if the function raised an error."""
    running = state.running()
    sample = ROOT / "events" / f"{name}.json"
    samples = [path.stem for path in sample.parent.glob("*.json")]
    if name not in samples:
        raise LocalStackError(f"Which function? FUNCTION={_choice(samples)}: these have a sample in events/")
    answer = running.client("lambda").invoke(FunctionName=_function_name(running, name), Payload=sample.read_bytes())
    console.print_json(json.dumps(json.load(answer["Payload"])))
    return 1 if answer.get("FunctionError") else 0


def show_logs(name: str) -> None:
    """Print all lines that a function logged, oldest first."""
    running = state.running()
    for line in logs.texts(running, _function_name(running, name)):
        console.print(line, markup=False, soft_wrap=True)


def _function_name(running: LocalDeployment, name: str) -> str:
    """Return the name in AWS of a function such as `payment_sandbox`."""
    suffix = "FunctionName"
    output = "".join(word.capitalize() for word in name.split("_")) + suffix
    if output not in running.outputs:
        titles = (key.removesuffix(suffix) for key in running.outputs if key.endswith(suffix))
        names = (re.sub(r"(?<!^)(?=[A-Z])", "_", title).lower() for title in titles)
        raise LocalStackError(f"Which function? FUNCTION={_choice(names)}")
    return running.outputs[output]


def _choice(names: Iterable[str]) -> str:
    return "|".join(sorted(names))


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def main() -> int:
    """Run one command. Returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up").add_argument("--port", type=_port, default=None)
    commands.add_parser("down")
    for command in ("invoke", "logs"):
        commands.add_parser(command).add_argument("function", nargs="?", default="")
    arguments = parser.parse_args()
    try:
        match arguments.command:
            case "up":
                up(arguments.port)
            case "down":
                down()
            case "invoke":
                return invoke(arguments.function)
            case "logs":
                show_logs(arguments.function)
    except LocalStackError as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
