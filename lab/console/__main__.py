"""`make console`: a local AWS with both pipelines, and a page that shows and disturbs them, until Ctrl-C."""

import argparse
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import LocalStackError, free_port, is_free
from tools.local.stack import LocalStack
from tools.progress import Steps, console

from lab.console import VARIANTS
from lab.console.actions import Actions
from lab.console.app import console as page
from lab.console.event_stream import EventStream
from lab.console.sent_orders import SentOrders
from lab.console.serve import hosts, serve
from lab.console.snapshot import SnapshotReader
from lab.faults.journal import Journal
from lab.variants import THIS_REPO, synth_arguments
from lab.variants.visibility import FUNCTION_OF, shorten_visibility

SEED = 1  # unused: with 0 percent, a message meets a fault only if a button armed it


def main() -> int:
    parser = argparse.ArgumentParser(prog="make console", usage="make console [PORT=8080]", description=__doc__)
    parser.add_argument("--port", type=int, default=None, help="port of the page; a free port without it")
    port = parser.parse_args().port or free_port()
    if not 1 <= port <= 65535:
        parser.error(f"needs a port of 1 to 65535, not {port}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the local AWS too
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    try:
        if not is_free(port):
            raise LocalStackError(f"Port {port} is in use. Set another PORT, or none for a free port.")
        _show(port, directory)
    except LocalStackError as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("\nInterrupted.")
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def _show(port: int, directory: Path) -> None:
    journal = Journal(directory / "deliveries.jsonl")
    others = [variant for variant in VARIANTS if variant is not THIS_REPO]
    with LocalStack(directory, synth=synth_arguments(SEED, 0, journal.path, others)) as running:
        shorten_visibility(running, VARIANTS)
        start_workers(running)
        sent_orders = SentOrders()
        event_stream = EventStream(SnapshotReader(running, VARIANTS, sent_orders, journal))
        console.print(f"\nThe page: http://127.0.0.1:{port}/   (Ctrl-C ends it, and the local AWS with it)")
        serve(page(event_stream, Actions(running, VARIANTS, sent_orders), hosts(port)), event_stream, port)
        console.print("\nEnding the local AWS.")


def start_workers(running: LocalDeployment) -> None:
    """Start one worker of each step in each variant, so that the first order does not wait."""
    names = [
        variant.of(running).outputs[f"{step}FunctionName"] for variant in VARIANTS for step in FUNCTION_OF.values()
    ]
    client = running.client("lambda")
    with Steps() as steps, steps.step("warm-up of the workers"), ThreadPoolExecutor(len(names)) as at_once:
        list(at_once.map(lambda name: client.invoke(FunctionName=name, Payload=b'{"Records": []}'), names))


if __name__ == "__main__":
    sys.exit(main())
