"""What the functions themselves said: their log lines and the counts in their metric lines (EMF)."""

import json
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.local.running import Running

Line = dict[str, Any]


def flush(running: Running, function_name: str) -> None:
    """Have the function say its last words: MiniStack may hand a worker's last lines on only with its next call."""
    client = running.client("lambda")

    def call(_: int) -> None:
        client.invoke(FunctionName=function_name, Payload=b'{"Records": []}')

    workers = len(running.workers(function_name))
    with ThreadPoolExecutor(max_workers=max(1, workers)) as at_once:  # so that each goes to another worker
        list(at_once.map(call, range(workers)))


def lines(running: Running, function_name: str) -> list[Line]:
    """All JSON lines that the function logged, oldest first; other lines are left out."""
    return [line for text in texts(running, function_name) if (line := _parsed(text)) is not None]


def texts(running: Running, function_name: str) -> list[str]:
    """All lines that the function logged, oldest first."""
    configuration = running.client("lambda").get_function_configuration(FunctionName=function_name)
    group = configuration.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{function_name}")
    logs = running.client("logs")
    found: list[str] = []
    if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
        return found
    for page in logs.get_paginator("filter_log_events").paginate(logGroupName=group):
        for event in page["events"]:
            found += event["message"].splitlines()
    return found


def counts(said: Iterable[Line]) -> Counter[tuple[str, str]]:
    """The sums of all metrics, by operation and name, from the EMF lines among these.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    sums: Counter[tuple[str, str]] = Counter()
    for line in said:
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
            for metric in directive["Metrics"]:
                value = line[metric["Name"]]
                sums[line.get("operation", ""), metric["Name"]] += int(sum(value) if isinstance(value, list) else value)
    return sums


def _parsed(text: str) -> Line | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
