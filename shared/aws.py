"""boto3 clients: one of each kind a process, made when first used, with explicit timeouts."""

import functools
import os
from typing import Any

import boto3
from botocore.config import Config


def request_s() -> float:
    """The longest that one request takes, in seconds: connect, then read, no retry of botocore's own."""
    return float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]) + float(os.environ["CLIENT_READ_TIMEOUT_S"])


@functools.cache
def client(service: str) -> Any:
    """The process's client of a service; boto3's defaults of 60 s and several tries would outlive any lease.

    botocore does not retry: it would hide whether an answer was lost or the request refused, and it knows no
    deadline. DynamoDB writes are sent again by the store, everything else with its message.
    """
    config = Config(
        connect_timeout=float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]),
        read_timeout=float(os.environ["CLIENT_READ_TIMEOUT_S"]),
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=50,  # more than any runner has threads: a thread never waits for a connection
    )
    return boto3.client(service, config=config)  # type: ignore[call-overload]
