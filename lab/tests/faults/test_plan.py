"""The plan: which messages meet which fault."""

import subprocess
import sys
from collections import Counter

import pytest

from lab.faults.plan import OPERATIONS, Fault, Kind, plan

ORDERS = [f"demo-7-{n}" for n in range(5_000)]


def faults(percent: float, operation: str, receive: int, seed: int = 7) -> list[Fault]:
    drawn = [plan(seed, percent, operation, order, receive) for order in ORDERS]
    return [fault for fault in drawn if fault]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_first_receives_meet_faults_at_the_stated_rate_and_later_ones_at_half_of_it(operation: str) -> None:
    first, *later = [len(faults(10, operation, receive)) / len(ORDERS) for receive in (1, 2, 3, 9)]

    assert first == pytest.approx(0.10, abs=0.012)
    assert later == pytest.approx([0.05] * 3, abs=0.012)


def test_the_same_seed_is_the_same_plan_in_another_process() -> None:
    code = "from lab.faults.plan import plan; print([plan(7, 50, 'payment', f'ord_{n}', 1) for n in range(50)])"
    said = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)]

    assert said[0] == said[1] == f"{[plan(7, 50, 'payment', f'ord_{n}', 1) for n in range(50)]}\n"


def test_this_is_the_plan_of_seed_7_so_that_a_run_can_be_had_again_next_year() -> None:
    assert [plan(7, 40, "payment", f"ord_{n}", 1) for n in range(8)] == [
        None,
        None,
        Fault(Kind.DIE_BEFORE, 5),
        None,
        Fault(Kind.THROTTLED),
        Fault(Kind.THROTTLED, 4),
        Fault(Kind.DIE_AFTER),
        Fault(Kind.DIE_AFTER),
    ]


def test_seed_operation_order_and_receive_each_make_another_plan() -> None:
    def drawn(seed: int, operation: str, prefix: str, receive: int) -> list[Fault | None]:
        return [plan(seed, 50, operation, f"{prefix}{n}", receive) for n in range(50)]

    plans = [drawn(7, "payment", "a", 1), drawn(8, "payment", "a", 1), drawn(7, "email", "a", 1)]
    plans += [drawn(7, "payment", "b", 1), drawn(7, "payment", "a", 2)]
    assert all(one != other for n, one in enumerate(plans) for other in plans[:n])


def test_more_percent_only_adds_faults() -> None:
    for order in ORDERS[:2000]:
        few, many = plan(7, 5, "email", order, 1), plan(7, 20, "email", order, 1)
        assert few in (None, many)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_kind_comes_and_every_call_is_struck(operation: str) -> None:
    found = faults(100, operation, 1)
    here = OPERATIONS[operation]

    assert len(found) == len(ORDERS)
    assert {fault.kind for fault in found} == set(here.kinds)
    calls = Counter(fault.call for fault in found)
    assert set(calls) - {None} == set(range(1, here.calls + 1))
    assert calls[None] / len(found) == pytest.approx(0.5 if here.effect else 0, abs=0.02)


def test_only_what_has_a_lease_is_to_stall_past_one() -> None:
    assert {name for name, operation in OPERATIONS.items() if Kind.STALLED in operation.kinds} == {"payment", "email"}


def test_five_of_eleven_faults_of_a_payment_are_deaths() -> None:
    deaths = [fault for fault in faults(100, "payment", 1) if fault.kind in (Kind.DIE_BEFORE, Kind.DIE_AFTER)]
    assert len(deaths) / len(ORDERS) == pytest.approx(5 / 11, abs=0.02)
