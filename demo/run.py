"""The run: traffic, kills beside it, and the wait until all is settled."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from demo.echo import Echo
from demo.kills import Kill, Killer
from demo.local.running import Running
from demo.plan import Planned, plan, schedule
from demo.progress import Steps
from demo.sender import Sender, Tally
from demo.waiting import wait_until
from demo.witness import QUEUES, Queues, Tables

KILLS = 5  # of each kind of worker, at least
RATE = 30.0  # arrivals per second: keeps all workers busy, and is not over before there was time to kill some
MORE = 20  # orders at a time, while kills are missing
MOST = 400  # orders: by then something is wrong with the killing
SETTLED_WITHIN_S = 240.0


@dataclass(frozen=True)
class Done:
    """What was sent, accepted and killed."""

    sent: list[Planned]
    tally: Tally
    kills: list[Kill]


class Run:
    """One run against a deployed app: `orders` at least, drawn from `seed`."""

    def __init__(self, running: Running, orders: int, seed: int) -> None:
        self._orders = orders
        self._seed = seed
        self._plan = plan(seed)
        self._sent: list[Planned] = []
        self._sender = Sender(running, RATE)
        self._echo = Echo(running)
        self._tables = Tables(running)
        self._queues = Queues(running)
        self._killers = [
            Killer(running, "Payment", "payment.charge", self._pays_without_a_fault),
            Killer(running, "Email", "email.send"),
        ]

    @property
    def done(self) -> Done:
        """What was done so far."""
        return Done(self._sent, self._sender.tally, [kill for killer in self._killers for kill in killer.kills])

    def __call__(self, steps: Steps) -> None:
        """Raises NotAccepted if an order is refused; TimeoutError if the pipeline does not come to rest."""
        with self._killing():
            self._send(steps, f"{self._orders} orders, each two or three times", self._orders)
            with steps.step("all events once more, as a relay may send them") as tell:
                tell(detail=f"{self._echo.again()} events")
            while not self._all_killed() and len(self._sent) < MOST:
                self._settle(steps, "work and kills", enough=self._all_killed)
                if not self._all_killed():
                    self._send(steps, f"{MORE} more orders, as kills are missing", MORE)
        self._settle(steps, "redelivery, until all is at rest")

    def _pays_without_a_fault(self, record_key: str) -> bool:
        return record_key.partition("#")[2] in self._sender.tally.ordinary

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
        """Wait until every accepted order is final and every queue empty, or until it is `enough`."""
        accepted = len(self._sender.tally.accepted)
        with steps.step(text, total=accepted) as tell:

            def settled() -> bool:
                final = sum("mailed_at" in row for row in self._tables.orders())
                waiting = {name: self._queues.depth(name).total for name in QUEUES}
                tell(done=final, detail=", ".join(f"{count} {name.lower()}" for name, count in waiting.items()))
                return enough() or (final >= accepted and not any(waiting.values()))

            rest = "every order final and every queue empty"
            wait_until(settled, deadline_s=SETTLED_WITHIN_S, what=rest, every_s=0.3)
