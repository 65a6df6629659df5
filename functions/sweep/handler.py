"""Sweep: sends again the event that an unfinished order waits for, from its row: same id, same data, always safe.

A stream keeps a day only, and a message can be lost in a queue that was purged or a DLQ that nobody read.
Sent first, noted second: a death in between sends once more.
"""

import enum
import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from shared import aws
from shared.idempotency import telemetry
from shared.idempotency import clock
from shared.idempotency.sending import send
from shared.orders.again import next_post
from shared.orders.repository import Orders, orders
from shared.idempotency.telemetry import logger

OPERATION = "sweep"
THREADS = 10
MOST = 50_000  # orders a run looks at: more than it has time for
DAY_S = 24 * 3600
REQUESTS = 3  # an order is read, sent on, noted


class NotSwept(Exception):
    """Some orders met trouble. The others were served; the next run tries again."""


class End(enum.Enum):
    """What became of one order."""

    SENT = "sent"
    MOVED = "moved"  # it is final, or young again: the index lags behind the row
    NO_TIME = "no time"
    TROUBLE = "trouble"


def handler(_: dict[str, Any], context: Any) -> None:
    """Serve the orders that have not moved for SWEEP_AGE_S seconds, as many as there is time for. Raises NotSwept."""
    deadline_ms = clock.SYSTEM.now_ms() + context.get_remaining_time_in_millis()
    age_s = int(os.environ["SWEEP_AGE_S"])
    run = Run(orders(), json.loads(os.environ["ROUTES"]), age_s, clock.SYSTEM.now_ms() // 1000 - age_s, deadline_ms)
    due = list(islice(run.table.open_before(os.environ["OPEN_ORDERS_INDEX"], run.before_s), MOST))
    with ThreadPoolExecutor(THREADS) as pool:
        ends = Counter(pool.map(run.serve, due))
    left = ends[End.NO_TIME] + ends[End.TROUBLE]
    logger.info("swept", operation=OPERATION, due=len(due), sent=ends[End.SENT], left=left)
    telemetry.count(OPERATION, {telemetry.SENT: ends[End.SENT], telemetry.LEFT: left})
    if ends[End.TROUBLE]:
        raise NotSwept(f"{ends[End.TROUBLE]} of {len(due)} orders")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: orders that have not moved since `before_s` (epoch seconds) are due."""

    table: Orders
    routes: dict[str, str]
    age_s: int
    before_s: int
    deadline_ms: int

    def serve(self, order_id: str) -> End:
        """Serve one order. Its trouble is not its neighbours': it is logged and told."""
        left_s = (self.deadline_ms - clock.SYSTEM.now_ms()) / 1000
        if left_s < REQUESTS * aws.request_s():
            return End.NO_TIME
        try:
            return self._serve(order_id)
        except Exception as error:
            logger.error("not swept", operation=OPERATION, order_id=order_id, error=type(error).__name__)
            return End.TROUBLE

    def _serve(self, order_id: str) -> End:
        order = self.table.get(order_id)
        if order is None or order.open_since is None or order.open_since > self.before_s:
            return End.MOVED
        now_ms = clock.SYSTEM.now_ms()
        post = next_post(order, self.routes, now_ms)
        if post is None:
            return End.MOVED
        event_id = post.event.id
        about: dict[str, Any] = {"correlation_id": order.correlation_id, "event_id": event_id, "operation": OPERATION}
        if refused := send(aws.client("sqs"), [post]):
            logger.error("refused by its queue", code=refused[post].code, **about)
            return End.TROUBLE
        logger.warning("sent again", state=order.state, sweeps=order.sweeps + 1, **about)
        self.table.swept(order, now_ms // 1000 + wait_s(order.sweeps + 1, self.age_s) - self.age_s)
        return End.SENT


def wait_s(sweeps: int, age_s: int) -> int:
    """Seconds until an order is due again that was swept so often since its last move: doubled each time, up to a day.

    What still makes it stick is seldom healed by one more copy, and each may end in a DLQ that a person must read.
    """
    doubled: int = age_s * 2 ** min(sweeps, 20)
    return max(age_s, min(doubled, DAY_S))
