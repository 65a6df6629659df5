"""Sweep: sends the event that an unfinished order waits for again, read from its row.

A stream keeps records for one day, and a message can be lost with a purged queue or an unread DLQ.
The event has the same id and data each time, so sending it again is always safe. It is sent first and recorded second:
a death between the two sends it once more.
"""

import enum
import json
import os
from collections import Counter
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shared.idempotency import client, epoch_ms, logger, request_s, reserve_s, runtime, send, telemetry
from shared.orders import OPEN_SHARDS, Orders, orders, pending_messages

OPERATION = "sweep"
THREADS = 10
DAY_S = 24 * 3600
PASSES = 2  # a shard that could not be read is read once more at the end


class NotSwept(Exception):
    """Some orders or shards failed. The others were served, and the next run tries again."""


class End(enum.Enum):
    """What the sweep did with one order."""

    SENT = "sent"
    MOVED = "moved"  # the order is final or has just moved: the index is behind the row
    NO_TIME = "no time"
    FAILED = "failed"


def handler(_: dict[str, Any], context: Any) -> None:
    """Serve the orders that have not moved for SWEEP_AGE_S seconds, until the deadline.

    The index is read shard by shard from a random start, so that no shard is always last. A shard that cannot be read
    delays its own orders only. Raises NotSwept if an order or a shard failed.
    """
    deadline_ms = epoch_ms() + context.get_remaining_time_in_millis() - int(reserve_s() * 1000)
    age_s = int(os.environ["SWEEP_AGE_S"])
    run = Run(orders(), json.loads(os.environ["ROUTES"]), age_s, epoch_ms() // 1000 - age_s, deadline_ms)
    start = runtime.current().rng.randint(0, OPEN_SHARDS - 1)
    shards = [*range(start, OPEN_SHARDS), *range(start)]
    with runtime.current().pool(THREADS) as pool:
        for _pass in range(PASSES):
            shards = [shard for shard in shards if not run.serve_shard(shard, pool)]
    left = run.ends[End.NO_TIME] + run.ends[End.FAILED] + len(shards)
    logger.info("swept", operation=OPERATION, due=run.ends.total(), sent=run.ends[End.SENT], left=left)
    telemetry.count(OPERATION, {telemetry.SENT: run.ends[End.SENT], telemetry.LEFT: left})
    if run.ends[End.FAILED] or (shards and run.has_time()):
        raise NotSwept(f"{run.ends[End.FAILED]} of {run.ends.total()} orders, {len(shards)} of {OPEN_SHARDS} shards")


@dataclass(frozen=True, slots=True)
class Run:
    """One run. Orders that have not moved since `before_s` (epoch seconds) are due."""

    table: Orders
    routes: dict[str, str]
    age_s: int
    before_s: int
    deadline_ms: int
    ends: Counter[End] = field(default_factory=Counter)

    def serve_shard(self, shard: int, pool: Executor) -> bool:
        """Serve the due orders of one shard. Returns whether all of its pages were read in time."""
        if not self.has_time():
            return False
        try:
            for page in self.table.open_before(os.environ["OPEN_ORDERS_INDEX"], shard, self.before_s):
                self.ends.update(pool.map(self.serve, page))
                if not self.has_time():
                    return False
        except (BotoCoreError, ClientError) as error:
            logger.error("shard not read", operation=OPERATION, shard=shard, error=type(error).__name__)
            return False
        return True

    def has_time(self) -> bool:
        """Return whether one more order can be served before the deadline.

        The requests for one order: read it, send its event to each consumer, record that.
        """
        sends = max(len(urls.split()) for urls in self.routes.values())
        return self.deadline_ms - epoch_ms() >= (2 + sends) * request_s() * 1000

    def serve(self, order_id: str) -> End:
        """Serve one order. Its failure is logged and counted, and does not affect other orders."""
        if not self.has_time():
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
        messages = pending_messages(order, self.routes, now_ms)
        if not messages:
            return End.MOVED
        for message in messages:
            ids: dict[str, Any] = {"correlation_id": order.correlation_id, "event_id": message.event.id}
            if refused := send(client("sqs"), [message]):
                logger.error("refused by its queue", operation=OPERATION, code=refused[message].code, **ids)
                return End.FAILED
            logger.warning("sent again", operation=OPERATION, state=order.state, sweeps=order.sweeps + 1, **ids)
        self.table.record_sweep(order, now_ms // 1000 + wait_s(order.sweeps + 1, self.age_s) - self.age_s)
        return End.SENT


def wait_s(sweeps: int, age_s: int) -> int:
    """Return the seconds until an order is due again, by the number of sweeps since its last move.

    The wait doubles up to a day. One more copy seldom helps an order that is still stuck, and each copy may end in a
    DLQ that a person must read.
    """
    doubled: int = age_s * 2 ** min(sweeps, 20)
    return max(age_s, min(doubled, DAY_S))
