"""Memory of one worker over many messages: what it holds after each thousand."""

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, Verdict
from lab.benchmarks.line import Line
from lab.benchmarks.subjects import CONTEXT, Effects, batch

MARKS = 10
GOAL = 1.02
PAGE_BYTES = 4096


def measure(quick: bool) -> Figure:
    """The whole handler, ten messages at a time, each of an order of its own; once for each way of looking."""
    messages = 200 if quick else 10_000
    run = _Run(messages)
    resident = run(_resident_kb, 0)
    tracemalloc.start()  # not before: its own notes grow, and they are resident too
    try:
        objects = run(lambda: tracemalloc.get_traced_memory()[0] / 1024, messages)
    finally:
        tracemalloc.stop()
    counts = [messages // MARKS * mark for mark in range(1, MARKS + 1)]
    # From the second mark on: by the first, caches are filled and threads have been seen.
    return Figure(
        "memory",
        f"Memory that a worker holds over {messages:,} messages",
        [
            {"messages": f"{count:,}", "resident, KB": round(held), "Python objects, KB": round(traced)}
            for count, held, traced in zip(counts, resident, objects, strict=True)
        ],
        [(f"{count:,}", held) for count, held in zip(counts, resident, strict=True)],
        "KB resident",
        [
            Verdict(f"{what} after {messages:,} messages over {counts[1]:,}", round(held[-1] / held[1], 3), GOAL)
            for what, held in (("resident memory", resident), ("Python objects", objects))
        ],
        ("Python objects are counted by tracemalloc in a second run of as many messages, from its begin on.",),
    )


class _Run:
    """Takes `messages`, and looks after each tenth of them."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._line, self._effects = Line(), Effects()
        for client in subjects.clients():
            self._line.put_on(client)
        self._subject = subjects.external(self._effects)

    def __call__(self, look: Callable[[], float], first: int) -> list[float]:
        held = []
        with quiet():
            for start in range(0, self._messages, 10):
                ten = subjects.records("order.placed", 10, first + start)
                self._subject.handler(batch(ten), CONTEXT)
                self._subject.check(ten, self._line, self._effects)
                self._line.sent.clear()
                self._effects.done.clear()
                if (start + 10) % (self._messages // MARKS) == 0:
                    gc.collect()
                    held.append(look())
        return held


def _resident_kb() -> float:
    """Linux: https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html"""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1024
