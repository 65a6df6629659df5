"""The operator's commands over the application in one process: the same tables, queues and ledger."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from shared.idempotency import client
from shared.idempotency.runtime import Service
from tests.harness import samples
from tests.harness.driver import SWEEP_AGE_S, pipeline
from tests.harness.moto_world import World
from tests.harness.observations import mailbox
from tests.harness.payment import Payments
from tests.harness.payment_fixtures import payments, provider_connection
from tools import queues
from tools.operate.audit import Audit, Auditor
from tools.operate.deployment import Deployment
from tools.progress import Steps

__all__ = ["mailbox", "payments", "pipeline", "provider_connection"]


QUEUES = ("orders", "payments", "emails")
FUNCTIONS = ("api", "order", "payment", "email", "relay", "sweep")


@dataclass
class Lambda:
    """Lambda's answers about the functions, as CloudFormation left them."""

    told: Mapping[str, Mapping[str, str]]

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        return {
            "FunctionName": FunctionName,
            "Environment": {"Variables": self.told[FunctionName]},
            "LoggingConfig": {"LogGroup": f"logs-of-{FunctionName}"},
        }


@dataclass
class Logs:
    """CloudWatch Logs, as far as a quoted phrase finds a line. (moto refuses events of the test's own time.)"""

    groups: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def get_paginator(self, operation: str) -> "Logs":
        assert operation == "filter_log_events"
        return self

    def paginate(self, *, logGroupName: str, startTime: int, filterPattern: str) -> Any:  # noqa: N803
        if logGroupName not in self.groups:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "FilterLogEvents")
        assert re.fullmatch(r'"[^"\\]+"', filterPattern), filterPattern
        for event in self.groups[logGroupName]:  # a page each, as where there are many
            found = event["timestamp"] >= startTime and filterPattern[1:-1] in event["message"]
            yield {"events": [event] if found else []}


@dataclass
class Session:
    """boto3's session, with the world's clients."""

    functions: Lambda
    logs: Logs = field(default_factory=Logs)

    def client(self, service: str, **_: Any) -> Any:
        match service:
            case "lambda":
                return self.functions
            case "logs":
                return self.logs
        return client(cast(Service, service))


@pytest.fixture(autouse=True)
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto has one server, and would wait in real time."""
    monkeypatch.setattr(queues, "WAIT_S", 0)


@pytest.fixture
def deployment(world: World, payments: Payments) -> Deployment:  # noqa: ARG001 - `payments` sets its own address
    """The stage as deployed; the DLQs are there by now."""
    for name in QUEUES:
        world.queues[f"{name}-dlq"] = world.sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
    told = {
        **{name: {} for name in FUNCTIONS},
        "order": {"RECORD_TTL_S": os.environ["RECORD_TTL_S"]},
        "payment": {name: os.environ[name] for name in ("PROVIDER_URL", "PROVIDER_SECRET_ARN", "LEASE_SKEW_S")},
        "relay": {"DLQ_URL": world.queues["relay-dlq"]},
        "sweep": {"ROUTES": json.dumps(samples.routes(world)), "SWEEP_AGE_S": str(SWEEP_AGE_S)},
    }
    outputs = {
        "OrdersTableName": "orders",
        "IdempotencyTableName": "idempotency",
        "ReceiptsBucketName": "receipts",
        **{f"{name.capitalize()}FunctionName": name for name in FUNCTIONS},
        **{f"{name.capitalize()}QueueUrl": world.queues[name] for name in QUEUES},
        **{f"{name.capitalize()}DlqUrl": world.queues[f"{name}-dlq"] for name in QUEUES},
        "PaymentSandboxFunctionName": "payment_sandbox",
    }
    return Deployment("test", "a test", outputs, Session(Lambda(told)))


def audited(deployment: Deployment, *, repair: bool = False, age_s: int | None = None) -> Audit:
    """An audit that shows nothing."""
    return Auditor(deployment, Steps(Console(file=StringIO())), age_s).run(repair)
