"""What the sandbox takes from its host: time, AWS clients, the API key and the end of the worker.

The sandbox does not use the clock of the layer's runtime. Tests run the sandbox and its caller in one process, and
replace the functions of this module for the sandbox alone.
"""

import os
import time
from functools import cache
from typing import Any

from shared.idempotency import client


def now() -> float:
    """Return epoch seconds."""
    return time.time()


def wait(seconds: float) -> None:
    """Keep the caller waiting."""
    time.sleep(seconds)


def die() -> None:
    """End the worker at once: no `finally` block runs, no key is freed, no answer is sent.

    A function behind a URL cannot close its caller's connection. Both platforms (AWS and MiniStack) answer 502 without
    a Stripe error if the worker ends. The effect stands, and the caller does not learn the outcome. Neither platform
    repeats the invocation, because Lambda does not retry synchronous invocations.
    """
    os._exit(1)


def dynamodb() -> Any:
    """Return the DynamoDB client."""
    return client("dynamodb")


@cache
def secret(arn: str) -> str:
    """Return the value of a secret. A worker fetches each secret once."""
    value: str = client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    return value
