"""How long a failed message waits, and what that adds up to."""

import random

import pytest

from shared.idempotency.sqs import delay_bounds, delay_s, receives_to_ride_out

STAGES = [(7200, 2, 900), (60, 1, 4), (7200, 1, 1), (0, 2, 900), (1, 1, 4), (43_200, 30, 900)]


@pytest.mark.parametrize(
    ("receive", "bounds"),
    [(1, (1, 2)), (2, (2, 4)), (3, (4, 8)), (9, (256, 512)), (10, (450, 900)), (1000, (450, 900)), (0, (1, 2))],
)
def test_a_wait_doubles_up_to_its_cap_and_half_of_it_is_sure(receive: int, bounds: tuple[int, int]) -> None:
    assert delay_bounds(receive, 2, 900) == bounds


def test_the_least_wait_is_rounded_up_so_that_it_is_never_nothing() -> None:
    assert delay_bounds(1, 1, 4) == (1, 1)
    assert delay_bounds(9, 5, 7) == (4, 7)


def test_waits_are_drawn_from_the_whole_range() -> None:
    rng = random.Random(1)

    assert {delay_s(3, 2, 900, rng) for _ in range(200)} == {4, 5, 6, 7, 8}


@pytest.mark.parametrize(("outage_s", "base_s", "cap_s"), STAGES)
def test_the_receive_count_is_the_least_that_rides_out_the_outage_whatever_the_jitter(
    outage_s: int, base_s: int, cap_s: int
) -> None:
    receives = receives_to_ride_out(outage_s, base_s, cap_s)

    least = [delay_bounds(n, base_s, cap_s)[0] for n in range(1, receives)]  # the waits between the receives
    assert sum(least) >= outage_s
    assert sum(least[:-1]) < outage_s or receives == 1


def test_the_receive_counts_of_the_stages_are_pinned() -> None:
    assert receives_to_ride_out(7200, 2, 900) == 25
    assert receives_to_ride_out(60, 1, 4) == 32


@pytest.mark.parametrize(("base_s", "cap_s"), [(0, 4), (-1, 4), (5, 4)])
def test_a_back_off_that_burns_receives_is_refused_with_both_values(base_s: int, cap_s: int) -> None:
    with pytest.raises(ValueError, match=f"base {base_s} s and cap {cap_s} s"):
        receives_to_ride_out(60, base_s, cap_s)
