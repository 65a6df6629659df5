"""Faults on demand: armed by a button, met by the next invocation that has an order."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.harness.http_lambda import Context
from tests.harness.interceptor import Killed

from lab.faults.arm import Injected
from lab.faults.plan import Fault, Kind
from lab.tests.faults.conftest import LANE, Bench
from lab.tests.faults.test_hooks import DONE, message, writing

DIES = Fault(Kind.DIE_BEFORE, 1)


@pytest.mark.parametrize("fault", [Fault(Kind.STALLED), Fault(Kind.ANSWER_LOST, 3)])
def test_what_is_armed_is_taken_as_it_was_and_once(bench: Bench, fault: Fault) -> None:
    bench.faults.arm(LANE, "payment", fault)

    assert bench.faults.take("naive", "payment") is None
    assert bench.faults.take(LANE, "email") is None
    assert bench.faults.take(LANE, "payment") == fault
    assert bench.faults.take(LANE, "payment") is None


def test_of_workers_that_race_for_it_one_gets_it(bench: Bench) -> None:
    together = threading.Barrier(8, timeout=20)

    def take(_: int) -> Fault | None:
        together.wait()
        return bench.faults.take(LANE, "payment")

    for _ in range(5):
        bench.faults.arm(LANE, "payment", Fault(Kind.DIE_AFTER))
        with ThreadPoolExecutor(8) as pool:
            taken = list(pool.map(take, range(8)))
        assert sorted(taken, key=str) == [Fault(Kind.DIE_AFTER)] + [None] * 7


def test_it_strikes_the_next_worker_that_has_an_order_and_no_other(bench: Bench) -> None:
    worker = bench.worker(writing(bench), fault=DIES)
    calls: list[Any] = []
    idle = bench.worker(lambda event, _: calls.append(event))

    idle({"Records": []}, Context())
    with pytest.raises(Killed):
        worker(message("ord_1"), Context())

    assert worker(message("ord_1"), Context()) == DONE
    assert calls == [{"Records": []}]
    assert bench.kinds() == [Kind.DIE_BEFORE]


def test_what_had_no_occasion_to_strike_waits_for_the_next_worker(bench: Bench) -> None:
    worker = bench.worker(writing(bench), fault=Fault(Kind.ERROR_BEFORE, 2))

    assert worker(message("ord_1"), Context()) == DONE  # one call

    assert bench.injected() == []
    assert bench.faults.take(LANE, "order") == Fault(Kind.ERROR_BEFORE, 2)


def test_what_was_armed_meanwhile_is_not_replaced_by_what_is_put_back(bench: Bench) -> None:
    def handler(*_: Any) -> None:
        bench.faults.arm(LANE, "order", DIES)

    bench.worker(handler, fault=Fault(Kind.SLOW, 2))(message("ord_1"), Context())

    assert bench.faults.take(LANE, "order") == DIES


def test_it_comes_in_the_stead_of_what_was_planned_for_the_batch(bench: Bench) -> None:
    planned = bench.worker(writing(bench), seed=1, percent=100)
    bench.faults.arm(LANE, "order", Fault(Kind.SLOW, 1))

    assert planned(message(*(f"ord_{n}" for n in range(10))), Context()) == DONE

    assert [(injected.order, injected.kind) for injected in bench.injected()] == [("ord_0", Kind.SLOW)]


@pytest.mark.parametrize(
    ("function", "fault"),
    [("order", Fault(Kind.STALLED, 1)), ("relay", Fault(Kind.DIE_AFTER)), ("order", Fault(Kind.SLOW))],
)
def test_what_can_not_happen_there_is_not_armed(bench: Bench, function: str, fault: Fault) -> None:
    with pytest.raises(ValueError, match=f"can not strike in {function}"):
        bench.faults.arm(LANE, function, fault)
    assert bench.faults.take(LANE, function) is None


def test_all_that_struck_is_found_again_by_lane_without_what_is_armed(bench: Bench) -> None:
    def struck(lane: str, n: int) -> Injected:
        return Injected(lane, "payment", f"ord_{n}", 1, 2, f"message-{n}", Kind.DIE_AFTER, 1_800_000_000_000 + n, 42)

    for n in range(6):  # a page of a scan ends after 1 MB
        fat = {"id": {"S": f"armed#fat-{n}#order"}, "kind": {"S": "slow"}, "filler": {"S": "x" * 390_000}}
        bench.world.dynamodb.put_item(TableName="faults", Item=fat)
    noted = [struck(lane, n) for lane in ("ours", "naive") for n in range(20)]
    assert all(bench.faults.note(injected) for injected in noted)
    assert not bench.faults.note(noted[0])
    bench.faults.arm("ours", "payment", Fault(Kind.STALLED))

    def found(lane: str | None = None) -> list[Injected]:
        return sorted(bench.faults.injected(lane), key=lambda injected: injected.id)

    assert found("naive") == sorted(noted[20:], key=lambda injected: injected.id)
    assert len(found()) == 40
    assert json.dumps(found()[0].kind) == '"die_after"'
