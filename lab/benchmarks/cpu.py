"""CPU of a step: real botocore, no network, over the very same calls made bare."""

from collections.abc import Callable
from typing import Any

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, Verdict
from lab.benchmarks.line import Call, Line, replay
from lab.benchmarks.measuring import cpu_us, interleaved
from lab.benchmarks.subjects import CONTEXT, Effects, Subject, batch
from lab.peers import step as published

GOAL = 1.10
NOTES = (
    "Bare: the very calls that the step made, recorded and made again, by a client as boto3 makes it.",
    (
        "Our own client spares botocore two things (shared/aws.py): what guard and business add is seen against the "
        "same calls by its own client."
    ),
    (
        "Of the peers' four requests two are their row write and their event. In ours these are part of the commit; "
        "the event is sent by the relay, ten to a request."
    ),
    (
        "The handler takes ten records at a time: ours in threads, which here all want the processor at once, with a "
        "log line and a metric; the peers, as published, one after the other with neither."
    ),
)


def measure(quick: bool) -> Figure:
    """One record by its step; and ten by the handler, with threads, log lines and metrics."""
    rounds, times = (2, 20) if quick else (9, 150)
    line, effects = Line(), Effects()
    for client in subjects.clients():
        line.put_on(client)
    of = (
        subjects.internal(),
        subjects.external(effects),
        subjects.powertools(effects),
        subjects.claim_with_expiry(effects),
    )
    with quiet():
        runs: dict[str, Callable[[], float]] = {}
        for subject in of:
            runs |= _runs(subject, line, effects, times)
        samples = interleaved(runs, rounds)
    rows, verdicts = [], []
    for subject in of:
        step, handler, bare, plain = (f"{subject.name}: {what}" for what in ("step", "handler", "bare", "plain"))
        over, these = (round(samples.ratio(step, calls), 3) for calls in (plain, bare))
        rows.append(
            {
                "": subject.name,
                "requests": subject.requests.total(),
                "bare calls, µs": round(samples.median(plain)),
                "step, µs": round(samples.median(step)),
                "step / bare": over,
                "by its own client, µs": round(samples.median(bare)),
                "step / these": these,
                "handler a record, µs": round(samples.median(handler)),
            }
        )
        if subject.name.startswith("ours"):
            verdicts.append(Verdict(f"{subject.name}, step over bare calls", over, GOAL))
            verdicts.append(Verdict(f"{subject.name}, step over the same calls by its own client", these, GOAL))
    return Figure(
        "cpu",
        "CPU of a step with real botocore and no network, over the same calls made bare",
        rows,
        [(str(row[""]), float(str(row["step, µs"]))) for row in rows],
        "µs",
        verdicts,
        NOTES,
    )


def _runs(subject: Subject, line: Line, effects: Effects, times: int) -> dict[str, Callable[[], float]]:
    kind = "order.placed" if subject.charges else "order.requested"
    one, ten = subjects.records(kind, times), subjects.records(kind, times // 10 * 10)

    def by_step() -> float:
        _clear(line, effects)
        left = iter(one)
        cost = cpu_us(lambda: subject.step(next(left)), len(one))
        subject.check(one, line, effects)
        return cost

    def by_handler() -> float:
        _clear(line, effects)
        left = iter([batch(ten[start : start + 10]) for start in range(0, len(ten), 10)])
        cost = cpu_us(lambda: subject.handler(next(left), CONTEXT), len(ten) // 10) / 10
        subject.check(ten, line, effects)
        return cost

    # Of as many orders, since the same bytes again and again are found in the processor's cache.
    calls = line.recording(lambda: [subject.step(record) for record in one])
    again = [(_plain(client), operation, params) for client, operation, params in calls]

    def replayed(which: list[Call]) -> float:
        _clear(line, effects)
        cost = cpu_us(replay(which), 1) / times
        subject.check_sent(one, line)
        return cost

    runs = {"step": by_step, "handler": by_handler, "bare": lambda: replayed(calls), "plain": lambda: replayed(again)}
    return {f"{subject.name}: {what}": run for what, run in runs.items()}


def _plain(client: Any) -> Any:
    """The same service's client as boto3 makes it."""
    return published.sqs() if client.meta.service_model.service_name == "sqs" else published.dynamodb()


def _clear(line: Line, effects: Effects) -> None:
    line.sent.clear()
    effects.done.clear()
