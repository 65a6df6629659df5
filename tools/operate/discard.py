"""Deletes parked messages of one reason, each kept in a file first: whenever it ends, nothing is lost."""

import base64
import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.operate.deployment import Deployment
from tools.operate.dlq import look
from tools.operate.parked import visit
from tools.operate.redrive import resent


@dataclass(frozen=True)
class Discarded:
    """So many messages are gone from the DLQ, and lie in the file."""

    queue: str
    reason: str
    count: int
    file: Path


def file_of(deployment: Deployment) -> Path:
    """Outside the clone, where neither git nor `make down` sees it."""
    return Path.home() / f"effectively-once-{deployment.stage}-discarded.jsonl"


def candidates(deployment: Deployment, queue: str, reason: str) -> list[str]:
    """Ids of the messages that are parked for this reason now."""
    return [message.message_id for message in look(deployment, queue).messages if message.reason == reason]


def discard(deployment: Deployment, queue: str, reason: str, message_ids: Collection[str]) -> Discarded:
    """Keep and delete these messages. One is in the file twice if it ended in between, and none is in neither place."""
    sqs, url, path = deployment.client("sqs"), deployment.dlq_url(queue), file_of(deployment)
    left = set(message_ids)
    with visit(sqs, url) as walk:
        for message in walk.messages():
            if message["MessageId"] in left:
                _keep(path, json.dumps(resent(message, url), default=_binary))
                walk.remove(message)
                left.remove(message["MessageId"])
            if not left:
                break
    return Discarded(queue, reason, len(message_ids) - len(left), path)


def _keep(path: Path, line: str) -> None:
    """Append a line that only its owner may read, and have it on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(file, "a", encoding="utf-8") as out:
        os.fchmod(out.fileno(), 0o600)  # it may have been there
        out.write(line + "\n")
        out.flush()
        os.fsync(out.fileno())


def _binary(value: bytes) -> str:
    """As the AWS CLI reads it."""
    return base64.b64encode(value).decode()


def report(deployment: Deployment, done: Discarded) -> dict[str, Any]:
    """Machine-readable."""
    return {
        "stage": deployment.stage,
        "queue": done.queue,
        "reason": done.reason,
        "discarded": done.count,
        "file": str(done.file),
    }
