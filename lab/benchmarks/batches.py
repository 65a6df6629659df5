"""Ten records with an effect of 25 ms each, by the wall, over one record."""

from collections.abc import Callable

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, Verdict
from lab.benchmarks.line import Line
from lab.benchmarks.measuring import interleaved, wall_ms
from lab.benchmarks.subjects import CONTEXT, Effects, Record, Subject

EFFECT_S = 0.025
RECORDS = 10
GOAL = 1.5


def measure(quick: bool) -> Figure:
    """Whole handlers, with real botocore and no network."""
    line, effects = Line(), Effects(EFFECT_S)
    for client in subjects.clients():
        line.put_on(client)
    of = (subjects.external(effects), subjects.powertools(effects), subjects.claim_with_expiry(effects))
    ten = subjects.records("order.placed", RECORDS)
    with quiet():
        runs: dict[str, Callable[[], float]] = {}
        for subject in of:
            runs[f"{subject.name}: one"] = _timed(subject, ten[:1], line, effects)
            runs[f"{subject.name}: ten"] = _timed(subject, ten, line, effects)
        samples = interleaved(runs, 1 if quick else 15)
    rows = [
        {
            "": subject.name,
            "one record, ms": round(samples.median(f"{subject.name}: one"), 1),
            "ten records, ms": round(samples.median(f"{subject.name}: ten"), 1),
            "ten / one": round(samples.ratio(f"{subject.name}: ten", f"{subject.name}: one"), 2),
        }
        for subject in of
    ]
    return Figure(
        "batch",
        f"A batch of {RECORDS} records with effects of {EFFECT_S * 1000:.0f} ms, wall time over that of one record",
        rows,
        [(str(row[""]), float(str(row["ten / one"]))) for row in rows],
        "times one record",
        [Verdict("ours, ten records over one", float(str(rows[0]["ten / one"])), GOAL)],
        ("The peers run as documented: one record after the other.",),
    )


def _timed(subject: Subject, of: list[Record], line: Line, effects: Effects) -> Callable[[], float]:
    def once() -> float:
        line.sent.clear()
        effects.done.clear()
        took = wall_ms(lambda: subject.handler(subjects.batch(of), CONTEXT))
        subject.check(of, line, effects)
        return took

    return once
