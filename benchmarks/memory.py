"""Memory of one worker over many messages: what it holds after each thousand."""

import gc
import tracemalloc
from pathlib import Path

from benchmarks import subjects
from benchmarks.environment import quiet
from benchmarks.figure import Figure, Verdict
from benchmarks.line import Line
from benchmarks.subjects import CONTEXT, Effects, batch

MARKS = 10
GOAL = 1.02
PAGE_BYTES = 4096


def measure(quick: bool) -> Figure:
    """The whole handler, ten messages at a time, each of an order of its own."""
    messages = 200 if quick else 10_000
    line, effects = Line(), Effects()
    for client in subjects.clients():
        line.put_on(client)
    subject = subjects.external(effects)
    held: list[tuple[int, float, float]] = []
    tracemalloc.start()
    try:
        with quiet():
            for start in range(0, messages, 10):
                ten = subjects.records("order.placed", 10, start)
                subject.handler(batch(ten), CONTEXT)
                subject.check(ten, line, effects)
                line.sent.clear()
                effects.done.clear()
                if (start + 10) % (messages // MARKS) == 0:
                    gc.collect()
                    held.append((start + 10, tracemalloc.get_traced_memory()[0] / 1024, _resident_kb()))
    finally:
        tracemalloc.stop()
    # From the second mark on: by the first, caches are filled and threads have been seen.
    (_, traced, resident), (_, traced_end, resident_end) = held[1], held[-1]
    return Figure(
        "memory",
        f"Memory that a worker holds over {messages:,} messages",
        [
            {"messages": count, "Python objects, KB": round(objects), "resident, KB": round(resident)}
            for count, objects, resident in held
        ],
        [(f"{count:,}", objects) for count, objects, _ in held],
        "KB of Python objects",
        [
            Verdict(
                f"Python objects after {messages:,} messages over {held[1][0]:,}", round(traced_end / traced, 3), GOAL
            ),
            Verdict("resident memory, the same", round(resident_end / resident, 3), GOAL),
        ],
        ("Counted by tracemalloc from the handler's first call on; resident memory is the whole process.",),
    )


def _resident_kb() -> float:
    """Linux: https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html"""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES / 1024
