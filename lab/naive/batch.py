"""A batch handler that reports failed messages, so that SQS delivers only those again."""

import json
import logging
from collections.abc import Callable
from typing import Any


def one_by_one(work: Callable[[str, dict[str, Any]], None]) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """A Lambda handler that calls `work` with the id and data of each message."""

    def handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
        failed = []
        for record in event["Records"]:
            try:
                work(record["messageId"], json.loads(record["body"])["data"])
            except Exception:
                logging.exception("message %s failed", record["messageId"])
                failed.append({"itemIdentifier": record["messageId"]})
        return {"batchItemFailures": failed}

    return handler
