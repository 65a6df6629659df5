"""Send orders to all variants, kill workers meanwhile, and wait until this repository's pipeline is at rest."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice

from tools.local.local_deployment import LocalDeployment
from tools.progress import Steps, wait_until

from lab.demo.evidence import RunResult
from lab.demo.kills import Killer
from lab.demo.plan import PlannedOrder, plan, schedule
from lab.demo.resend_outbox import resend_outbox
from lab.demo.sender import Sender
from lab.demo.settling import SettleCheck
from lab.faults import plan as faults_plan
from lab.faults.journal import Journal
from lab.variants import THIS_REPO, Variant

KILLS = 5  # of each kind of worker, at least
RATE = 30.0  # arrivals per second: keeps all workers busy long enough to be killed
EXTRA_ORDERS = 20  # sent at a time while kills are missing
MAX_ORDERS = 400  # with this many orders and too few kills, the run has failed
MAX_SHARED = 30  # orders that the other variants get as well: the number that a laptop can process in time
SETTLED_WITHIN_S = 240.0
OTHERS_WITHIN_S = 5.0  # after this repository's pipeline is at rest. The other variants may never come to rest.


class Run:
    """One run against deployed variants.

    `orders` is the least number, drawn from `seed`. `faults` is the percentage of first deliveries that meet a fault.
    """

    def __init__(
        self,
        running: LocalDeployment,
        orders: int,
        seed: int,
        faults: float,
        others: Sequence[Variant],
        journal: Journal,
    ) -> None:
        self._orders = orders
        self._seed = seed
        self._plan = plan(seed)
        self._sent: list[PlannedOrder] = []
        self._sender = Sender(running, others, MAX_SHARED, lambda key: is_due(seed, faults, key))
        self._settle_checks = {variant: SettleCheck(running, variant) for variant in (THIS_REPO, *others)}
        self._journal = journal
        self._killers = [
            Killer(running, "Payment", "payment.charge", self._proves_a_kill),
            Killer(running, "Email", "email.send", self._proves_a_kill),
        ]

    @property
    def result(self) -> RunResult:
        """The result so far."""
        kills = [kill for killer in self._killers for kill in killer.kills]
        return RunResult(self._sent, self._sender.tally, kills, self._journal.read())

    def __call__(self, steps: Steps) -> None:
        """Raises NotAccepted if an order is refused, TimeoutError if the pipeline does not come to rest."""
        with self._killing():
            self._send(steps, f"{self._orders} orders, each two or three times", self._orders)
            with steps.step("the events so far once more, as a relay may send them") as tell:
                tell(detail=f"{resend_outbox(self._sender.running)} events")
            while not self._all_killed() and len(self._sent) < MAX_ORDERS:
                self._settle(steps, "work and kills", enough=self._all_killed)
                if not self._all_killed():
                    self._send(steps, f"{EXTRA_ORDERS} more orders, as kills are missing", EXTRA_ORDERS)
        self._settle(steps, "redelivery, until this repository's pipeline is at rest")

    def let_others_finish(self) -> None:
        """Wait for the other variants. An order that is not done by then counts as stuck."""
        others = [check for variant, check in self._settle_checks.items() if variant is not THIS_REPO]
        with suppress(TimeoutError):
            wait_until(
                lambda: all(check.is_empty() for check in others),
                deadline_s=OTHERS_WITHIN_S,
                what="empty queues of the other variants",
                every_s=0.5,
            )

    def _proves_a_kill(self, record_key: str, pids: Sequence[int]) -> bool:
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
        arrivals = schedule(orders, RATE, self._seed + len(self._sent))
        self._sent += orders
        with steps.step(text, total=len(arrivals)) as tell:
            self._sender.send(arrivals, on_sent=lambda: tell(advance=1))

    def _settle(self, steps: Steps, text: str, enough: Callable[[], bool] = lambda: False) -> None:
        """Wait until every accepted order is final and the queues are empty, or until `enough` is true."""
        accepted = len(self._sender.tally.accepted)
        with steps.step(text, total=accepted) as tell:
            wait_until(
                lambda: enough() or self._settle_checks[THIS_REPO].reached(accepted, tell),
                deadline_s=SETTLED_WITHIN_S,
                what="every order final and every queue empty",
                every_s=0.5,
            )


def is_due(seed: int, faults: float, order_id: str) -> bool:
    """Whether the plan has a fault for the first delivery of an order to any step."""
    return any(faults_plan.plan(seed, faults, step, order_id, 1) for step in faults_plan.OPERATIONS)
