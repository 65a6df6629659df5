"""Drives orders through a deployed pipeline as fast as it takes them, and checks what became of each."""

import json
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.figure import require
from demo.lanes import Lane
from demo.local.running import Running
from demo.traffic import an_order
from demo.waiting import wait_until
from demo.witness import Ledger, Mailbox, Tables

SENDERS = 4
WITHIN_S = 600.0
LOOK_EVERY_S = 0.1
TOTAL = 2500


class Pipeline:
    """One lane of the deployed apps. `looks`: requests to DynamoDB that the looking itself made."""

    def __init__(self, running: Running, lane: Lane) -> None:
        self.lane = lane
        self.looks = 0
        self._running = lane.of(running)
        self._dynamodb = running.client("dynamodb")
        self._sqs = running.client("sqs")
        self._dynamodb.meta.events.register("before-call", self._looked)
        self._mailed = self._count_mailed()

    def drive(self, order_ids: Sequence[str]) -> float:
        """Seconds from the first order put on the queue until the last is mailed. TimeoutError if that never comes."""
        events = [self.lane.event(order_id, an_order(_address(order_id))) for order_id in order_ids]
        goal = self._mailed + len(order_ids)
        begun = time.perf_counter()
        with ThreadPoolExecutor(SENDERS) as senders:
            for sent in senders.map(self._put, [events[at : at + 10] for at in range(0, len(events), 10)]):
                require(not sent, f"not sent: {sent}")
        what = f"{len(order_ids)} orders of {self.lane.name} to be mailed"

        def all_mailed() -> bool:
            return self._count_mailed() >= goal

        wait_until(all_mailed, deadline_s=WITHIN_S, what=what, every_s=LOOK_EVERY_S)
        took = time.perf_counter() - begun
        self._mailed = goal
        return took

    def check(self, order_ids: Sequence[str]) -> None:
        """Raises WrongEffect unless each of these was paid once, in full, and mailed once."""
        wanted = set(order_ids)
        rows = {row["order_id"]: row for row in Tables(self._running).orders()}
        charges = Counter(
            charge["metadata"]["order_id"]
            for charge in Ledger(self._running).charges()
            if charge["status"] == "succeeded" and charge["amount"] == TOTAL
        )
        mails = Counter(to for mail in Mailbox(self._running).mails() for to in mail.to)
        for order_id in wanted:
            state = rows.get(order_id, {}).get("state")
            mailed = mails[self.lane.address(_address(order_id))]
            require(
                (state, charges[order_id], mailed) == ("paid", 1, 1),
                f"{self.lane.name}: {order_id} is {state}, charged {charges[order_id]} and mailed {mailed} times",
            )

    def _put(self, events: list[dict[str, Any]]) -> list[Any]:
        entries = [{"Id": str(n), "MessageBody": json.dumps(event)} for n, event in enumerate(events)]
        answer = self._sqs.send_message_batch(QueueUrl=self._running.outputs["OrdersQueueUrl"], Entries=entries)
        failed: list[Any] = answer.get("Failed", [])
        return failed

    def _count_mailed(self) -> int:
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=self._running.outputs["OrdersTableName"],
            Select="COUNT",
            FilterExpression="attribute_exists(mailed_at)",
            ConsistentRead=True,
        )
        return sum(page["Count"] for page in pages)

    def _looked(self, **_: Any) -> None:
        self.looks += 1


def _address(order_id: str) -> str:
    return f"{order_id}@example.com"


def order_ids(name: str, count: int) -> list[str]:
    """Ids that no other run has, if `name` is its own."""
    return [f"{name}_{number:05d}" for number in range(count)]
