"""Sends the events of completed records again, as a relay does that died before it could note that it had sent."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from demo.local.running import Running
from demo.witness import Queues, Tables

QUEUE_OF = {
    "order.requested": "Orders",
    "order.placed": "Payments",
    "order.paid": "Emails",
    "order.declined": "Emails",
}
AT_ONCE = 6


class Echo:
    """Each record's events once more, and no oftener."""

    def __init__(self, running: Running) -> None:
        self._tables = Tables(running)
        self._queues = Queues(running)
        self._done: set[str] = set()

    def again(self) -> int:
        """Answers how many events were sent."""
        events = []
        for record in self._tables.records():
            if record["status"] != "COMPLETED" or not record.get("outbox") or record["id"] in self._done:
                continue
            self._done.add(record["id"])
            events += [entry["event"] for entry in json.loads(record["outbox"])]
        with ThreadPoolExecutor(AT_ONCE) as at_once:
            list(at_once.map(self._send, events))
        return len(events)

    def _send(self, event: dict[str, Any]) -> None:
        self._queues.send(QUEUE_OF[event["type"]], json.dumps(event))
