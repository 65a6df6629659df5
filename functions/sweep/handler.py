"""Sweep: sends the event that an unfinished order waits for again, read from its row.

A stream keeps records for one day, and a message can be lost with a purged queue or an unread DLQ.
The event has the same id and data each time, so sending it again is always safe. It is sent first and recorded second:
a death between the two sends it once more.
"""

import enum
import json
import os
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

from shared.idempotency import client, epoch_ms, logger, request_s, runtime, send, telemetry
from shared.orders import Orders, orders, pending_message

OPERATION = "sweep"
THREADS = 10
MAX_ORDERS = 50_000  # in one run: more than it has time for
DAY_S = 24 * 3600
REQUESTS = 3  # for one order: read it, send its event, record that


class NotSwept(Exception):
    """Some orders failed. The others were served, and the next run tries again."""


class End(enum.Enum):
    """What the sweep did with one order."""

    SENT = "sent"
    MOVED = "moved"  # the order is final or has just moved: the index is behind the row
    NO_TIME = "no time"
    FAILED = "failed"


def handler(_: dict[str, Any], context: Any) -> None:
    """Serve the orders that have not moved for SWEEP_AGE_S seconds, until the deadline. Raises NotSwept."""
    deadline_ms = epoch_ms() + context.get_remaining_time_in_millis()
    age_s = int(os.environ["SWEEP_AGE_S"])
    run = Run(orders(), json.loads(os.environ["ROUTES"]), age_s, epoch_ms() // 1000 - age_s, deadline_ms)
    due = list(islice(run.table.open_before(os.environ["OPEN_ORDERS_INDEX"], run.before_s), MAX_ORDERS))
    with runtime.current().pool(THREADS) as pool:
        ends = Counter(pool.map(run.serve, due))
    left = ends[End.NO_TIME] + ends[End.FAILED]
    logger.info("swept", operation=OPERATION, due=len(due), sent=ends[End.SENT], left=left)
    telemetry.count(OPERATION, {telemetry.SENT: ends[End.SENT], telemetry.LEFT: left})
    if ends[End.FAILED]:
        raise NotSwept(f"{ends[End.FAILED]} of {len(due)} orders")


@dataclass(frozen=True, slots=True)
class Run:
    """One run. Orders that have not moved since `before_s` (epoch seconds) are due."""

    table: Orders
    routes: dict[str, str]
    age_s: int
    before_s: int
    deadline_ms: int

    def serve(self, order_id: str) -> End:
        """Serve one order. Its failure is logged and counted, and does not affect other orders."""
        left_s = (self.deadline_ms - epoch_ms()) / 1000
        if left_s < REQUESTS * request_s():
            return End.NO_TIME
        try:
            return self._serve(order_id)
        except Exception as error:
            logger.error("not swept", operation=OPERATION, order_id=order_id, error=type(error).__name__)
            return End.FAILED

    def _serve(self, order_id: str) -> End:
        order = self.table.get(order_id)
        if order is None or order.open_since is None or order.open_since > self.before_s:
            return End.MOVED
        now_ms = epoch_ms()
        message = pending_message(order, self.routes, now_ms)
        if message is None:
            return End.MOVED
        event_id = message.event.id
        ids: dict[str, Any] = {"correlation_id": order.correlation_id, "event_id": event_id, "operation": OPERATION}
        if refused := send(client("sqs"), [message]):
            logger.error("refused by its queue", code=refused[message].code, **ids)
            return End.FAILED
        logger.warning("sent again", state=order.state, sweeps=order.sweeps + 1, **ids)
        self.table.record_sweep(order, now_ms // 1000 + wait_s(order.sweeps + 1, self.age_s) - self.age_s)
        return End.SENT


def wait_s(sweeps: int, age_s: int) -> int:
    """Return the seconds until an order is due again, by the number of sweeps since its last move.

    The wait doubles up to a day. One more copy seldom helps an order that is still stuck, and each copy may end in a
    DLQ that a person must read.
    """
    doubled: int = age_s * 2 ** min(sweeps, 20)
    return max(age_s, min(doubled, DAY_S))
