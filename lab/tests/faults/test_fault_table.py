"""Faults on demand: armed by a button, met by the next invocation that has an order."""

from typing import Any

import pytest
from tests.harness.http_lambda import Context
from tests.harness.interceptor import Killed

from lab.faults.plan import Fault, Kind
from lab.tests.faults.conftest import VARIANT, Bench
from lab.tests.faults.test_hooks import DONE, message, writing

DIES = Fault(Kind.DIE_BEFORE, 1)


@pytest.mark.parametrize("fault", [Fault(Kind.STALLED), Fault(Kind.ANSWER_LOST, 3)])
def test_an_armed_fault_is_taken_once(bench: Bench, fault: Fault) -> None:
    bench.faults.arm(VARIANT, "payment", fault)

    assert bench.faults.take("naive", "payment") is None
    assert bench.faults.take(VARIANT, "email") is None
    assert bench.faults.take(VARIANT, "payment") == fault
    assert bench.faults.take(VARIANT, "payment") is None


def test_an_armed_fault_meets_the_next_worker_with_an_order(bench: Bench) -> None:
    worker = bench.worker(writing(bench), fault=DIES)
    calls: list[Any] = []
    idle = bench.worker(lambda event, _: calls.append(event))

    idle({"Records": []}, Context())
    with pytest.raises(Killed):
        worker(message("ord_1"), Context())

    assert worker(message("ord_1"), Context()) == DONE
    assert calls == [{"Records": []}]
    assert bench.kinds() == [Kind.DIE_BEFORE]


def test_a_fault_that_was_not_applied_stays_armed(bench: Bench) -> None:
    worker = bench.worker(writing(bench), fault=Fault(Kind.ERROR_BEFORE, 2))

    assert worker(message("ord_1"), Context()) == DONE  # one call

    assert bench.injected() == []
    assert bench.faults.take(VARIANT, "order") == Fault(Kind.ERROR_BEFORE, 2)


@pytest.mark.parametrize(
    ("function", "fault"),
    [("order", Fault(Kind.STALLED, 1)), ("relay", Fault(Kind.DIE_AFTER)), ("order", Fault(Kind.SLOW))],
)
def test_an_impossible_fault_is_not_armed(bench: Bench, function: str, fault: Fault) -> None:
    with pytest.raises(ValueError, match=f"cannot happen in {function}"):
        bench.faults.arm(VARIANT, function, fault)
    assert bench.faults.take(VARIANT, function) is None
