"""Interleaved rounds: each subject once a round, so that other work on the machine affects all alike."""

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Samples:
    """One value for each subject and round."""

    by_subject: Mapping[str, Sequence[float]]

    def median(self, subject: str) -> float:
        return statistics.median(self.by_subject[subject])

    def ratio(self, subject: str, over: str) -> float:
        """The median of the ratios of each round: other work slows both subjects of a round."""
        pairs = zip(self.by_subject[subject], self.by_subject[over], strict=True)
        return statistics.median(mine / other for mine, other in pairs)


def interleaved(subjects: Mapping[str, Callable[[], float]], rounds: int) -> Samples:
    """Run each subject once a round, in alternating order. The first round is not counted."""
    values: dict[str, list[float]] = {name: [] for name in subjects}
    for number in range(rounds + 1):
        names = list(subjects) if number % 2 else list(subjects)[::-1]
        for name in names:
            value = subjects[name]()
            if number:
                values[name].append(value)
    return Samples(values)


def cpu_us(run: Callable[[], object], times: int) -> float:
    """CPU microseconds of this process, all threads, for one of `times` runs."""
    gc.collect()
    begun = time.process_time_ns()
    for _ in range(times):
        run()
    return (time.process_time_ns() - begun) / times / 1000


def wall_ms(run: Callable[[], object]) -> float:
    """Wall time in milliseconds."""
    begun = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - begun) / 1_000_000
