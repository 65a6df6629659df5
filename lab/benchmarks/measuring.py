"""Interleaved repeats: every subject once a round, so that a busy machine is busy for all of them alike."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Samples:
    """One value a round, for each subject."""

    by_subject: Mapping[str, Sequence[float]]

    def median(self, subject: str) -> float:
        return statistics.median(self.by_subject[subject])

    def ratio(self, subject: str, over: str) -> float:
        """The median of the rounds' own ratios: what slowed one round slowed both."""
        pairs = zip(self.by_subject[subject], self.by_subject[over], strict=True)
        return statistics.median(mine / other for mine, other in pairs)


def interleaved(subjects: Mapping[str, Callable[[], float]], rounds: int) -> Samples:
    """Each subject measures itself once a round, the order turned round every other time; one round before, unused."""
    found: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        names = list(subjects) if number % 2 else list(subjects)[::-1]
        for name in names:
            value = subjects[name]()
            if number:
                found[name].append(value)
    return Samples(found)


def cpu_us(run: Callable[[], object], times: int) -> float:
    """Microseconds of this process's processor time, all its threads, for one run of `times`."""
    gc.collect()
    begun = time.process_time_ns()
    for _ in range(times):
        run()
    return (time.process_time_ns() - begun) / times / 1000


def wall_ms(run: Callable[[], object]) -> float:
    """Milliseconds on the wall."""
    begun = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - begun) / 1_000_000
