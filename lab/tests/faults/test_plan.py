"""The plan: which messages meet which fault."""

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
