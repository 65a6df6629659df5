"""The limits of each hop: arithmetic on measured units and published limits."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from shared.orders.row import OPEN_SHARDS

from lab.cost.counts import stored
from lab.cost.pricing import seconds_of
from lab.simulate.model import RELAY_BATCH, SEND_BATCH
from lab.simulate.parameters import MAPPING_LIMIT, PROVIDER_PER_S, QUEUES, SES_PER_S, capacity, prod, stages

RATES = (10, 1_000, 100_000)
PARTITION_UNITS = 1_000
NEW_TABLE_UNITS = 4_000
TABLE_UNITS = 40_000
ACCOUNT_CONCURRENCY = 1_000
API_PER_S = 10_000
IN_FLIGHT = 120_000

DYNAMODB = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/"


@dataclass(frozen=True)
class Limit:
    """`orders_per_s`: where it stops us as it is now; `needs_per_order`: `unit` that an order a second takes of it."""

    hop: str
    what: str
    orders_per_s: float
    unit: str
    needs_per_order: float
    moved_by: str
    source: str

    def needs(self, rate: float) -> float:
        return rate * self.needs_per_order


def units(what: str) -> float:
    """Measured units of one order, all stages together."""
    return float(sum(of.get(what, 0) for of in stored()["this-repo"]["alone"]["first"].values()))


def partitions(rate: float) -> int:
    """Partitions of the records' table, and so shards of its stream, at a rate that it has grown to."""
    return max(NEW_TABLE_UNITS, math.ceil(rate * units("write_units of idempotency"))) // PARTITION_UNITS


def relay_per_s() -> float:
    """Records a second that the relay sends on from one shard, one batch after the other, three queues in each."""
    sends = RELAY_BATCH / SEND_BATCH + len(QUEUES) - 1
    return RELAY_BATCH / seconds_of({"sqs.SendMessageBatch": sends, "invocations": 1})


def limits() -> Iterator[Limit]:
    """In the order of the pipeline."""
    settings = prod()
    record, row = units("write_units of idempotency"), units("write_units of orders")
    index = units("index_units")
    yield Limit(
        "API",
        "stage throttle",
        settings.api_rate,
        "requests/s",
        1,
        "`api_rate`, `api_burst`",
        "https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-throttling.html",
    )
    yield Limit(
        "API",
        "account throttle",
        API_PER_S,
        "requests/s",
        1,
        "a quota",
        "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html",
    )
    yield Limit(
        "records table",
        f"new on-demand table, {NEW_TABLE_UNITS:,} units/s; then twice its last peak in 30 minutes",
        NEW_TABLE_UNITS / record,
        "write units/s",
        record,
        "warm throughput, before the day",
        DYNAMODB + "on-demand-capacity-mode.html",
    )
    yield Limit(
        "records table",
        f"{TABLE_UNITS:,} units/s a table",
        TABLE_UNITS / record,
        "write units/s",
        record,
        "a quota",
        DYNAMODB + "ServiceQuotas.html",
    )
    yield Limit(
        "orders table",
        f"{TABLE_UNITS:,} units/s a table",
        TABLE_UNITS / row,
        "write units/s",
        row,
        "a quota",
        DYNAMODB + "ServiceQuotas.html",
    )
    yield Limit(
        "open-orders index",
        f"{OPEN_SHARDS} keys, {PARTITION_UNITS:,} units/s each",
        OPEN_SHARDS * PARTITION_UNITS / index,
        "index units/s",
        index,
        "`OPEN_SHARDS` in shared/orders/row.py",
        DYNAMODB + "bp-partition-key-design.html",
    )
    shards = NEW_TABLE_UNITS // PARTITION_UNITS
    yield Limit(
        "relay",
        f"{shards} shards, one batch at a time in each, {relay_per_s():,.0f} records/s a shard",
        shards * relay_per_s() / len(QUEUES),
        "records/s",
        len(QUEUES),
        "grows with the table; `ParallelizationFactor` of the mapping, up to 10",
        LAMBDA + "services-ddb-params.html",
    )
    for stage in stages(settings):
        flow = f"{stage.workers} workers x {stage.batch} threads"
        needs = stage.workers / capacity(stage)
        yield Limit(
            stage.name,
            f"{flow}, {stage.service_s * 1000:,.0f} ms a message",
            capacity(stage),
            "workers",
            needs,
            f'`throughputs["{QUEUES[stage.name]}"]`, up to {MAPPING_LIMIT:,} workers a mapping',
            LAMBDA + "services-sqs-scaling.html",
        )
    yield Limit(
        "payments",
        "the provider's rate, each endpoint",
        PROVIDER_PER_S,
        "calls/s an endpoint",
        1,
        'the provider, weeks ahead; then `throughputs["payment"]`',
        "https://docs.stripe.com/rate-limits",
    )
    yield Limit(
        "emails",
        "SES's rate, a usual first one",
        SES_PER_S,
        "mails/s",
        1,
        'a quota; then `throughputs["email"]`',
        "https://docs.aws.amazon.com/ses/latest/dg/manage-sending-quotas.html",
    )
    yield Limit(
        "account",
        f"{ACCOUNT_CONCURRENCY:,} workers, all functions",
        ACCOUNT_CONCURRENCY / workers_per_order(),
        "workers",
        workers_per_order(),
        "a quota",
        LAMBDA + "lambda-concurrency.html",
    )


def workers_per_order() -> float:
    """Workers busy for one order a second, as prod is set: the consumers' full batches, the API, the relay."""
    consumers = sum(stage.workers / capacity(stage) for stage in stages(prod()))
    api = seconds_of(stored()["this-repo"]["alone"]["first"]["api"])
    return consumers + api + len(QUEUES) / relay_per_s()
