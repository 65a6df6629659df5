"""Wall time of ten records with an effect of 25 ms each, over the time of one record."""

from collections.abc import Callable

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.fake_network import FakeNetwork
from lab.benchmarks.figure import Figure, GoalResult
from lab.benchmarks.sampling import interleaved, wall_ms
from lab.benchmarks.subjects import CONTEXT, Effects, Record, Subject

EFFECT_S = 0.025
RECORDS = 10
GOAL = 1.5


def measure(quick: bool) -> Figure:
    """Measure whole handlers with real botocore and no network."""
    network, effects = FakeNetwork(), Effects(EFFECT_S)
    for client in subjects.clients():
        network.put_on(client)
    of = (subjects.external(effects), subjects.powertools(effects), subjects.claim_with_expiry(effects))
    ten = subjects.records("order.placed", RECORDS)
    with quiet():
        runs: dict[str, Callable[[], float]] = {}
        for subject in of:
            runs[f"{subject.name}: one"] = _timed(subject, ten[:1], network, effects)
            runs[f"{subject.name}: ten"] = _timed(subject, ten, network, effects)
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
        [GoalResult("this repository, ten records over one", float(str(rows[0]["ten / one"])), GOAL)],
        ("The peers run as documented: one record after the other.",),
    )


def _timed(subject: Subject, of: list[Record], network: FakeNetwork, effects: Effects) -> Callable[[], float]:
    def once() -> float:
        network.sent.clear()
        effects.done.clear()
        took = wall_ms(lambda: subject.handler(subjects.batch(of), CONTEXT))
        subject.check(of, network, effects)
        return took

    return once
