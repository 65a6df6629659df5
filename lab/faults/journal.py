"""A journal of every delivery, of every lane alike, in one file: on a laptop a worker's last log lines die with it.

A line when a worker gets messages, and one when it gives them back; a worker that was killed writes no second one.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Handler = Callable[[Any, Any], Any]


@dataclass
class Delivery:
    """A message in a worker's hand. Times in epoch milliseconds; `ended_at_ms` is None if the worker never said."""

    lane: str
    function: str
    pid: int
    order: str
    message: str
    receive: int
    at_ms: int
    ended_at_ms: int | None = None
    failed: bool = False


@dataclass
class Journal:
    """`reads` what was added since the last time, so that a long run reads each line once."""

    path: Path
    deliveries: list[Delivery] = field(default_factory=list)
    _open: dict[str, list[Delivery]] = field(default_factory=dict)
    _read_to: int = 0

    def read(self) -> list[Delivery]:
        """All deliveries so far, oldest first."""
        if self.path.exists():
            with self.path.open("rb") as lines:
                lines.seek(self._read_to)
                for line in lines:
                    if not line.endswith(b"\n"):
                        break  # being written just now
                    self._read_to += len(line)
                    self._take(json.loads(line))
        return self.deliveries

    def at_work(self, pids: Sequence[int]) -> set[str]:
        """The orders whose messages these workers hold now."""
        self.read()
        return {each.order for held in self._open.values() for each in held if each.pid in pids}

    def _take(self, line: Mapping[str, Any]) -> None:
        if "messages" in line:
            lane, function, pid, at_ms = (line[name] for name in ("lane", "function", "pid", "at_ms"))
            taken = [
                Delivery(lane, function, pid, order, message, receive, at_ms)
                for order, message, receive in line["messages"]
            ]
            self._open[line["id"]] = taken
            self.deliveries += taken
            return
        for delivery in self._open.pop(line["id"], ()):
            delivery.ended_at_ms = line["at_ms"]
            delivery.failed = line["failed"] is None or delivery.message in line["failed"]


def journaled(handler: Handler, path: str, lane: str, function: str) -> Handler:
    """The same handler, with a line before and after in the file at `path`."""

    def write(**line: Any) -> None:
        text = json.dumps({**line, "at_ms": time.time_ns() // 1_000_000}) + "\n"
        there = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(there, text.encode())  # one write to an appending file: lines of two workers do not mix
        finally:
            os.close(there)

    def watched(event: Any, context: Any) -> Any:
        messages = list(_messages(event))
        if not messages:
            return handler(event, context)
        id = uuid.uuid4().hex
        write(id=id, lane=lane, function=function, pid=os.getpid(), messages=messages)
        try:
            answer = handler(event, context)
        except Exception:
            write(id=id, failed=None)  # all of them
            raise
        write(id=id, failed=[each["itemIdentifier"] for each in (answer or {}).get("batchItemFailures", [])])
        return answer

    return watched


def _messages(event: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Order, id and receive count of each SQS message; streams do not count their deliveries."""
    for record in event.get("Records", ()):
        if "messageId" not in record:
            continue
        try:
            order = str(json.loads(record["body"])["data"]["order_id"])
        except (ValueError, KeyError, TypeError):
            order = ""
        yield order, record["messageId"], int(record["attributes"]["ApproximateReceiveCount"])
