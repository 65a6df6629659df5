"""What a function needs to run steps, made once a process from its environment."""

import functools
import os
import random
from typing import TYPE_CHECKING

import msgspec

from shared import aws
from shared.idempotency import clock as clocks
from shared.idempotency.clock import Clock
from shared.idempotency.engine import Engine
from shared.idempotency.events import BODY_LIMIT_BYTES
from shared.idempotency.store import Store

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@functools.cache
def engine() -> Engine:
    """The process's engine. Raises KeyError naming the variable that is not set."""
    store = Store(
        client=aws.client("dynamodb"),
        table=os.environ["IDEMPOTENCY_TABLE"],
        clock=clocks.SYSTEM,
        rng=random.SystemRandom(),
        ttl_s=int(os.environ["RECORD_TTL_S"]),
        request_s=aws.request_s(),
    )
    return Engine(store=store, clock=clocks.SYSTEM, skew_s=float(os.environ["LEASE_SKEW_S"]))


class Consumer(msgspec.Struct, frozen=True):
    """What a queue's consumer needs beside the engine."""

    engine: Engine
    queue_url: str
    dlq_url: str
    concurrency: int  # steps at a time
    step_needs_s: float  # the longest that a step takes: with less left it is not started
    backoff_base_s: int
    backoff_cap_s: int
    body_limit_bytes: int  # a larger message is parked unread
    clock: Clock
    rng: random.Random

    @property
    def sqs(self) -> "SQSClient":
        """Made when the first message is parked or put off: an invocation that goes well needs none."""
        client: SQSClient = aws.client("sqs")
        return client


@functools.cache
def consumer() -> Consumer:
    """The process's consumer. Raises KeyError naming the variable that is not set."""
    return Consumer(
        engine=engine(),
        queue_url=os.environ["QUEUE_URL"],
        dlq_url=os.environ["DLQ_URL"],
        concurrency=int(os.environ["CONCURRENCY"]),
        step_needs_s=float(os.environ["STEP_NEEDS_S"]),
        backoff_base_s=int(os.environ["BACKOFF_BASE_S"]),
        backoff_cap_s=int(os.environ["BACKOFF_CAP_S"]),
        body_limit_bytes=int(os.environ.get("BODY_LIMIT_BYTES", BODY_LIMIT_BYTES)),
        clock=clocks.SYSTEM,
        rng=random.SystemRandom(),
    )
