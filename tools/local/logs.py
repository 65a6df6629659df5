"""The log lines of functions on the local AWS, and the counts in their metric lines (EMF)."""

import json
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tools.local.local_deployment import LocalDeployment

Line = dict[str, Any]


def flush(running: LocalDeployment, function_name: str) -> None:
    """Invoke all workers of the function: MiniStack may deliver the last lines of a worker with its next call only."""
    client = running.client("lambda")

    def call(_: int) -> None:
        client.invoke(FunctionName=function_name, Payload=b'{"Records": []}')

    workers = len(running.workers(function_name))
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:  # at once, so that each call gets another worker
        list(pool.map(call, range(workers)))


def lines(running: LocalDeployment, function_name: str) -> list[Line]:
    """Return all JSON lines that the function logged, oldest first."""
    return [line for text in texts(running, function_name) if (line := _parsed(text)) is not None]


def texts(running: LocalDeployment, function_name: str) -> list[str]:
    """Return all lines that the function logged, oldest first."""
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


def counts(lines: Iterable[Line]) -> Counter[tuple[str, str]]:
    """Return the sums of all metrics in the EMF lines, by operation and name.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    sums: Counter[tuple[str, str]] = Counter()
    for line in lines:
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
