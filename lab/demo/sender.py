"""Sends what was planned, as real clients would: in parallel, and again with the same key until it is accepted."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from botocore.exceptions import HTTPClientError
from tools.domain import Response, api_client, orders_queue
from tools.local.running import Running

from lab.demo.audit import Expected
from lab.demo.lanes import OURS, Lane
from lab.demo.plan import DECLINES, MISBEHAVES, Planned

CLIENTS = 6
AGAIN = (409, 429, 502, 503, 504)  # what the API says where the same key is safe and worth another try
GIVE_UP_S = 60.0
WILL = {  # what the payment provider does at the first confirmation
    "pm_sandbox_slow": "the provider will charge and be slow",
    "pm_sandbox_error_before": "the provider will answer 500 at first, not charged",
    "pm_sandbox_error_after": "the provider will charge and answer 500",
    "pm_sandbox_drop": "the provider will charge and drop the line",
}


class NotAccepted(Exception):
    """The API answered something that a client can do nothing about, or nothing for too long."""


@dataclass(frozen=True)
class Sent:
    """An arrival of an order, at `at_ms` (epoch milliseconds)."""

    order_id: str
    at_ms: int
    how: str


@dataclass
class Tally:
    """What was accepted, and how often. `replayed`: answers that the API said were replays."""

    accepted: dict[str, Expected] = field(default_factory=dict)  # by key
    ordinary: set[str] = field(default_factory=set)  # ids of orders on whose payment the provider does not misbehave
    shared: list[Expected] = field(default_factory=list)  # those that every lane got
    sends: list[Sent] = field(default_factory=list)
    requests: int = 0
    replayed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, planned: Planned, order_id: str, at_ms: int, replayed: bool = False, shared: bool = False) -> None:
        """Raises NotAccepted if the same key was given two order ids."""
        currency, pays = str(planned.data["currency"]), planned.payment_method != DECLINES
        order = Expected(order_id, planned.email, planned.amount, currency, pays)
        with self.lock:
            is_new = planned.key not in self.accepted
            if self.accepted.setdefault(planned.key, order) != order:
                raise NotAccepted(f"{planned.key} became {self.accepted[planned.key].order_id} and {order_id}")
            if is_new and shared:
                self.shared.append(order)
            self.sends.append(Sent(order_id, at_ms, _how(planned)))
            self.replayed += replayed
            if planned.payment_method not in MISBEHAVES:
                self.ordinary.add(order_id)


def _how(planned: Planned) -> str:
    way = "to the API" if planned.by_api else "straight to the queue"
    return f"{way}; {WILL[planned.payment_method]}" if planned.payment_method in WILL else way


class Sender:
    """`rate`: arrivals per second.

    `others`: lanes beside ours. They have no API: they get the orders that come by the queue, up to `most` of them, and
    first those that a fault is `due` for, by key.
    """

    def __init__(
        self,
        running: Running,
        rate: float,
        others: Sequence[Lane] = (),
        most: int = 0,
        due: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.tally = Tally()
        self._api = api_client(running)
        self._queues = {lane: orders_queue(lane.of(running)) for lane in (OURS, *others)}
        self._rate = rate
        self._others = others
        self._most = most
        self._due = due
        self._shared: set[str] = set()  # keys

    def send(self, arrivals: Sequence[Planned], told: Callable[[], None]) -> None:
        """Send all, at the rate, and return when each is accepted. `told` is called for each."""
        by_queue = dict.fromkeys(planned.key for planned in arrivals if not planned.by_api)
        for key in sorted(by_queue, key=self._due, reverse=True):
            if len(self._shared) < self._most:
                self._shared.add(key)
        with ThreadPoolExecutor(max_workers=CLIENTS) as clients:
            started = time.monotonic()
            sent = []
            for number, planned in enumerate(arrivals):
                time.sleep(max(0.0, started + number / self._rate - time.monotonic()))
                sent.append(clients.submit(self._send, planned))
                sent[-1].add_done_callback(lambda _: told())
            for future in sent:
                future.result()

    def _send(self, planned: Planned) -> None:
        at_ms = time.time_ns() // 1_000_000
        if planned.by_api:
            answer = self._place(planned)
            self.tally.add(planned, answer.headers["location"].rpartition("/")[2], at_ms, answer.replayed)
            return
        shared = planned.key in self._shared
        for lane in (OURS, *self._others) if shared else (OURS,):
            self._queues[lane].put(lane.event(planned.key, planned.data))
        self.tally.add(planned, planned.key, at_ms, shared=shared)

    def _place(self, planned: Planned) -> Response:
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            with self.tally.lock:
                self.tally.requests += 1
            late = time.monotonic() > deadline
            try:
                answer = self._api.place(planned.data, planned.key)
            except HTTPClientError as error:  # no answer: the order may be placed, and the same key is safe
                if late:
                    raise NotAccepted(f"{planned.key}: the API does not answer") from error
                continue
            if answer.status == 202:
                return answer
            if answer.status not in AGAIN or late:
                raise NotAccepted(f"{planned.key}: the API says {answer.status} {answer.body}")
            time.sleep(float(answer.headers.get("retry-after", "0.2")))
