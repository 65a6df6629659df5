"""Orders per second through all three stages: ours and the same pipeline on Powertools, on one local AWS."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from tools.local.running import Running
from tools.local.stack import LocalStack, warm_up

from lab.benchmarks.driving import Pipeline, order_ids
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, Verdict
from lab.benchmarks.measuring import Samples, interleaved
from lab.contrast import synth_arguments
from lab.cost.assumptions import LATENCY_MS
from lab.demo.lanes import OURS, POWERTOOLS

GOAL = 1.5
ANSWER_MS = LATENCY_MS["provider.calls"]
AT_ONCE, IN_TIME = "the provider answers at once", f"the provider takes {ANSWER_MS} ms a call"


def measure(quick: bool) -> Figure:
    """Both deployed at once, driven in turns; a round before, for the workers to start, is not counted."""
    many, few, rounds = (20, 8, 1) if quick else (200, 60, 5)
    found: dict[str, Samples] = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        quiet(),
        LocalStack(Path(directory) / "local", synth=synth_arguments()) as running,
    ):
        found[AT_ONCE] = _driven(running, "now", many, rounds)
        _have_providers_take(running, ANSWER_MS / 1000)
        found[IN_TIME] = _driven(running, "late", few, rounds)
    names = [lane.name for lane in (OURS, POWERTOOLS)]
    rows = [
        {"orders a second": when, **{name: round(samples.median(name), 1) for name in names}}
        for when, samples in found.items()
    ]
    return Figure(
        "throughput",
        f"Orders a second through order, payment and email, {many} or {few} at a time, on one MiniStack",
        rows,
        [(f"{name}, {when}", samples.median(name)) for when, samples in found.items() for name in names],
        "orders a second",
        [
            Verdict(f"ours over Powertools, {when}", round(samples.ratio(*names), 2), GOAL, at_most=False)
            for when, samples in found.items()
        ],
        (
            "Same queues, times, batch sizes, concurrency and payment sandbox for both; each has tables of its own.",
            "Emulator, payment sandboxes and workers share this machine's cores: it is a ratio, not a rate on AWS.",
            (
                f"{ANSWER_MS} ms is the provider's call in docs/cost.md. Two workers take two payments each: ours "
                "side by side, Powertools' batch processor one after the other, as documented."
            ),
        ),
    )


def _driven(running: Running, name: str, orders: int, rounds: int) -> Samples:
    pipelines = {lane.name: Pipeline(running, lane) for lane in (OURS, POWERTOOLS)}
    number = 0

    def drive(pipeline: Pipeline) -> float:
        nonlocal number
        number += 1
        ids = order_ids(f"ord_{name}_{number}", orders)
        took = pipeline.drive(ids)
        pipeline.check(ids)
        return orders / took

    return interleaved({name: partial(drive, it) for name, it in pipelines.items()}, rounds)


def _have_providers_take(running: Running, seconds: float) -> None:
    """Each request to any payment sandbox, from here on."""
    functions = running.client("lambda")
    for page in functions.get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            variables: dict[str, Any] = function.get("Environment", {}).get("Variables", {})
            if "LEDGER_TABLE" in variables:
                functions.update_function_configuration(
                    FunctionName=function["FunctionName"],
                    Environment={"Variables": variables | {"ANSWER_S": str(seconds)}},
                )
    warm_up(running)
