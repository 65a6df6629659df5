"""Every lane gets the same orders as often, up to a stated number; by the API only ours."""

from dataclasses import replace
from itertools import cycle, islice
from typing import Any

import pytest
from tools.domain import Response

from lab.demo import sender as senders
from lab.demo.lanes import NAIVE, OURS, POWERTOOLS
from lab.demo.plan import plan, schedule
from lab.demo.sender import NotAccepted, Sender, Tally

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
    monkeypatch.setattr(type(OURS), "of", lambda *_: None)
    return made


def send(most: int, due: str = "") -> Tally:
    running: Any = None
    sender = Sender(running, FAST, [NAIVE, POWERTOOLS], most, lambda key: key == due)
    sender.send(schedule(ORDERS, seed=7), told=lambda: None)
    return sender.tally


def ids(queue: Queue) -> list[str]:
    return sorted(event["data"]["order_id"] for event in queue.got)


def test_all_lanes_get_the_same_orders_as_often(queues: list[Queue]) -> None:
    tally = send(most=100)
    ours, naive, powertools = map(ids, queues)
    assert ours == naive == powertools == sorted(order.key for order in BY_QUEUE for _ in range(order.arrivals))
    assert {order.order_id for order in tally.shared} == {order.key for order in BY_QUEUE}
    assert len(tally.shared) == len(BY_QUEUE)


def test_with_a_limit_the_others_get_that_many_whole_orders_and_ours_all(queues: list[Queue]) -> None:
    tally = send(most=3)
    ours, naive, _ = map(ids, queues)
    shared = {order.order_id for order in tally.shared}
    assert len(shared) == 3
    assert naive == sorted(id for id in ours if id in shared)
    assert set(ours) == {order.key for order in BY_QUEUE}


def test_orders_that_a_fault_is_due_for_are_the_first_that_the_others_get(queues: list[Queue]) -> None:
    assert queues
    for order in BY_QUEUE[:1] + BY_QUEUE[-1:]:
        (shared,) = send(most=1, due=order.key).shared
        assert shared.order_id == order.key


def test_every_arrival_is_noted_with_what_the_provider_will_do(queues: list[Queue]) -> None:
    tally = send(most=3)
    assert queues
    assert len(tally.sends) == sum(order.arrivals for order in ORDERS)
    (drops,) = {order.key for order in ORDERS if order.payment_method == "pm_sandbox_drop"}
    told = {each.how for each in tally.sends if each.order_id.endswith(drops)}
    assert len(told) == 1
    assert told.pop().endswith("; the provider will charge and drop the line")


def test_the_same_key_with_two_orders_is_no_run() -> None:
    tally = Tally()
    tally.add(ORDERS[0], "api_1", at_ms=0)
    with pytest.raises(NotAccepted, match="became api_1 and api_2"):
        tally.add(replace(ORDERS[0]), "api_2", at_ms=0)
