"""Run peers under the explorer: each invocation loads its module anew, with the explorer's time and randomness."""

import datetime
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import botocore.endpoint
import botocore.retryhandler
import pytest
import stripe
from aws_lambda_powertools.shared import user_agent
from aws_lambda_powertools.utilities.idempotency import base as handling
from aws_lambda_powertools.utilities.idempotency.persistence import base as storing
from aws_lambda_powertools.utilities.idempotency.persistence import datarecord, dynamodb
from tests.harness.interceptor import FakeClock
from tests.schedules.model import QUEUE_URL, SECRET

from lab.peers import step

CLIENTS: Sequence[Any] = (step.dynamodb, step.sqs, step.payments)
ENVIRONMENT: Mapping[str, str] = {"NEXT_QUEUE_URL": QUEUE_URL + "emails", "STRIPE_API_KEY": SECRET}
PREFIX = "peer."  # of a function name: peer.powertools
_PACKAGE = "lab.peers."


def handler_of(function: str, clock: FakeClock) -> Callable[[dict[str, Any], Any], Any]:
    """A handler that loads its module anew, as a new process does."""

    def handle(event: dict[str, Any], context: Any) -> Any:
        return load(function.removeprefix(PREFIX), clock).handler(event, context)

    return handle


def load(name: str, clock: FakeClock) -> ModuleType:
    """A copy of the peer's module, with the explorer's time."""
    spec = importlib.util.find_spec(_PACKAGE + name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "time"):
        vars(module)["time"] = SimpleNamespace(time=lambda: clock.now_ms() / 1000)
    return module


def put_in_place(patch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    """Replace time and random numbers of Powertools and of both SDKs. Delays are the longest, to be repeatable."""

    class Now(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Now":
            return cls.fromtimestamp(clock.now_ms() / 1000, tz)

    times = SimpleNamespace(datetime=Now, timedelta=datetime.timedelta, date=datetime.date, time=datetime.time)
    for module in (handling, storing, datarecord, dynamodb):
        patch.setattr(module, "dt", times)
    sleeping = SimpleNamespace(sleep=clock.advance, time=lambda: clock.now_ms() / 1000)
    patch.setattr(botocore.endpoint, "time", sleeping)
    patch.setattr(botocore.retryhandler, "random", SimpleNamespace(random=lambda: 1.0))
    patch.setattr(stripe._http_client, "time", sleeping)
    patch.setattr(stripe._http_client, "random", SimpleNamespace(uniform=max))
    # It adds a handler to the client at each start.
    patch.setattr(user_agent, "register_feature_to_client", lambda **_: None)
