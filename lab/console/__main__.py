"""`make console`: a local AWS with the pipelines on it and a page to watch and trouble them, until Ctrl-C."""

import argparse
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.local.ministack import LocalStackError, free_port, is_free
from tools.local.running import Running
from tools.local.stack import LocalStack
from tools.progress import Steps, console

from lab.console import LANES
from lab.console.actions import Actions
from lab.console.app import console as page
from lab.console.book import Book
from lab.console.feed import Feed
from lab.console.look import Look
from lab.console.serve import hosts, serve
from lab.contrast import synth_arguments
from lab.contrast.visibility import FUNCTION_OF, bring_back_sooner
from lab.demo.lanes import OURS
from lab.faults.journal import Journal

SEED = 1  # drawn from for nothing: no message meets a fault unless a button armed it


def main() -> int:
    parser = argparse.ArgumentParser(prog="make console", usage="make console [PORT=8080]", description=__doc__)
    parser.add_argument("--port", type=int, default=None, help="of the page; without, a free one")
    port = parser.parse_args().port or free_port()
    if not 1 <= port <= 65535:
        parser.error(f"port {port} is not one of 1 to 65535")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the local AWS ends with us
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    try:
        if not is_free(port):
            raise LocalStackError(f"Port {port} is taken. Name another: PORT=8080, or none to have one found.")
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
    others = [lane for lane in LANES if lane is not OURS]
    with LocalStack(directory, synth=synth_arguments(SEED, 0, journal.path, others)) as running:
        bring_back_sooner(running, LANES)
        start_workers(running)
        book = Book()
        feed = Feed(Look(running, LANES, book, journal))
        console.print(f"\nThe page: http://127.0.0.1:{port}/   (Ctrl-C ends it, and the local AWS with it)")
        serve(page(feed, Actions(running, LANES, book), hosts(port)), feed, port)
        console.print("\nEnding the local AWS.")


def start_workers(running: Running) -> None:
    """One of each step's, in each lane: the first order should not wait for them."""
    names = [lane.of(running).outputs[f"{step}FunctionName"] for lane in LANES for step in FUNCTION_OF.values()]
    client = running.client("lambda")
    with Steps() as steps, steps.step("warm-up of the workers"), ThreadPoolExecutor(len(names)) as at_once:
        list(at_once.map(lambda name: client.invoke(FunctionName=name, Payload=b'{"Records": []}'), names))


if __name__ == "__main__":
    sys.exit(main())
