"""One leg: some thousand orders on a local AWS of their own. Only the numbers are kept."""

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES
from tools.local.stack import LocalStack
from tools.progress import Steps, wait_until

from lab.chaos.replayer import Replayer
from lab.chaos.state import RunParameters
from lab.demo.arrivals import DisorderedQueue
from lab.demo.evidence import RunResult, collect, reports
from lab.demo.plan import plan
from lab.demo.resend_outbox import resend_outbox
from lab.demo.sender import Sender
from lab.demo.settling import SettleCheck
from lab.demo.variant_report import VariantReport
from lab.faults.journal import Journal
from lab.variants import NAIVE, THIS_REPO, synth_arguments
from lab.variants.visibility import shorten_visibility

VARIANTS = (THIS_REPO, NAIVE)
COPIES = 3
RATE = 10  # arrivals a second, about the throughput of each variant
MAX_WAITING = 300  # messages in an Orders queue. With more, sending pauses: deep queues make the emulator slow.
RECEIVES = 2  # until a message is moved to a DLQ, so that the replayer has messages
SETTLED_WITHIN_S, PER_ORDER_S = 300.0, 4.0  # limits for a leg and for each of its orders
NO_PROGRESS_S = 60.0  # the naive variant may never come to rest: give up after this time without one more final order

Tell = Callable[..., None]


class NoProgress:
    """Detects a number that has not changed for `seconds`. `now` returns the time in seconds."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._last: int | None = None
        self._since = now()

    def at(self, number: int) -> bool:
        """Record a number. Returns whether it has been the same for long enough."""
        if number != self._last:
            self._last, self._since = number, self._now()
        return self._now() - self._since >= self._seconds


def run_leg(parameters: RunParameters, numbers: range, tell: Tell) -> dict[str, Any]:
    """Run the orders with these `numbers` of the plan. Raises LocalStackError if the local AWS does not start."""
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    try:
        journal = Journal(directory / "journal.jsonl")
        synth = synth_arguments(parameters.seed, parameters.faults, journal.path, variants=VARIANTS)
        tell(detail="deploying")
        with LocalStack(directory, synth=synth, steps=Steps(Console(quiet=True))) as running:
            leg = Leg(running, parameters.seed, numbers, journal)
            leg.run(tell)
            return leg.numbers() | {"seconds": round(time.monotonic() - started)}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Leg:
    """Sends orders to both variants and waits until this repository's pipeline is at rest."""

    def __init__(self, running: LocalDeployment, seed: int, numbers: range, journal: Journal) -> None:
        self._running = running
        self._first = numbers.start
        self._seed = seed
        self._journal = journal
        self._orders = [
            replace(order, by_api=False, arrivals=COPIES) for order in islice(plan(seed), numbers.start, numbers.stop)
        ]
        self._sender = Sender(running, [NAIVE], max_shared=len(self._orders))
        self._replayer = Replayer(running, VARIANTS, RECEIVES)
        self._settle_checks = {variant: SettleCheck(running, variant) for variant in VARIANTS}
        self._late = ""

    def run(self, tell: Tell) -> None:
        """Send, replay and wait. A wait that fails is a violation in `numbers`."""
        shorten_visibility(self._running, VARIANTS)
        self._lower_max_receives()
        with self._replaying():
            tell(detail="sending")
            arrivals = DisorderedQueue(copies=COPIES).arrivals(self._orders, RATE, self._seed + self._first)
            self._sender.send(arrivals, on_sent=lambda: None, pause_s=self._pause_s)
            resend_outbox(self._running)
            self._settle(tell)

    def numbers(self) -> dict[str, Any]:
        """The numbers of both variants, second emails with their causes, and violations."""
        result = RunResult(self._orders, self._sender.tally, deliveries=self._journal.read())
        this_repo, naive = reports(self._running, result, collect(self._running), VARIANTS)
        return {
            "first": self._first + 1,
            "orders": this_repo.orders,
            "variants": {each.name: self._numbers_of(each) for each in (this_repo, naive)},
            "second_mails": dict(this_repo.explained_emails),
            "violations": [*this_repo.violations, *([self._late] if self._late else [])],
        }

    def _numbers_of(self, report: VariantReport) -> Mapping[str, int]:
        return {
            "orders": report.orders,
            "deliveries": report.deliveries,
            "cut_short": report.cut_short,
            "dead_workers": report.dead_workers,
            "faults": sum(sum(kinds.values()) for kinds in report.faults.values()),
            "replayed": self._replayer.replayed[report.name],
            **report.counts,
            "failed_orders": report.failed_orders,
        }

    def _lower_max_receives(self) -> None:
        sqs = self._running.client("sqs")
        for variant in VARIANTS:
            for name in QUEUES:
                url = variant.of(self._running).outputs[f"{name}QueueUrl"]
                attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]
                policy = json.loads(attributes["RedrivePolicy"]) | {"maxReceiveCount": RECEIVES}
                sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(policy)})

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        stop = threading.Event()
        with ThreadPoolExecutor(max_workers=1) as pool:
            replaying = pool.submit(self._replayer.run, stop)
            try:
                yield
            finally:
                stop.set()
            replaying.result()

    def _pause_s(self, number: int) -> float:
        """Block, once a second, until no variant has too many orders waiting. Returns the seconds.

        After one wait that failed, do not wait again.
        """
        begun = time.monotonic()
        if number % RATE == 0 and not self._late:
            self._wait(
                lambda: all(check.orders_waiting() <= MAX_WAITING for check in self._settle_checks.values()),
                deadline_s=SETTLED_WITHIN_S,
                what=f"at most {MAX_WAITING} orders waiting in each variant",
            )
        return time.monotonic() - begun

    def _wait(self, look: Callable[[], bool], *, deadline_s: float, what: str) -> None:
        try:
            wait_until(look, deadline_s=deadline_s, what=what, every_s=1.0)
        except TimeoutError as error:
            self._late = str(error)

    def _settle(self, tell: Tell) -> None:
        def count(done: int, detail: str) -> None:
            tell(done=self._first + done, detail=detail)

        allowed_s = SETTLED_WITHIN_S + PER_ORDER_S * len(self._orders)
        this_repo, naive = (self._settle_checks[variant] for variant in VARIANTS)
        self._wait(
            lambda: this_repo.reached(len(self._orders), count) and this_repo.has_no_dead_letters(),
            deadline_s=allowed_s,
            what="every order of this repository final, its queues and DLQs empty",
        )
        no_progress = NoProgress(NO_PROGRESS_S, time.monotonic)
        with suppress(TimeoutError):  # an order that is not done by then counts as stuck
            wait_until(
                lambda: naive.is_empty() or no_progress.at(naive.final()),
                deadline_s=allowed_s,
                what="the naive variant to be empty, or to make no progress",
                every_s=2.0,
            )
