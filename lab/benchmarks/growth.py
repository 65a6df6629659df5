"""Time and requests of an order as the number of orders grows, in one deployed app."""

import os
import re
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.local.local_deployment import LocalDeployment
from tools.local.stack import LocalStack

from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, GoalResult, require
from lab.benchmarks.pipeline_driver import Pipeline, order_ids
from lab.variants import THIS_REPO

GOAL = 1.10
AT_ONCE = 20  # orders
RECENT = 25  # rounds
BARE = 200  # rounds of bare requests
WARM = 300  # orders before the first measured one: the emulator and the workers are cold
SIZES = (100, 1_000, 10_000)
REQUEST = re.compile(r"-> service=(\w+) ")


def measure(quick: bool) -> Figure:
    """Measure at each size. `GROWTH_ORDERS=100,1000,10000` sets other sizes. Requests come from MiniStack's log."""
    chosen_sizes = os.environ.get("GROWTH_ORDERS")
    sizes = tuple(int(size) for size in chosen_sizes.split(",")) if chosen_sizes else (20, 40) if quick else SIZES
    at_once = min(AT_ONCE, sizes[0])
    os.environ["LOG_LEVEL"] = "DEBUG"  # MiniStack's
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory, quiet(), LocalStack(Path(directory) / "local") as running:
        log = Path(directory) / "local" / "ministack.log"
        pipeline = Pipeline(running, THIS_REPO)
        for number in range(1 if quick else WARM // at_once):
            pipeline.drive(order_ids(f"warm_{number}", at_once))
        took: list[float] = []
        for size in sizes:
            before, arguments, rounds_before = _requests(log), pipeline.arguments.copy(), len(took)
            while len(took) * at_once < size:
                ids = order_ids(f"ord_{len(took)}", at_once)
                took.append(pipeline.drive(ids))
            sent = _requests(log) - before - (pipeline.arguments - arguments)
            pipeline.check(ids)
            orders = (len(took) - rounds_before) * at_once
            require(sent["dynamodb"] >= 8 * orders, f"{sent} requests for {orders} orders: fewer than there must be")
            each_ms, bare_ms = statistics.median(took[-RECENT:]) / at_once * 1000, _bare_ms(THIS_REPO.of(running))
            rows.append(
                {
                    "orders so far": f"{size:,}",
                    "ms an order": round(each_ms, 2),
                    "ms of bare requests": round(bare_ms, 2),
                    "order over bare": round(each_ms / bare_ms, 2),
                    "requests an order": round(sum(sent.values()) / orders, 2),
                    **{f"{service} an order": round(count / orders, 2) for service, count in sorted(sent.items())},
                }
            )
    first, last = rows[0], rows[-1]
    return Figure(
        "growth",
        "Time and requests an order, as the number of orders grows",
        rows,
        [(f"{row['orders so far']} orders", float(row["ms an order"])) for row in rows],
        "ms an order",
        [
            GoalResult(
                f"{what} at {last['orders so far']} over {first['orders so far']} orders",
                round(last[what] / first[what], 3),
                GOAL,
            )
            for what in ("ms an order", "order over bare", "requests an order")
        ],
        (
            f"{at_once} orders at a time, and the next when all are emailed: deep queues make the emulator slow.",
            f"Time: the median of the last {RECENT} rounds. Requests: those of all functions since the previous size.",
            "Bare: four requests of a step's kinds by boto3 alone, in the same tables: is it the emulator that slows?",
        ),
    )


def _bare_ms(running: LocalDeployment) -> float:
    """Milliseconds of four bare requests: a put, an update, a transaction and a get."""
    dynamodb = running.client("dynamodb")
    records, rows = running.outputs["IdempotencyTableName"], running.outputs["OrdersTableName"]
    taken = []
    for number in range(BARE):
        record, row = {"id": {"S": f"bare#{number}"}}, {"order_id": {"S": f"bare_{number}"}}
        begun = time.perf_counter()
        dynamodb.put_item(TableName=records, Item=record)
        dynamodb.update_item(
            TableName=records,
            Key=record,
            UpdateExpression="SET attempt = :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )
        deletes = [{"Delete": {"TableName": records, "Key": record}}, {"Delete": {"TableName": rows, "Key": row}}]
        dynamodb.transact_write_items(TransactItems=deletes)
        dynamodb.get_item(TableName=rows, Key=row, ConsistentRead=True)
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.median(taken)


def _requests(log: Path) -> Counter[str]:
    return Counter(REQUEST.findall(log.read_text(errors="replace")))
