"""A lane is at rest when every order is final and no message waits; the orders are counted seldom while any does."""

from pathlib import Path
from typing import Any

import pytest
from tools.local.observe import Depth
from tools.local.running import Running

from lab.demo import run
from lab.demo.lanes import OURS


class Told:
    """What the queues and the table say, and how often the table was read."""

    def __init__(self) -> None:
        self.waiting = 0
        self.final = 0
        self.counts = 0
        self.arriving = 0  # messages, while the table is read

    def depth(self, _: str) -> Depth:
        return Depth(self.waiting, 0, 0)

    def mailed(self) -> int:
        self.counts += 1
        self.waiting += self.arriving
        return self.final


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told()
    monkeypatch.setattr(run, "Queues", lambda _: told)
    monkeypatch.setattr(run, "Tables", lambda _: told)
    return told


def reached(rest: run.Rest, accepted: int) -> bool:
    def tell(**_: Any) -> None:
        """Nobody listens."""

    return rest.reached(accepted, tell)


def test_a_lane_is_at_rest_when_all_are_final_and_nothing_waits(told: Told) -> None:
    rest = run.Rest(Running("http://127.0.0.1:1", {}, Path()), OURS)
    told.waiting, told.final = 1, 2
    assert not reached(rest, 2)
    told.waiting, told.final = 0, 1
    assert not reached(rest, 2)
    told.final = 2
    assert reached(rest, 2)


def test_the_orders_are_counted_at_each_fifth_look_while_messages_wait(told: Told) -> None:
    rest = run.Rest(Running("http://127.0.0.1:1", {}, Path()), OURS)
    told.waiting = 1
    for _ in range(11):
        reached(rest, 2)
    assert told.counts == 3


def test_a_lane_is_not_at_rest_when_a_message_came_while_the_orders_were_counted(told: Told) -> None:
    rest = run.Rest(Running("http://127.0.0.1:1", {}, Path()), OURS)
    told.final, told.arriving = 2, 1
    assert not reached(rest, 2)
