"""Parameters of the model: service times from measured requests, and stages from the settings of prod."""

import functools
import math
import random
from collections.abc import Mapping

from stacks.settings import Settings, settings_from
from stacks.times import RequestBudget

from lab.cost.counts import stored
from lab.cost.pricing import seconds_of
from lab.simulate.model import SPREAD, Stage

QUEUES = {"orders": "order", "payments": "payment", "emails": "email"}  # queue → function
CALLS = {
    "orders": RequestBudget(aws=1),
    "payments": RequestBudget(aws=4, provider=3),
    "emails": RequestBudget(aws=5),
}  # stacks/pipeline.py
MAPPING_LIMIT = 1000  # SQS takes a maximum concurrency of up to this
BUSY = 0.7  # the share of its capacity at which a stage is sized to run
PROVIDER_PER_S = 25  # Stripe, live mode, each endpoint: https://docs.stripe.com/rate-limits
SES_PER_S = 14  # what accounts often get first out of SES's sandbox, which no page promises; the console shows yours


def prod() -> Settings:
    """prod's settings, with what only a person can supply made up."""
    supplied = {
        "stage": "prod",
        "sender": "orders@example.com",
        "provider_secret_arn": "arn:aws:secretsmanager:eu-west-1:111111111111:secret:provider-AbCdEf",
    }
    return settings_from(supplied.get)


def service_s(queue: str) -> float:
    """Seconds that one message takes: its measured requests, at the latencies of lab/cost/assumptions.py."""
    return seconds_of(stored()["this-repo"]["alone"]["first"][QUEUES[queue]])


def stages(settings: Settings, sized_for: float | None = None) -> list[Stage]:
    """The three stages as they are set, or with as many workers as a rate (orders a second) takes."""
    result = []
    for queue, function in QUEUES.items():
        flow = settings.throughput(function)
        timing = settings.times.timing(CALLS[queue], window_s=flow.window_s)
        workers, mappings, batch = flow.max_concurrency, 1, flow.batch_size
        if sized_for is not None:
            batch = 10
            workers = workers_for(sized_for, service_s(queue), batch)
            mappings = math.ceil(workers / MAPPING_LIMIT)
        result.append(Stage(queue, service_s(queue), workers, batch, flow.window_s, timing.max_receives, mappings))
    return result


def workers_for(rate: float, mean_s: float, batch: int) -> int:
    """Workers that a rate takes, at the share that BUSY leaves them; at least the two that SQS asks for."""
    return max(2, math.ceil(rate * batch_s(mean_s, batch) / batch / BUSY))


def capacity(stage: Stage) -> float:
    """Orders a second that a stage can serve with full batches."""
    return stage.workers * stage.batch / batch_s(stage.service_s, stage.batch)


def batch_s(mean_s: float, batch: int) -> float:
    """Mean seconds of a batch, which is as slow as its slowest."""
    return mean_s * _slowest(batch)


@functools.cache
def _slowest(batch: int) -> float:
    """The mean of the slowest of so many draws, over the mean of one."""
    rng = random.Random(0)  # noqa: S311 - a model
    draws = 20_000
    result = sum(max(rng.gammavariate(SPREAD, 1 / SPREAD) for _ in range(batch)) for _ in range(draws)) / draws
    return round(result, 3)


def describe(result: list[Stage]) -> Mapping[str, str]:
    return {
        s.name: f"{s.workers} x {s.batch}" + (f" in {s.mappings} mappings" if s.mappings > 1 else "") for s in result
    }
