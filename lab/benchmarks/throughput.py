"""Orders per second through all three stages: this repository and the Powertools pipeline, on one local AWS."""

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from tools.local.local_deployment import LocalDeployment
from tools.local.stack import LocalStack, warm_up

from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, GoalResult
from lab.benchmarks.pipeline_driver import Pipeline, order_ids
from lab.benchmarks.sampling import Samples, interleaved
from lab.cost.assumptions import LATENCY_MS
from lab.variants import POWERTOOLS, THIS_REPO, synth_arguments

GOAL = 1.5
ANSWER_MS = LATENCY_MS["provider.calls"]
AT_ONCE, IN_TIME = "the provider answers at once", f"the provider takes {ANSWER_MS} ms a call"


def measure(quick: bool) -> Figure:
    """Deploy both and drive them in turns. The first round, in which workers start, is not counted."""
    many, few, rounds = (20, 8, 1) if quick else (200, 60, 5)
    samples_of: dict[str, Samples] = {}
    with (
        tempfile.TemporaryDirectory() as directory,
        quiet(),
        LocalStack(Path(directory) / "local", synth=synth_arguments()) as running,
    ):
        samples_of[AT_ONCE] = _driven(running, "now", many, rounds)
        _have_providers_take(running, ANSWER_MS / 1000)
        samples_of[IN_TIME] = _driven(running, "late", few, rounds)
    names = [variant.name for variant in (THIS_REPO, POWERTOOLS)]
    rows = [
        {"orders a second": when, **{name: round(samples.median(name), 1) for name in names}}
        for when, samples in samples_of.items()
    ]
    return Figure(
        "throughput",
        f"Orders a second through order, payment and email, {many} or {few} at a time, on one MiniStack",
        rows,
        [(f"{name}, {when}", samples.median(name)) for when, samples in samples_of.items() for name in names],
        "orders a second",
        [
            GoalResult(f"this repository over Powertools, {when}", round(samples.ratio(*names), 2), GOAL, at_most=False)
            for when, samples in samples_of.items()
        ],
        (
            "Both have the same queues, times, batch sizes, concurrency and payment sandbox, and tables of their own.",
            "Emulator, payment sandboxes and workers share the cores: the figure is a ratio, not a rate on AWS.",
            (
                f"{ANSWER_MS} ms a call is assumed in lab/docs/cost.md. Two workers take two payments each: this "
                "repository in parallel, Powertools' batch processor one after the other, as documented."
            ),
        ),
    )


def _driven(running: LocalDeployment, name: str, orders: int, rounds: int) -> Samples:
    pipelines = {variant.name: Pipeline(running, variant) for variant in (THIS_REPO, POWERTOOLS)}
    number = 0

    def drive(pipeline: Pipeline) -> float:
        nonlocal number
        number += 1
        ids = order_ids(f"ord_{name}_{number}", orders)
        took = pipeline.drive(ids)
        pipeline.check(ids)
        return orders / took

    return interleaved({name: partial(drive, it) for name, it in pipelines.items()}, rounds)


def _have_providers_take(running: LocalDeployment, seconds: float) -> None:
    """Set the time that every payment sandbox takes for a request."""
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
