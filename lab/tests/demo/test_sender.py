"""Every variant gets the same orders as often, up to a limit. Only this repository gets orders by the API."""

from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import pytest
from tools.domain import Response

from lab.demo import sender as senders
from lab.demo.plan import plan, schedule
from lab.demo.sender import NotAccepted, Sender, Tally
from lab.variants import NAIVE, POWERTOOLS, THIS_REPO

ORDERS = list(islice(plan(seed=7), 20))
BY_QUEUE = [order for order in ORDERS if not order.by_api]
FAST = 1e9  # arrivals a second


class Queue:
    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []

    def put(self, event: dict[str, Any]) -> None:
        self.got.append(event)


class Api:
    def place(self, _: Any, key: str) -> Response:
        return Response(202, {"location": f"/orders/api_{key}"}, None)


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> list[Queue]:
    made = [Queue(), Queue(), Queue()]
    left = cycle(made)
    monkeypatch.setattr(senders, "orders_queue", lambda _: next(left))
    monkeypatch.setattr(senders, "api_client", lambda _: Api())
    monkeypatch.setattr(type(THIS_REPO), "of", lambda *_: None)
    return made


def send(most: int, due: str = "") -> Tally:
    running: Any = None
    sender = Sender(running, [NAIVE, POWERTOOLS], most, lambda key: key == due)
    sender.send(schedule(ORDERS, FAST, seed=7), on_sent=lambda: None)
    return sender.tally


def ids(queue: Queue) -> list[str]:
    return sorted(event["data"]["order_id"] for event in queue.got)


def test_all_variants_get_the_same_orders_as_often(queues: list[Queue]) -> None:
    tally = send(most=100)
    this_repo, naive, powertools = map(ids, queues)
    assert this_repo == naive == powertools == sorted(order.key for order in BY_QUEUE for _ in range(order.arrivals))
    assert {order.order_id for order in tally.shared} == {order.key for order in BY_QUEUE}
    assert len(tally.shared) == len(BY_QUEUE)


def test_the_same_key_with_two_orders_is_no_run() -> None:
    tally = Tally()
    tally.add(ORDERS[0], "api_1", at_ms=0)
    with pytest.raises(NotAccepted, match="became api_1 and api_2"):
        tally.add(replace(ORDERS[0]), "api_2", at_ms=0)
