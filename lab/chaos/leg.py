"""One leg: some thousand orders on a local AWS of their own, judged, and all but the judgement thrown away."""

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
from tools.domain import orders_queue
from tools.local.observe import QUEUES, Queues
from tools.local.running import Running
from tools.local.stack import LocalStack
from tools.progress import Steps, wait_until

from lab.chaos.replay import Replayer
from lab.chaos.state import Asked
from lab.contrast import synth_arguments
from lab.contrast.visibility import bring_back_sooner
from lab.demo.audit import audit
from lab.demo.comparison import LaneReport, report
from lab.demo.echo import echo
from lab.demo.evidence import collect, told
from lab.demo.lanes import NAIVE, OURS
from lab.demo.plan import Planned, plan
from lab.demo.run import Done, Rest
from lab.demo.sender import CLIENTS, Tally
from lab.faults.deliveries import Delivery, Unruly
from lab.faults.journal import Journal

LANES = (OURS, NAIVE)
COPIES = 3
RATE = 10.0  # arrivals a second, in each lane: about what it does
MOST_WAITING = 300  # messages in an Orders queue: no more are sent meanwhile, as deep queues make the emulator slow
RECEIVES = 2  # until a message is moved to a DLQ, so that there is something to replay
SETTLED_WITHIN_S, AND_EACH_S = 300.0, 4.0  # a leg, and each of its orders
STALLED_S = 60.0  # without an order more that is final, after ours: the others may never come to rest

Tell = Callable[..., None]


