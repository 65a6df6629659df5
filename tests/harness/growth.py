"""How the work on an input grows with its size. Only ratios are compared, never times."""

import time
from collections.abc import Callable
from contextlib import suppress

SMALL, LARGE = 12_000, 48_000  # bytes of input
RATIO = LARGE // SMALL
# Linear work grows by 4, quadratic work by 16.
LIMIT = 2 * RATIO
# A shorter measurement shows the clock, not the work: the call is repeated until it takes so long.
MEASURABLE_NS = 1_000_000
REPEATS = 5


def assert_linear(work: Callable[[int], Callable[[], object]]) -> None:
    """Fail if the work grows faster than the size. `work(size)` answers a call that reads so many bytes."""
    small, large = work(SMALL), work(LARGE)
    times = 1
    while (spent := _cost(large, times)) < MEASURABLE_NS:
        times *= 2
    ratios = sorted(_cost(large, times) / max(1, _cost(small, times)) for _ in range(REPEATS))
    assert ratios[0] <= LIMIT, f"{RATIO} times the size costs {ratios[0]:.1f} times the work ({spent} ns)"


def _cost(call: Callable[[], object], times: int) -> int:
    began = time.thread_time_ns()
    for _ in range(times):
        with suppress(Exception):  # a refusal is an answer too
            call()
    return time.thread_time_ns() - began
