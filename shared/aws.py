"""boto3 clients: one of each kind a process, made when first used, with explicit timeouts."""

import os
import threading
from typing import Any, Literal

import boto3
from botocore.config import Config

# Those that functions call. The layer ships what describes these and no other (stacks/constructs/assets.py).
Service = Literal["dynamodb", "s3", "secretsmanager", "sesv2", "sqs"]


def request_s() -> float:
    """The longest that one request takes, in seconds: connect, then read, no retry of botocore's own."""
    return float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]) + float(os.environ["CLIENT_READ_TIMEOUT_S"])


_clients: dict[str, Any] = {}
_making = threading.Lock()


def client(service: Service) -> Any:
    """The process's client of a service. Threads that ask at once get one, not one each: each takes 50 ms to make."""
    with _making:
        if service not in _clients:
            _clients[service] = make_client(service)
        return _clients[service]


def make_client(service: Service) -> Any:
    """A client with our timeouts; boto3's defaults of 60 s and several tries would outlive any lease.

    botocore does not retry: it would hide whether an answer was lost or the request refused, and it knows no
    deadline. DynamoDB writes are sent again by the store, everything else with its message.

    Two things that botocore does anew for each request, and that take 40% of its time, are spared (`make bench`):
    to check parameters, whose form is fixed by our code and which AWS checks itself, and to compose who we are.
    """
    config = Config(
        connect_timeout=float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]),
        read_timeout=float(os.environ["CLIENT_READ_TIMEOUT_S"]),
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=50,  # more than any runner has threads: a thread never waits for a connection
        parameter_validation=False,
        user_agent=f"Boto3/{boto3.__version__} effectively-once",
    )
    return boto3.client(service, config=config)
