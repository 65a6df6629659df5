"""The run: traffic to all lanes, kills beside it, and the wait until all is settled."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice

from tools.local.observe import QUEUES, Queues, Tables
from tools.local.running import Running
from tools.progress import Steps, wait_until

from lab.demo.echo import echo
from lab.demo.kills import Kill, Killer
from lab.demo.lanes import OURS, Lane
from lab.demo.plan import Planned, plan, schedule
from lab.demo.sender import Sender, Tally
from lab.faults import plan as faults_plan
from lab.faults.journal import Journal

KILLS = 5  # of each kind of worker, at least
RATE = 30.0  # arrivals per second: keeps all workers busy, and is not over before there was time to kill some
MORE = 20  # orders at a time, while kills are missing
MOST = 400  # orders: by then something is wrong with the killing
MOST_SHARED = 40  # orders that the other lanes get too: what a laptop does in time
SETTLED_WITHIN_S = 240.0
OTHERS_WITHIN_S = 10.0  # after ours: they may never come to rest
COUNTED_EVERY = 5  # looks


@dataclass(frozen=True)
class Done:
    """What was sent, accepted and killed."""

    sent: list[Planned]
    tally: Tally
    kills: list[Kill]


class Run:
    """One run against deployed lanes: `orders` at least, drawn from `seed`, `faults` in percent of first deliveries."""

    def __init__(
        self, running: Running, orders: int, seed: int, faults: float, others: Sequence[Lane], journal: Journal
    ) -> None:
        self._orders = orders
        self._seed = seed
        self._plan = plan(seed)
        self._sent: list[Planned] = []
        self._sender = Sender(running, RATE, others, MOST_SHARED, lambda key: is_due(seed, faults, key))
        self._running = running
        self._rest = {lane: Rest(running, lane) for lane in (OURS, *others)}
        self._journal = journal
        self._killers = [
            Killer(running, "Payment", "payment.charge", self._proves_a_death),
            Killer(running, "Email", "email.send", self._proves_a_death),
        ]

    @property
    def done(self) -> Done:
        """What was done so far."""
        return Done(self._sent, self._sender.tally, [kill for killer in self._killers for kill in killer.kills])

    def __call__(self, steps: Steps) -> None:
        """Raises NotAccepted if an order is refused; TimeoutError if the pipeline does not come to rest."""
        with self._killing():
            self._send(steps, f"{self._orders} orders, each two or three times", self._orders)
            with steps.step("the events so far once more, as a relay may send them") as tell:
                tell(detail=f"{echo(self._running)} events")
            while not self._all_killed() and len(self._sent) < MOST:
                self._settle(steps, "work and kills", enough=self._all_killed)
                if not self._all_killed():
                    self._send(steps, f"{MORE} more orders, as kills are missing", MORE)
        self._settle(steps, "redelivery, until ours is at rest")

    def let_others_finish(self) -> None:
        """Give the other lanes some time more than ours; what they have not done by then counts as stuck."""
        others = [rest for lane, rest in self._rest.items() if lane is not OURS]
        with suppress(TimeoutError):
            wait_until(
                lambda: all(rest.is_empty() for rest in others),
                deadline_s=OTHERS_WITHIN_S,
                what="their queues to be empty",
                every_s=0.5,
            )

    def _proves_a_death(self, record_key: str, pids: Sequence[int]) -> bool:
        order_id = record_key.partition("#")[2]
        return order_id in self._sender.tally.ordinary and order_id in self._journal.at_work(pids)

    def _all_killed(self) -> bool:
        return all(len(killer.kills) >= KILLS for killer in self._killers)

    @contextmanager
    def _killing(self) -> Iterator[None]:
        stop = threading.Event()
        with ThreadPoolExecutor(max_workers=len(self._killers)) as pool:
            running = [pool.submit(killer.run, KILLS, stop) for killer in self._killers]
            try:
                yield
            finally:
                stop.set()
            for future in running:
                future.result()

    def _send(self, steps: Steps, text: str, count: int) -> None:
        orders = list(islice(self._plan, count))
        arrivals = schedule(orders, self._seed + len(self._sent))
        self._sent += orders
        with steps.step(text, total=len(arrivals)) as tell:
            self._sender.send(arrivals, told=lambda: tell(advance=1))

    def _settle(self, steps: Steps, text: str, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait until every accepted order of ours is final and its queues empty, or until it is `enough`."""
        accepted = len(self._sender.tally.accepted)
        with steps.step(text, total=accepted) as tell:
            rest = "every order final and every queue empty"
            wait_until(
                lambda: enough() or self._rest[OURS].reached(accepted, tell),
                deadline_s=SETTLED_WITHIN_S,
                what=rest,
                every_s=0.5,
            )


def is_due(seed: int, faults: float, order_id: str) -> bool:
    """Whether the plan has a fault for the first delivery of an order to any of the steps."""
    return any(faults_plan.plan(seed, faults, step, order_id, 1) for step in faults_plan.OPERATIONS)


class Rest:
    """Whether a lane is at rest. The more orders there are, the more it costs to count them: seldom while any wait."""

    def __init__(self, running: Running, lane: Lane) -> None:
        self._tables = Tables(lane.of(running))
        self._queues = Queues(lane.of(running))
        self._looks = 0
        self._final = 0

    def is_empty(self) -> bool:
        return not any(self._waiting().values())

    def final(self) -> int:
        """How many orders are: the table is read for it, whole."""
        return self._tables.mailed()

    def has_no_dead_letters(self) -> bool:
        return not any(self._queues.depth(f"{name}Dlq").total for name in QUEUES)

    def reached(self, accepted: int, tell: Callable[..., None]) -> bool:
        """Whether `accepted` orders are final and no message is left; `tell` hears how many."""
        waiting = self._waiting()
        at_rest = not any(waiting.values())
        if at_rest or self._looks % COUNTED_EVERY == 0:
            self._final = self.final()
        self._looks += 1
        tell(done=self._final, detail=", ".join(f"{count} {name.lower()}" for name, count in waiting.items()))
        # Looked at again: the last event may have come from the stream while the orders were counted.
        return at_rest and self._final >= accepted and self.is_empty()

    def _waiting(self) -> dict[str, int]:
        return {name: self._queues.depth(name).total for name in QUEUES}
