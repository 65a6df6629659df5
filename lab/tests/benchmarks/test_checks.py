"""A benchmark with wrong effects raises."""

from collections.abc import Callable
from typing import Any

import pytest
from shared.orders import writes

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.fake_network import FakeNetwork
from lab.benchmarks.figure import WrongEffect
from lab.benchmarks.subjects import CONTEXT, Effects, Subject, batch

Make = Callable[[Effects], Subject]
SUBJECTS: list[Make] = [
    lambda _: subjects.internal(),
    subjects.external,
    subjects.powertools,
    subjects.claim_with_expiry,
]


def _records(subject: Subject, count: int) -> list[dict[str, Any]]:
    return subjects.records("order.placed" if subject.charges else "order.requested", count)


@pytest.mark.parametrize("make", SUBJECTS)
def test_each_subject_does_the_work_by_step_and_by_handler(network: FakeNetwork, make: Make) -> None:
    effects = Effects()
    subject = make(effects)
    records = _records(subject, 3)

    for record in records:
        subject.step(record)
    subject.check(records, network, effects)
    network.sent.clear()
    effects.done.clear()
    with quiet():
        subject.handler(batch(records), CONTEXT)
    subject.check(records, network, effects)


@pytest.mark.parametrize("make", SUBJECTS)
def test_a_message_that_was_not_worked_on_is_noticed(network: FakeNetwork, make: Make) -> None:
    effects = Effects()
    subject = make(effects)
    records = _records(subject, 2)

    subject.step(records[0])

    with pytest.raises(WrongEffect):
        subject.check(records, network, effects)


@pytest.mark.parametrize("make", SUBJECTS)
def test_a_message_that_was_worked_on_twice_is_noticed(network: FakeNetwork, make: Make) -> None:
    effects = Effects()
    subject = make(effects)
    (record,) = _records(subject, 1)

    subject.step(record)
    subject.step(record)

    with pytest.raises(WrongEffect):
        subject.check([record], network, effects)


def test_a_row_that_was_not_marked_is_noticed(network: FakeNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    effects = Effects()
    subject = subjects.external(effects)
    (record,) = _records(subject, 1)
    monkeypatch.setattr(writes, "PAID", "lost")

    subject.step(record)

    with pytest.raises(WrongEffect, match="not paid"):
        subject.check([record], network, effects)
