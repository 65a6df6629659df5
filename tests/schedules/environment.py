"""Runs the production code under the explorer's control: its network, clock, randomness and threads are replaced.

Everything that is replaced is in this module. Clients are made once and used for all schedules: botocore's retries are
off, so that clients keep no state between two schedules.
"""

import functools
import importlib
import logging
import os
import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import botocore.signers
import botocore.useragent
import msgspec
import pytest
import requests
import stripe
from botocore.client import BaseClient
from botocore.exceptions import ReadTimeoutError
from requests.structures import CaseInsensitiveDict

from functions.payment.provider import Provider
from functions.payment.provider import provider as payment_provider
from shared.idempotency import Engine, StepResult, runtime, telemetry
from shared.idempotency.records import Claim, StoredResult
from shared.idempotency.store import Store
from tests.harness import moto_world
from tests.harness.interceptor import FakeClock
from tests.schedules import person, provider
from tests.schedules.clients import Clients
from tests.schedules.green_threads import Pool, current, maybe_current
from tests.schedules.handler_runs import Effect, HandlerRuns
from tests.schedules.model import QUEUE_URL, Answer, Call
from tests.schedules.run import Run

ROUTES = {
    "order.requested": QUEUE_URL + "orders",
    "order.placed": QUEUE_URL + "payments",
    "order.paid": QUEUE_URL + "emails",
    "order.declined": QUEUE_URL + "emails",
}
# The times are those of the local stage, in seconds.
ENVIRONMENT = {
    **moto_world.ENVIRONMENT,
    "AWS_EC2_METADATA_DISABLED": "true",
    "CLIENT_CONNECT_TIMEOUT_S": "0.1",
    "CLIENT_READ_TIMEOUT_S": "0.5",
    "LEDGER_TABLE": "ledger",
    "SWEEP_AGE_S": "60",
    "BACKOFF_BASE_S": "1",
    "BACKOFF_CAP_S": "4",
    "PROVIDER_URL": "https://provider.example",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:provider",
    "PROVIDER_LIVEMODE": "false",
    "PROVIDER_CONNECT_TIMEOUT_S": "0.1",
    "PROVIDER_READ_TIMEOUT_S": "0.9",
    "SLOW_S": "1.5",
    "ROUTES": msgspec.json.encode(ROUTES).decode(),
}


def _of_queue(name: str, needs_s: float) -> dict[str, str]:
    urls = {"QUEUE_URL": QUEUE_URL + name, "DLQ_URL": f"{QUEUE_URL}{name}-dlq"}
    return {**urls, "STEP_NEEDS_S": str(needs_s), "RESERVE_S": "2.05"}


# What differs from function to function; steps need requests x (connect + read).
OF_FUNCTION = {
    "order": _of_queue("orders", 0.6),
    "payment": _of_queue("payments", 4 * 0.6 + 3 * 1.0),
    "email": _of_queue("emails", 5 * 0.6),
    "settle": {"QUEUE_URL": "", "DLQ_URL": "", "STEP_NEEDS_S": "0", "RESERVE_S": "0"},
    "relay": {"QUEUE_URL": "", "DLQ_URL": QUEUE_URL + "relay-dlq", "STEP_NEEDS_S": "0.6", "RESERVE_S": "0.25"},
    "api": {"QUEUE_URL": "", "DLQ_URL": "", "STEP_NEEDS_S": "1.2", "RESERVE_S": "0.25"},
}

_make_client = functools.cache(runtime.make_client)


class OtherHandlers(Protocol):
    """Handlers of another implementation, explored beside the production handlers. A module may be one."""

    PREFIX: str  # of their names as functions
    ENVIRONMENT: Mapping[str, str]
    CLIENTS: Sequence[Any]  # functools caches to clear

    def handler_of(self, function: str, clock: FakeClock) -> Callable[[dict[str, Any], Any], Any]: ...

    def put_in_place(self, patch: pytest.MonkeyPatch, clock: FakeClock) -> None: ...


class WorkersClock(FakeClock):
    """Each worker's own clock: the true time, and as far off as its process is."""

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        thread = maybe_current()
        return self.ms + (thread.process.skew_ms if thread and not thread.inside else 0)


