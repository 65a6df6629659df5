"""The environment of functions in a benchmark: as the stacks set it, with addresses that lead nowhere."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/"
ROUTES = (
    '{"order.requested": "%sorders", "order.placed": "%spayments", "order.paid": "%semails", '
    '"order.declined": "%semails"}' % ((QUEUE_URL,) * 4)
)
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "STAGE": "benchmark",
    "POWERTOOLS_SERVICE_NAME": "benchmark",
    "POWERTOOLS_METRICS_NAMESPACE": "EffectivelyOnce",
    "CLIENT_CONNECT_TIMEOUT_S": "1",
    "CLIENT_READ_TIMEOUT_S": "2",
    "IDEMPOTENCY_TABLE": "idempotency",
    "ORDERS_TABLE": "orders",
    "OPEN_ORDERS_INDEX": "open-orders",
    "RECORD_TTL_S": str(30 * 86400),
    "LEASE_SKEW_S": "2",
    "STEP_NEEDS_S": "10",
    "RESERVE_S": "9.25",
    "BACKOFF_BASE_S": "2",
    "BACKOFF_CAP_S": "900",
    "CONCURRENCY": "10",  # the largest batch, that of the order function
    "QUEUE_URL": QUEUE_URL + "payments",
    "DLQ_URL": QUEUE_URL + "payments-dlq",
    "NEXT_QUEUE_URL": QUEUE_URL + "emails",
    "RECEIPTS_BUCKET": "receipts",
    "SENDER": "shop@example.com",
    "ROUTES": ROUTES,
    "SWEEP_AGE_S": "3600",
    "PROVIDER_URL": "http://127.0.0.1:1",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:provider",
    "PROVIDER_CONNECT_TIMEOUT_S": "2",
    "PROVIDER_READ_TIMEOUT_S": "10",
    "PROVIDER_LIVEMODE": "false",
    "STRIPE_API_KEY": "sk_test_benchmark",
}


def clean() -> dict[str, str]:
    """The environment of a new process, without other AWS settings."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "POWERTOOLS_"))}
    return others | ENVIRONMENT | {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def enter() -> None:
    """Set the environment of this process. Call it before the first import from `functions`."""
    environment = clean()
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


@contextmanager
def quiet() -> Iterator[None]:
    """Write log lines and metrics to the null device."""
    from shared.idempotency import logger  # reads the environment

    handlers: list[Any] = logger.handlers
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        before = [handler.setStream(nowhere) for handler in handlers]
        try:
            yield
        finally:
            for handler, stream in zip(handlers, before, strict=True):
                handler.setStream(stream or sys.__stdout__)
