"""Memory of one worker over many messages."""

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.fake_network import FakeNetwork
from lab.benchmarks.figure import Figure, GoalResult
from lab.benchmarks.subjects import CONTEXT, Effects, batch

MARKS = 10
GOAL = 1.02
PAGE_BYTES = 4096


def measure(quick: bool) -> Figure:
    """Run the whole handler, ten messages at a time, each of another order."""
    messages = 200 if quick else 10_000
    run = _Run(messages)
    resident = run(_resident_kb, 0)
    tracemalloc.start()  # after the first run: tracemalloc needs resident memory itself
    try:
        objects = run(lambda: tracemalloc.get_traced_memory()[0] / 1024, messages)
    finally:
        tracemalloc.stop()
    counts = [messages // MARKS * mark for mark in range(1, MARKS + 1)]
    # Compare with the second mark: caches and threads exist by the first.
    return Figure(
        "memory",
        f"Memory of a worker over {messages:,} messages",
        [
            {"messages": f"{count:,}", "resident, KB": round(kilobytes), "Python objects, KB": round(traced)}
            for count, kilobytes, traced in zip(counts, resident, objects, strict=True)
        ],
        [(f"{count:,}", kilobytes) for count, kilobytes in zip(counts, resident, strict=True)],
        "KB resident",
        [
            GoalResult(
                f"{what} after {messages:,} messages over {counts[1]:,}", round(kilobytes[-1] / kilobytes[1], 3), GOAL
            )
            for what, kilobytes in (("resident memory", resident), ("Python objects", objects))
        ],
        ("tracemalloc counts Python objects in a second run of as many messages.",),
    )


class _Run:
    """Processes `messages` and measures after each tenth of them."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._line, self._effects = FakeNetwork(), Effects()
        for client in subjects.clients():
            self._line.put_on(client)
        self._subject = subjects.external(self._effects)

    def __call__(self, look: Callable[[], float], first: int) -> list[float]:
        kilobytes = []
        with quiet():
            for start in range(0, self._messages, 10):
                ten = subjects.records("order.placed", 10, first + start)
                self._subject.handler(batch(ten), CONTEXT)
                self._subject.check(ten, self._line, self._effects)
                self._line.sent.clear()
                self._effects.done.clear()
                if (start + 10) % (self._messages // MARKS) == 0:
                    gc.collect()
                    kilobytes.append(look())
        return kilobytes


def _resident_kb() -> float:
    """Linux: https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html"""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1024
