"""Workers with faults around them, in a process of their own or in the test's."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import boto3
import pytest
from botocore.config import Config
from botocore.httpsession import URLLib3Session
from requests.adapters import HTTPAdapter
from shared.idempotency import client
from tests.harness.http_lambda import serve
from tests.harness.interceptor import Killed
from tests.harness.moto_world import ENVIRONMENT, World
from tests.harness.payment_fixtures import payments, provider_connection

from lab.faults import hooks
from lab.faults.apply_fault import Machine
from lab.faults.fault_table import FaultTable, InjectedFault
from lab.faults.plan import Fault, Kind
from lab.faults.worker import Handler, Setup, Stall, Worker
from lab.tests.faults.gateway import Gateway

__all__ = ["payments", "provider_connection"]

ROOT = Path(__file__).parents[3]
VARIANT = "this-repo"
KILLED = "killed"
NEVER = 0.0  # percent


@dataclass
class Bench:
    """A place for workers; `url` is the AWS that they are given."""

    world: World
    gateway: Gateway
    url: str
    faults: FaultTable
    slept: list[float] = field(default_factory=list)

    def client(self, service: str) -> Any:
        """A client whose requests go over the socket, and so through the hooks."""
        config = Config(connect_timeout=5, read_timeout=15, retries={"mode": "standard", "total_max_attempts": 1})
        return boto3.client(service, endpoint_url=self.url, config=config)  # type: ignore[call-overload]

    def injected(self) -> list[InjectedFault]:
        """What is in the table of faults, by order."""
        return sorted(self.faults.injected(VARIANT), key=lambda injected: injected.id)

    def kinds(self) -> list[Kind]:
        return [injected.kind for injected in self.injected()]

    def worker(
        self,
        real: Handler,
        function: str = "order",
        fault: Fault | None = None,
        *,
        seed: int = 1,
        percent: float = NEVER,
        sleep: Callable[[float], None] | None = None,
    ) -> Worker:
        """A worker in this process, with a fault armed for it. Its death is the exception Killed."""
        if fault:
            self.faults.arm(VARIANT, function, fault)
        stall = Stall(remaining_s=90.0, again_s=93.5, until_s=100.0, queue_url=self.world.queues["payments"])
        setup = Setup(VARIANT, function, seed, percent, slow_s=0.5, stall=stall)
        faults = FaultTable(self.client("dynamodb"), "faults")
        machine = Machine(_die, sleep or self.slept.append, lambda: 0.0)
        return Worker(real, faults, self.client("sqs"), setup, machine)

    def run(self, function: str, event: dict[str, Any], fault: Fault | None = None, **environment: str) -> Any:
        """Hand an event to the function in a process of its own; its answer, or KILLED."""
        if fault:
            self.faults.arm(VARIANT, function, fault)
        done = subprocess.run(
            [sys.executable, "-m", "lab.tests.faults.child"],
            cwd=ROOT,
            input=json.dumps(event),
            env={
                **ENVIRONMENT,
                "PATH": os.environ["PATH"],
                "AWS_ENDPOINT_URL": self.url,
                "CLIENT_READ_TIMEOUT_S": "15",
                "QUEUE_URL": f"{self.url}/123456789012/orders",
                "DLQ_URL": f"{self.url}/123456789012/dlq",
                "FAULTS_HANDLER": f"functions.{function}.handler.handler",
                "FAULTS_TABLE": "faults",
                "FAULTS_VARIANT": VARIANT,
                "FAULTS_FUNCTION": function,
                "FAULTS_SEED": "1",
                "FAULTS_PERCENT": "0",
                "FAULTS_SLOW_S": "0",
                "FAULTS_REMAINING_S": "20",
                "FAULTS_AGAIN_S": "23",
                "FAULTS_STALL_S": "25",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode == -signal.SIGKILL:
            return KILLED
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def _die() -> NoReturn:
    raise Killed


@pytest.fixture
def bench(world: World) -> Iterator[Bench]:
    """A fresh world behind a socket, with a table of faults in it."""
    world.dynamodb.create_table(
        TableName="faults",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    gateway = Gateway(client, world.queues)
    with serve(gateway.handler) as url, pytest.MonkeyPatch.context() as patch:
        # Install the hooks for each test: moto replaces the same functions, and restores them when it ends.
        patch.setattr(hooks, "_installed", False)
        patch.setattr(URLLib3Session, "send", URLLib3Session.send)
        patch.setattr(HTTPAdapter, "send", HTTPAdapter.send)
        yield Bench(world, gateway, url, FaultTable(world.dynamodb, "faults"))