class ExplorerEnvironment:
    """The surroundings of the handlers. One schedule runs at a time."""

    def __init__(self, others: OtherHandlers | None) -> None:
        self.clock = WorkersClock()
        self._others = others
        self.run: Run | None = None
        self._function = ""
        self._runtimes: dict[str, runtime.Runtime] = {}
        self._effects: list[Effect] = []
        self.runs = HandlerRuns(self)
        self.provider_answers = provider.Answers()

    def enter(self, function: str, effects: list[Effect]) -> None:
        """A thread of such a process goes on: its environment. Observations go to `effects`."""
        self._effects = effects
        if function != self._function:
            others = self._others
            mine = others.ENVIRONMENT if others and function.startswith(others.PREFIX) else OF_FUNCTION[function]
            os.environ.update(mine, POWERTOOLS_SERVICE_NAME=function)
            self._function = function
            runtime.install(self._runtimes.setdefault(function, ExplorerRuntime(self)))

    def handler(self, function: str) -> Callable[[dict[str, Any], Any], Any]:
        """The production handler, unmodified; or one of another implementation."""
        if self._others and function.startswith(self._others.PREFIX):
            return self._others.handler_of(function, self.clock)
        if function == "settle":
            return person.settle
        found: Callable[[dict[str, Any], Any], Any] = importlib.import_module(f"functions.{function}.handler").handler
        return found

    def provider(self, make: Callable[[], Provider]) -> Provider:
        """The payment provider's client, one for each process. In a warm process it has the API key already."""
        thread = current()
        found: Provider = thread.process.provider or make()
        if thread.process.warm and thread.process.provider is None:
            thread.inside = True
            found._connected()
            thread.inside = False
        thread.process.provider = found
        return found

    @property
    def now_running(self) -> Run:
        assert self.run is not None
        return self.run

    def new_id(self) -> str:
        """An id that production code makes, or the payment sandbox for the request that it answers."""
        thread = maybe_current()
        return thread.new_id() if thread else self.now_running.new_id()

    def observe(self, effect: Effect) -> None:
        """Record what a handler did besides its requests."""
        self._effects.append(effect)

    def send(self, call: Call) -> Answer:
        """Every request of a boto3 client. Those of the payment sandbox have no thread."""
        thread = maybe_current()
        if thread is None or thread.inside:
            return self.now_running.model.answer(call)
        answer: Answer | None = thread.ask(call)
        if answer is None:
            raise ReadTimeoutError(endpoint_url=call.url)
        return answer

    def to_provider(self, request: requests.PreparedRequest, **__: Any) -> requests.Response:
        """Every request of the Stripe SDK, at the end of its HTTP library. Raises ReadTimeout."""
        call = provider.call_to(str(request.method), str(request.url), request.headers, request.body)
        answer: Answer | None = current().ask(call)
        if answer is None:
            raise requests.exceptions.ReadTimeout("no answer")
        return provider.response(request, answer)

    def to_provider_at_once(
        self,
        http: stripe.RequestsClient,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: str | None = None,
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """Every request of the Stripe SDK, without its HTTP library. Raises what the SDK makes of a ReadTimeout."""
        answer: Answer | None = current().ask(provider.call_to(method.upper(), url, headers, body))
        if answer is None:
            http._handle_request_error(requests.exceptions.ReadTimeout("no answer"))
        return answer.content, answer.status, CaseInsensitiveDict(answer.headers)


class _Even(random.Random):
    """Chance that always comes out highest, so that a schedule repeats."""

    def uniform(self, a: float, b: float) -> float:  # noqa: ARG002
        return b

    def randint(self, a: int, b: int) -> int:  # noqa: ARG002
        return b


class ExplorerRuntime(runtime.Runtime):
    """The runtime of one function's processes. They share everything but the payment provider's client."""

    def __init__(self, environment: ExplorerEnvironment) -> None:
        super().__init__(environment.clock, _Even(0), environment.new_id, Pool, _make_client)  # type: ignore[arg-type]
        self._environment = environment

    def single(self, key: object, make: Callable[[], Any]) -> Any:
        """Return the one object under a key."""
        return self._environment.provider(make) if key is payment_provider else super().single(key, make)


@contextmanager
def explorer_environment(*, light: bool = True, others: OtherHandlers | None = None) -> Iterator[ExplorerEnvironment]:
    """Install the environment, and restore everything afterwards.

    `light`: requests and answers skip the serialisation of botocore (clients.py) and the HTTP library of Stripe's SDK.
    `others`: more handlers.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**ENVIRONMENT, **OF_FUNCTION["order"], "POWERTOOLS_SERVICE_NAME": "order"}.items():
            patch.setenv(name, value)
        for name in ("_X_AMZN_TRACE_ID", "AWS_ENDPOINT_URL", "API_KEY_SECRET_ARN"):
            patch.delenv(name, raising=False)
        caches = (_make_client, *(others.CLIENTS if others else ()))
        for cache in caches:
            cache.cache_clear()
        it = ExplorerEnvironment(others)
        before = runtime.install(ExplorerRuntime(it))
        patch.setattr(secrets, "token_hex", lambda _: it.new_id())
        patch.setattr(stripe._api_requestor, "_generate_idempotency_key", it.new_id)
        patch.setattr(stripe.HTTPClient, "_sleep_time_seconds", lambda *_: 0)  # before an operator's tool asks again
        patch.setattr(requests.adapters.HTTPAdapter, "send", it.to_provider)
        if light:
            patch.setattr(
                stripe.RequestsClient, "request", lambda http, *request: it.to_provider_at_once(http, *request)
            )
        # This machine's proxies and passwords are not asked for, at each request.
        patch.setattr(requests.sessions, "get_environ_proxies", lambda *_, **__: {})
        patch.setattr(requests.sessions, "get_netrc_auth", lambda _: None)
        # Nobody reads who we are, nor our signature; they take four fifths of a request's time.
        patch.setattr(botocore.useragent.UserAgentString, "to_string", lambda _: "model")
        patch.setattr(botocore.signers.RequestSigner, "sign", lambda *_, **__: None)
        _observe(patch, it)
        provider.put_in_place(patch, it.clock)
        if others:
            others.put_in_place(patch, it.clock)
        level = telemetry.logger.level if hasattr(telemetry.logger, "level") else logging.INFO
        telemetry.logger.setLevel(logging.CRITICAL)
        clients = Clients(it.send, it.new_id, light=light)
        patch.setattr(BaseClient, "_make_api_call", lambda client, *call: clients.make_api_call(client, *call))
        try:
            yield it
        finally:
            it.runs.close()
            runtime.install(before)
            telemetry.logger.setLevel(level)
            for cache in caches:
                cache.cache_clear()


def _observe(patch: pytest.MonkeyPatch, it: ExplorerEnvironment) -> None:
    """Record what the layer does, and change nothing."""
    run_engine: Callable[..., StepResult] = _unobserved(Engine.run)
    claim_in_store: Callable[..., Claim | StoredResult] = _unobserved(Store.claim)

    def run(self: Engine, step: Any, event: Any, deadline_ms: int, **options: Any) -> StepResult:
        result = run_engine(self, step, event, deadline_ms, **options)
        key, handed_out = step.record_key(event), msgspec.to_builtins(result.result)
        it.observe(lambda facts: facts.returned(key, handed_out))
        return result

    def claimed(self: Store, *arguments: Any, **named: Any) -> Claim | StoredResult:
        claim = claim_in_store(self, *arguments, **named)
        if isinstance(claim, Claim):
            thread, uncertain = current().name, claim.uncertain
            it.observe(lambda facts: facts.uncertain.update({thread: uncertain}))
        return claim

    def count(operation: str, counts: Counter[str]) -> None:
        counted = {f"{operation} {name}": value for name, value in counts.items()}
        it.observe(lambda facts: facts.count(counted))

    vars(run)["unobserved"], vars(claimed)["unobserved"] = run_engine, claim_in_store
    patch.setattr(Engine, "run", run)
    patch.setattr(Store, "claim", claimed)
    patch.setattr(telemetry, "count", count)


def _unobserved(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without the observer of an outer environment."""
    found: Callable[..., Any] = getattr(function, "unobserved", function)
    return found
