"""Send planned orders as real clients do: in parallel, and again with the same key until the API accepts them."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from botocore.exceptions import HTTPClientError
from tools.domain import Response, api_client, orders_queue
from tools.local.local_deployment import LocalDeployment

from lab.demo.plan import DECLINES, MISBEHAVES, Arrival, PlannedOrder
from lab.variants import THIS_REPO, ExpectedOrder, Variant

CLIENTS = 6
RETRYABLE = (409, 429, 502, 503, 504)  # a request with the same key is safe after these statuses
GIVE_UP_S = 60.0
PROVIDER_WILL = {  # at the first confirmation
    "pm_sandbox_slow": "the provider will charge slowly",
    "pm_sandbox_error_before": "the provider will answer 500 and not charge",
    "pm_sandbox_error_after": "the provider will charge and answer 500",
    "pm_sandbox_drop": "the provider will charge and drop the connection",
}


class NotAccepted(Exception):
    """The API refused an order, or answered nothing for too long."""


@dataclass(frozen=True)
class SentMessage:
    """One arrival of an order, at `at_ms` (epoch milliseconds)."""

    order_id: str
    at_ms: int
    how: str


@dataclass
class Tally:
    """Accepted orders and arrivals. `replayed` counts the answers that the API marked as replays."""

    accepted: dict[str, ExpectedOrder] = field(default_factory=dict)  # by key
    ordinary: set[str] = field(default_factory=set)  # ids of orders whose payment the provider handles normally
    shared: list[ExpectedOrder] = field(default_factory=list)  # orders that every variant got
    sends: list[SentMessage] = field(default_factory=list)
    requests: int = 0
    replayed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self, planned: PlannedOrder, order_id: str, at_ms: int, replayed: bool = False, shared: bool = False
    ) -> None:
        """Record an arrival. Raises NotAccepted if one key got two order ids."""
        currency, pays = str(planned.data["currency"]), planned.payment_method != DECLINES
        order = ExpectedOrder(order_id, planned.email, planned.amount, currency, pays)
        with self.lock:
            is_new = planned.key not in self.accepted
            if self.accepted.setdefault(planned.key, order) != order:
                raise NotAccepted(f"{planned.key} became {self.accepted[planned.key].order_id} and {order_id}")
            if is_new and shared:
                self.shared.append(order)
            self.sends.append(SentMessage(order_id, at_ms, _how(planned)))
            self.replayed += replayed
            if planned.payment_method not in MISBEHAVES:
                self.ordinary.add(order_id)


def _how(planned: PlannedOrder) -> str:
    way = "to the API" if planned.by_api else "to the queue"
    will = PROVIDER_WILL.get(planned.payment_method)
    return f"{way}; {will}" if will else way


class Sender:
    """Sends orders to this repository's pipeline and to `others`.

    The other variants have no API. They get the orders that come by the queue, up to `max_shared` of them, and first
    the orders for which `is_due` says that the plan has a fault.
    """

    def __init__(
        self,
        running: LocalDeployment,
        others: Sequence[Variant] = (),
        max_shared: int = 0,
        is_due: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.tally = Tally()
        self.running = running
        self._api = api_client(running)
        self._queues = {variant: orders_queue(variant.of(running)) for variant in (THIS_REPO, *others)}
        self._max_shared = max_shared
        self._is_due = is_due
        self._shared: set[str] = set()  # keys

    def send(
        self, arrivals: Sequence[Arrival], on_sent: Callable[[], None], pause_s: Callable[[int], float] = lambda _: 0.0
    ) -> None:
        """Send all orders at their times. Returns when each is accepted.

        Calls `on_sent` after each. `pause_s` may block before an arrival, given its number, and returns the seconds.
        """
        by_queue = dict.fromkeys(arrival.order.key for arrival in arrivals if not arrival.order.by_api)
        for key in sorted(by_queue, key=self._is_due, reverse=True):
            if len(self._shared) < self._max_shared:
                self._shared.add(key)
        with ThreadPoolExecutor(max_workers=CLIENTS) as clients:
            started = time.monotonic()
            futures = []
            for number, arrival in enumerate(arrivals):
                started += pause_s(number)
                time.sleep(max(0.0, started + arrival.at_s - time.monotonic()))
                futures.append(clients.submit(self._send, arrival.order))
                futures[-1].add_done_callback(lambda _: on_sent())
            for future in futures:
                future.result()

    def _send(self, planned: PlannedOrder) -> None:
        at_ms = time.time_ns() // 1_000_000
        if planned.by_api:
            answer = self._place(planned)
            self.tally.add(planned, answer.headers["location"].rpartition("/")[2], at_ms, answer.replayed)
            return
        shared = planned.key in self._shared
        for variant, queue in self._queues.items():
            if shared or variant is THIS_REPO:
                queue.put(variant.event(planned.key, planned.data))
        self.tally.add(planned, planned.key, at_ms, shared=shared)

    def _place(self, planned: PlannedOrder) -> Response:
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            with self.tally.lock:
                self.tally.requests += 1
            late = time.monotonic() > deadline
            try:
                answer = self._api.place(planned.data, planned.key)
            except HTTPClientError as error:  # no answer: the order may be accepted, and the same key is safe
                if late:
                    raise NotAccepted(f"{planned.key}: the API does not answer") from error
                continue
            if answer.status == 202:
                return answer
            if answer.status not in RETRYABLE or late:
                raise NotAccepted(f"{planned.key}: the API answers {answer.status} {answer.body}")
            time.sleep(float(answer.headers.get("retry-after", "0.2")))
