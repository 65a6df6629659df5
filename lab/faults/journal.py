"""A journal of all deliveries, in one file for all variants. The log of a killed worker on a laptop is incomplete.

A worker writes a line when it gets messages, and one when it returns them. A killed worker writes no second line.
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
    """A message that a worker received. Times in epoch milliseconds; `ended_at_ms` is None without a second line."""

    variant: str
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
    """Reads the file incrementally, so that a long run reads each line once."""

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
                        break  # an incomplete line
                    self._read_to += len(line)
                    self._take(json.loads(line))
        return self.deliveries

    def at_work(self, pids: Sequence[int]) -> set[str]:
        """The orders whose messages these workers have now."""
        self.read()
        return {each.order for held in self._open.values() for each in held if each.pid in pids}

    def _take(self, line: Mapping[str, Any]) -> None:
        if "messages" in line:
            variant, function, pid, at_ms = (line[name] for name in ("variant", "function", "pid", "at_ms"))
            taken = [
                Delivery(variant, function, pid, order, message, receive, at_ms)
                for order, message, receive in line["messages"]
            ]
            self._open[line["id"]] = taken
            self.deliveries += taken
            return
        for delivery in self._open.pop(line["id"], ()):
            delivery.ended_at_ms = line["at_ms"]
            delivery.failed = line["failed"] is None or delivery.message in line["failed"]


def journaled(handler: Handler, path: str, variant: str, function: str) -> Handler:
    """A handler that also writes a line to the file at `path` before and after each invocation."""

    def write(**line: Any) -> None:
        text = json.dumps({**line, "at_ms": time.time_ns() // 1_000_000}) + "\n"
        there = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(there, text.encode())  # one write in append mode: lines of two workers do not mix
        finally:
            os.close(there)

    def watched(event: Any, context: Any) -> Any:
        messages = list(_messages(event))
        if not messages:
            return handler(event, context)
        id = uuid.uuid4().hex
        write(id=id, variant=variant, function=function, pid=os.getpid(), messages=messages)
        try:
            answer = handler(event, context)
        except Exception:
            write(id=id, failed=None)  # all messages
            raise
        write(id=id, failed=[each["itemIdentifier"] for each in (answer or {}).get("batchItemFailures", [])])
        return answer

    return watched


def _messages(event: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Order id, message id and receive count of each SQS message. Stream records have no receive count."""
    for record in event.get("Records", ()):
        if "messageId" not in record:
            continue
        try:
            order = str(json.loads(record["body"])["data"]["order_id"])
        except (ValueError, KeyError, TypeError):
            order = ""
        yield order, record["messageId"], int(record["attributes"]["ApproximateReceiveCount"])
