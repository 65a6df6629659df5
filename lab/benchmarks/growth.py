"""Does an order cost the same when there are many? Time and requests an order, at each size, in one deployed app."""

import os
import re
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.local.running import Running
from tools.local.stack import LocalStack

from lab.benchmarks.driving import Pipeline, order_ids
from lab.benchmarks.environment import quiet
from lab.benchmarks.figure import Figure, Verdict, require
from lab.demo.lanes import OURS

GOAL = 1.10
AT_ONCE = 20  # orders
RECENT = 25  # times so many
BARE = 200  # times the bare requests
WARM = 300  # orders before the first that counts: a cold emulator and cold workers would flatter all that follows
SIZES = (100, 1_000, 10_000)
REQUEST = re.compile(r"-> service=(\w+) ")


def measure(quick: bool) -> Figure:
    """`GROWTH_ORDERS=100,1000,10000` names other sizes. Requests are counted in MiniStack's log."""
    given = os.environ.get("GROWTH_ORDERS")
    sizes = tuple(int(size) for size in given.split(",")) if given else (20, 40) if quick else SIZES
    at_once = min(AT_ONCE, sizes[0])
    os.environ["LOG_LEVEL"] = "DEBUG"  # MiniStack's
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory, quiet(), LocalStack(Path(directory) / "local") as running:
        log = Path(directory) / "local" / "ministack.log"
        pipeline = Pipeline(running, OURS)
        for number in range(1 if quick else WARM // at_once):
            pipeline.drive(order_ids(f"warm_{number}", at_once))
        took: list[float] = []
        for size in sizes:
            before, asked, seen = _requests(log), pipeline.asked.copy(), len(took)
            while len(took) * at_once < size:
                ids = order_ids(f"ord_{len(took)}", at_once)
                took.append(pipeline.drive(ids))
            sent = _requests(log) - before - (pipeline.asked - asked)
            pipeline.check(ids)
            orders = (len(took) - seen) * at_once
            require(sent["dynamodb"] >= 8 * orders, f"{sent} requests for {orders} orders: fewer than there must be")
            each_ms, bare_ms = statistics.median(took[-RECENT:]) / at_once * 1000, _bare_ms(OURS.of(running))
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
            Verdict(
                f"{what} at {last['orders so far']} over {first['orders so far']} orders",
                round(last[what] / first[what], 3),
                GOAL,
            )
            for what in ("ms an order", "order over bare", "requests an order")
        ],
        (
            (
                f"{at_once} at a time, the next when all are mailed: the emulator's queues get slower as they get "
                "deeper, SQS's do not."
            ),
            (
                f"Time: the median of the last {RECENT} times {at_once}, where there are as many. Requests: all "
                "functions', from the size before on, the payment sandbox's own included."
            ),
            (
                "Bare: four requests of a step's kinds, one after the other by boto3 alone, in the same tables when "
                "they are as full and nothing else is done: whether it is the emulator that gets slower."
            ),
        ),
    )


def _bare_ms(running: Running) -> float:
    """Milliseconds of four requests on our tables, made by nobody but this: a put, an update, a transaction, a get."""
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
