"""Sends what was planned, as real clients would: in parallel, and again with the same key until it is accepted."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from botocore.exceptions import HTTPClientError

from demo.audit import Expected
from demo.local.running import Running
from demo.plan import DECLINES, MISBEHAVES, Planned
from demo.traffic import Response, local_api, local_queue, order_requested

CLIENTS = 6
AGAIN = (409, 429, 502, 503, 504)  # what the API says where the same key is safe and worth another try
GIVE_UP_S = 60.0


class NotAccepted(Exception):
    """The API answered something that a client can do nothing about, or nothing for too long."""


@dataclass
class Tally:
    """What was accepted, and how often. `replayed`: answers that the API said were replays."""

    accepted: dict[str, Expected] = field(default_factory=dict)  # by key
    ordinary: set[str] = field(default_factory=set)  # ids of orders on whose payment the provider does not misbehave
    requests: int = 0
    replayed: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, planned: Planned, order_id: str, replayed: bool) -> None:
        """Raises NotAccepted if the same key was given two order ids."""
        currency, pays = str(planned.data["currency"]), planned.payment_method != DECLINES
        order = Expected(order_id, planned.email, planned.amount, currency, pays)
        with self.lock:
            if self.accepted.setdefault(planned.key, order) != order:
                raise NotAccepted(f"{planned.key} became {self.accepted[planned.key].order_id} and {order_id}")
            self.replayed += replayed
            if planned.payment_method not in MISBEHAVES:
                self.ordinary.add(order_id)


class Sender:
    """`rate`: arrivals per second."""

    def __init__(self, running: Running, rate: float) -> None:
        self.tally = Tally()
        self._api = local_api(running)
        self._queue = local_queue(running)
        self._rate = rate

    def send(self, arrivals: Sequence[Planned], told: Callable[[], None]) -> None:
        """Send all, at the rate, and return when each is accepted. `told` is called for each."""
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
        if planned.by_api:
            answer = self._place(planned)
            self.tally.add(planned, answer.headers["location"].rpartition("/")[2], answer.replayed)
        else:
            self._queue.put(order_requested(planned.key, planned.data, f"c-{planned.key}"))
            self.tally.add(planned, planned.key, replayed=False)

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
