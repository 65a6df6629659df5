"""Orders per second through all three stages: ours and the same pipeline on Powertools, on one local AWS."""

import tempfile
from pathlib import Path

from benchmarks.driving import Pipeline, order_ids
from benchmarks.environment import quiet
from benchmarks.figure import Figure, Verdict
from benchmarks.measuring import interleaved
from demo.contrast import synth_arguments
from demo.lanes import OURS, POWERTOOLS
from demo.local.stack import LocalStack

GOAL = 1.5


def measure(quick: bool) -> Figure:
    """Both deployed at once, driven in turns; a round before, for the workers to start, is not counted."""
    orders, rounds = (20, 1) if quick else (200, 5)
    with (
        tempfile.TemporaryDirectory() as directory,
        quiet(),
        LocalStack(Path(directory) / "local", synth=synth_arguments()) as running,
    ):
        pipelines = {lane.name: Pipeline(running, lane) for lane in (OURS, POWERTOOLS)}
        number = 0

        def drive(pipeline: Pipeline) -> float:
            nonlocal number
            number += 1
            ids = order_ids(f"ord_{number}", orders)
            took = pipeline.drive(ids)
            pipeline.check(ids)
            return orders / took

        samples = interleaved({name: lambda it=it: drive(it) for name, it in pipelines.items()}, rounds)  # type: ignore[misc]
    rows = [{"": name, "orders a second": round(samples.median(name), 1)} for name in pipelines]
    over = samples.ratio(OURS.name, POWERTOOLS.name)
    return Figure(
        "throughput",
        f"Orders a second through order, payment and email, {orders} at a time, on one MiniStack",
        rows,
        [(name, samples.median(name)) for name in pipelines],
        "orders a second",
        [Verdict("ours over Powertools", round(over, 2), GOAL, at_most=False)],
        (
            "Same queues, times, batch sizes, concurrency and payment sandbox for both; each has tables of its own.",
            "Emulator, payment sandboxes and workers share this machine's cores: it is a ratio, not a rate on AWS.",
        ),
    )
