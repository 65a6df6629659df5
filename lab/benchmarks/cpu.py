"""CPU time of a step with real botocore and no network, over the same calls made bare."""

from collections.abc import Callable
from typing import Any

from lab.benchmarks import subjects
from lab.benchmarks.environment import quiet
from lab.benchmarks.fake_network import Call, FakeNetwork, replay
from lab.benchmarks.figure import Figure, GoalResult
from lab.benchmarks.sampling import cpu_us, interleaved
from lab.benchmarks.subjects import CONTEXT, Effects, Subject, batch
from lab.peers import step as published

GOAL = 1.10
NOTES = (
    "Bare: the calls of the step, recorded and repeated by a client as boto3 creates it.",
    (
        "The client of this repository skips two parts of botocore. The calls repeated by that client show what guard "
        "and step add."
    ),
    (
        "Two of the peers' four requests are their row write and their event. In this repository the commit contains "
        "both; the relay sends the event, ten to a request."
    ),
    (
        "The handler takes ten records at a time. This repository uses threads, a log line and a metric; the peers, as "
        "published, work one after the other without either."
    ),
)


def measure(quick: bool) -> Figure:
    """Measure one record by its step, and ten by the handler with threads, log lines and metrics."""
    rounds, times = (2, 20) if quick else (9, 150)
    network, effects = FakeNetwork(), Effects()
    for client in subjects.clients():
        network.put_on(client)
    of = (
        subjects.internal(),
        subjects.external(effects),
        subjects.powertools(effects),
        subjects.claim_with_expiry(effects),
    )
    with quiet():
        runs: dict[str, Callable[[], float]] = {}
        for subject in of:
            runs |= _runs(subject, network, effects, times)
        samples = interleaved(runs, rounds)
    rows, goals = [], []
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
        if subject.name.startswith("this repository"):
            goals.append(GoalResult(f"{subject.name}, step over bare calls", over, GOAL))
            goals.append(GoalResult(f"{subject.name}, step over the same calls by its own client", these, GOAL))
    return Figure(
        "cpu",
        "CPU of a step with real botocore and no network, over the same calls made bare",
        rows,
        [(str(row[""]), float(str(row["step, µs"]))) for row in rows],
        "µs",
        goals,
        NOTES,
    )


def _runs(subject: Subject, network: FakeNetwork, effects: Effects, times: int) -> dict[str, Callable[[], float]]:
    kind = "order.placed" if subject.charges else "order.requested"
    one, ten = subjects.records(kind, times), subjects.records(kind, times // 10 * 10)

    def by_step() -> float:
        _clear(network, effects)
        left = iter(one)
        cost = cpu_us(lambda: subject.step(next(left)), len(one))
        subject.check(one, network, effects)
        return cost

    def by_handler() -> float:
        _clear(network, effects)
        left = iter([batch(ten[start : start + 10]) for start in range(0, len(ten), 10)])
        cost = cpu_us(lambda: subject.handler(next(left), CONTEXT), len(ten) // 10) / 10
        subject.check(ten, network, effects)
        return cost

    # Use as many orders: the same bytes repeated would be in the processor's cache.
    calls = network.recording(lambda: [subject.step(record) for record in one])
    again = [(_plain(client), operation, params) for client, operation, params in calls]

    def replayed(which: list[Call]) -> float:
        _clear(network, effects)
        cost = cpu_us(replay(which), 1) / times
        subject.check_sent(one, network)
        return cost

    runs = {"step": by_step, "handler": by_handler, "bare": lambda: replayed(calls), "plain": lambda: replayed(again)}
    return {f"{subject.name}: {what}": run for what, run in runs.items()}


def _plain(client: Any) -> Any:
    """A client of the same service as boto3 creates it."""
    return published.sqs() if client.meta.service_model.service_name == "sqs" else published.dynamodb()


def _clear(network: FakeNetwork, effects: Effects) -> None:
    network.sent.clear()
    effects.done.clear()