class Stalled:
    """Whether a number has been the same for `seconds`, by `now`, in seconds."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._last: int | None = None
        self._since = now()

    def at(self, number: int) -> bool:
        """Whether it has, with this look."""
        if number != self._last:
            self._last, self._since = number, self._now()
        return self._now() - self._since >= self._seconds


def run_leg(asked: Asked, numbers: range, tell: Tell) -> dict[str, Any]:
    """Run the orders with these `numbers` of the plan. Raises LocalStackError if the local AWS can not be had."""
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="effectively-once-"))
    try:
        journal = Journal(directory / "journal.jsonl")
        synth = synth_arguments(asked.seed, asked.faults, journal.path, lanes=LANES)
        tell(detail="deploying")
        with LocalStack(directory, synth=synth, steps=Steps(Console(quiet=True))) as running:
            leg = Leg(running, asked.seed, numbers, journal)
            leg.run(tell)
            return leg.found() | {"seconds": round(time.monotonic() - started)}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Leg:
    """Orders to all lanes, and the wait until ours is at rest."""

    def __init__(self, running: Running, seed: int, numbers: range, journal: Journal) -> None:
        self._running = running
        self._numbers = numbers
        self._journal = journal
        self._seed = seed
        drawn = islice(plan(seed), numbers.start, numbers.stop)
        self._orders = [replace(order, by_api=False, arrivals=COPIES) for order in drawn]
        self._tally = Tally()
        self._queues = {lane: orders_queue(lane.of(running)) for lane in LANES}
        self._depths = [Queues(lane.of(running)) for lane in LANES]
        self._replayer = Replayer(running, LANES, RECEIVES)
        self._rest = {lane: Rest(running, lane) for lane in LANES}
        self._late = ""

    def run(self, tell: Tell) -> None:
        bring_back_sooner(self._running, LANES)
        self._park_early()
        with self._replaying():
            tell(detail="sending")
            self._send(Unruly(copies=COPIES).deliveries(self._orders, RATE, self._seed + self._numbers.start))
            echo(self._running)
            self._settle(tell)

    def found(self) -> dict[str, Any]:
        """What the witnesses say, in numbers; and each thing that is wrong with ours, or needs an explanation."""
        evidence = collect(self._running)
        done = Done(self._orders, self._tally, [])
        deliveries = self._journal.read()
        expected = list(self._tally.accepted.values())
        verdict = audit(expected, evidence)
        ours = report(
            OURS,
            expected,
            told(self._running, OURS, done, deliveries),
            second_mails=verdict.second_mails,
            violations=[f"{each.order_id or '-'}: {each.what}" for each in verdict.violations],
        )
        naive = report(NAIVE, expected, told(self._running, NAIVE, done, deliveries))
        return {
            "first": self._numbers.start + 1,
            "orders": len(expected),
            "lanes": {lane.name: self._numbers_of(lane) for lane in (ours, naive)},
            "second_mails": dict(ours.explained),
            "violations": [*ours.violations, *([self._late] if self._late else [])],
        }

    def _numbers_of(self, lane: LaneReport) -> Mapping[str, int]:
        return {
            "orders": lane.orders,
            "deliveries": lane.deliveries,
            "cut_short": lane.cut_short,
            "dead_workers": lane.dead_workers,
            "faults": sum(sum(kinds.values()) for kinds in lane.faults.values()),
            "replayed": self._replayer.replayed[lane.name],
            **lane.counts,
            "wronged": lane.wronged,
        }

    def _park_early(self) -> None:
        sqs = self._running.client("sqs")
        for lane in LANES:
            for name in QUEUES:
                url = lane.of(self._running).outputs[f"{name}QueueUrl"]
                found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]
                policy = json.loads(found["RedrivePolicy"]) | {"maxReceiveCount": RECEIVES}
                sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": json.dumps(policy)})

    @contextmanager
    def _replaying(self) -> Iterator[None]:
        stop = threading.Event()
        with ThreadPoolExecutor(max_workers=1) as beside:
            replaying = beside.submit(self._replayer.run, stop)
            try:
                yield
            finally:
                stop.set()
            replaying.result()

    def _send(self, deliveries: list[Delivery[Planned]]) -> None:
        started = time.monotonic()
        with ThreadPoolExecutor(max_workers=CLIENTS) as clients:
            sent = []
            for number, delivery in enumerate(deliveries):
                if number % RATE == 0:
                    started += self._held_back_s()
                time.sleep(max(0.0, started + delivery.at_s - time.monotonic()))
                sent.append(clients.submit(self._put, delivery.message))
            for future in sent:
                future.result()

    def _held_back_s(self) -> float:
        """Seconds that it took until no lane had more to begin with than it should; tried in vain, it is told, once."""
        begun = time.monotonic()
        if not self._late:
            self._wait(
                lambda: all(queues.depth("Orders").visible <= MOST_WAITING for queues in self._depths),
                deadline_s=SETTLED_WITHIN_S,
                what=f"each lane to have no more than {MOST_WAITING} orders waiting",
            )
        return time.monotonic() - begun

    def _wait(self, look: Callable[[], bool], *, deadline_s: float, what: str) -> None:
        try:
            wait_until(look, deadline_s=deadline_s, what=what, every_s=1.0)
        except TimeoutError as late:
            self._late = str(late)

    def _put(self, order: Planned) -> None:
        at_ms = time.time_ns() // 1_000_000
        for lane in LANES:
            self._queues[lane].put(lane.event(order.key, order.data))
        self._tally.add(order, order.key, at_ms, shared=True)

    def _settle(self, tell: Tell) -> None:
        def count(done: int, detail: str) -> None:
            tell(done=self._numbers.start + done, detail=detail)

        allowed_s = SETTLED_WITHIN_S + AND_EACH_S * len(self._orders)
        self._wait(
            lambda: self._rest[OURS].reached(len(self._orders), count) and self._rest[OURS].has_no_dead_letters(),
            deadline_s=allowed_s,
            what="every order of ours final, its queues and DLQs empty",
        )
        stalled = Stalled(STALLED_S, time.monotonic)
        with suppress(TimeoutError):  # what it has not done by then counts as stuck
            wait_until(
                lambda: self._rest[NAIVE].is_empty() or stalled.at(self._rest[NAIVE].final()),
                deadline_s=allowed_s,
                what="the naive lane to be empty, or to get no further",
                every_s=2.0,
            )
