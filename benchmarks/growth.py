"""Does an order cost the same when there are many? Time and requests an order, at each size, in one deployed app."""

import os
import re
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.driving import Pipeline, order_ids
from benchmarks.environment import quiet
from benchmarks.figure import Figure, Verdict, require
from demo.lanes import OURS
from demo.local.stack import LocalStack

GOAL = 1.10
SIZES = (100, 1_000, 10_000)
REQUEST = re.compile(r"-> service=(\w+) ")


def measure(quick: bool) -> Figure:
    """`GROWTH_ORDERS=100,1000,10000` names other sizes. Requests are counted in MiniStack's log."""
    given = os.environ.get("GROWTH_ORDERS")
    sizes = tuple(int(size) for size in given.split(",")) if given else (20, 40) if quick else SIZES
    os.environ["LOG_LEVEL"] = "DEBUG"  # MiniStack's
    rows = []
    with tempfile.TemporaryDirectory() as directory, quiet(), LocalStack(Path(directory) / "local") as running:
        log = Path(directory) / "local" / "ministack.log"
        pipeline = Pipeline(running, OURS)
        pipeline.drive(order_ids("warm", 50))
        for size in sizes:
            ids = order_ids(f"ord_{size}", size)
            before, asked = _requests(log), pipeline.asked.copy()
            took = pipeline.drive(ids)
            sent = _requests(log) - before - (pipeline.asked - asked)
            pipeline.check(ids)
            require(sent["dynamodb"] >= 8 * size, f"{sent} requests logged for {size} orders: fewer than there must be")
            rows.append(
                {
                    "orders": size,
                    "ms an order": round(took / size * 1000, 2),
                    "requests an order": round(sum(sent.values()) / size, 2),
                    **{f"{service} an order": round(count / size, 2) for service, count in sorted(sent.items())},
                }
            )
    first, last = rows[0], rows[-1]
    return Figure(
        "growth",
        "Time and requests an order, as the number of orders grows",
        rows,
        [(f"{row['orders']:,} orders", float(row["ms an order"])) for row in rows],
        "ms an order",
        [
            Verdict(
                f"{what} at {last['orders']:,} over {first['orders']:,} orders",
                round(last[what] / first[what], 3),
                GOAL,
            )
            for what in ("ms an order", "requests an order")
        ],
        (
            (
                "Requests of all functions, the payment sandbox's own included. Relay and consumers take what is there "
                "in batches, so that a fuller queue needs fewer."
            ),
            "From the first order put on the queue to the last mail: in a small run, start and end have a large share.",
        ),
    )


def _requests(log: Path) -> Counter[str]:
    return Counter(REQUEST.findall(log.read_text(errors="replace")))
