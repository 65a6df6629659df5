"""The world that unit tests run in: moto behind the real clients, faults on the wire, time by hand."""

import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from moto.core.models import botocore_stubber

# moto's conditional writes are not atomic across threads, DynamoDB's are.
_one_at_a_time = threading.RLock()


class Killed(BaseException):
    """The worker's process is gone: nothing in it may catch this."""


class FakeClock:
    """Time that moves when a test says so, and when somebody sleeps."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self.ms = now_ms
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


class Context:
    """Lambda's context: how long the worker still has by the test's clock."""

    def __init__(self, clock: FakeClock, seconds: float = 30.0) -> None:
        self._clock = clock
        self.deadline_ms = clock.now_ms() + int(seconds * 1000)
        self.function_name = "function"
        self.aws_request_id = "request"

    def get_remaining_time_in_millis(self) -> int:
        return self.deadline_ms - self._clock.now_ms()


Apply = Callable[[], AWSResponse]  # lets the request through
Fault = Callable[[AWSPreparedRequest, Apply], AWSResponse]


def through(_: AWSPreparedRequest, apply: Apply) -> AWSResponse:
    """No fault."""
    return apply()


def answer_lost(request: AWSPreparedRequest, apply: Apply) -> AWSResponse:
    """The request is applied, its answer never arrives."""
    apply()
    raise ReadTimeoutError(endpoint_url=request.url)


def never_sent(request: AWSPreparedRequest, _: Apply) -> AWSResponse:
    """No connection: known not to be applied."""
    raise ConnectTimeoutError(endpoint_url=request.url)


def killed_before(_: AWSPreparedRequest, __: Apply) -> AWSResponse:
    """The worker dies before the request is sent."""
    raise Killed


def killed_after(_: AWSPreparedRequest, apply: Apply) -> AWSResponse:
    """The worker dies after the request was applied."""
    apply()
    raise Killed


def refused(code: str, status: int = 400, **more: Any) -> Fault:
    """The service answers with this error and applies nothing."""

    def fault(request: AWSPreparedRequest, _: Apply) -> AWSResponse:
        body = json.dumps({"__type": f"com.amazonaws#{code}", "message": code, **more}).encode()
        headers = HTTPHeaders.from_dict({"Content-Type": "application/x-amz-json-1.0"})
        return AWSResponse(request.url, status, headers, _Body(body))

    return fault


def cancelled(*codes: str) -> Fault:
    """A cancelled transaction: one reason code an item, by position."""
    return refused("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


def meanwhile(happens: Callable[[], object], then: Fault = through) -> Fault:
    """Something else happens while the request is on its way."""

    def fault(request: AWSPreparedRequest, apply: Apply) -> AWSResponse:
        happens()
        return then(request, apply)

    return fault


class _Body:
    """What botocore reads a raw response from."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self, **_: Any) -> Any:
        yield self.content
        self.content = b""


@dataclass
class Wire:
    """All requests of the clients it is put on, in order, and the faults that they meet."""

    sent: list[tuple[str, bytes]] = field(default_factory=list)
    _planned: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _always: dict[str, Fault] = field(default_factory=dict)

    def put_on(self, client: Any) -> None:
        """Stand between a client and moto.

        In its stead: botocore asks every handler of the event, so moto's own would apply each request once more,
        those that a fault has refused included.
        """
        client.meta.events.unregister("before-send", botocore_stubber)
        client.meta.events.register_first("before-send", self._send)

    def take_off(self, client: Any) -> None:
        """Stand aside again."""
        client.meta.events.unregister("before-send", self._send)
        client.meta.events.register("before-send", botocore_stubber)

    def plan(self, operation: str, *faults: Fault) -> None:
        """The next requests of an operation (`UpdateItem`, …) meet these, in order."""
        self._planned[operation].extend(faults)

    def always(self, operation: str, fault: Fault | None) -> None:
        """Every request of an operation meets this, until None is set."""
        if fault is None:
            self._always.pop(operation, None)
        else:
            self._always[operation] = fault

    def count(self, operation: str | None = None) -> int:
        """Requests sent so far."""
        return sum(operation in (None, name) for name, _ in self.sent)

    def bodies(self, operation: str) -> list[bytes]:
        """The bodies sent for an operation."""
        return [body for name, body in self.sent if name == operation]

    @property
    def unspent(self) -> list[str]:
        """Operations whose planned faults never came up: such a test shows less than it says."""
        return [name for name, faults in self._planned.items() if faults]

    def _send(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        operation = event_name.rsplit(".", 1)[-1]
        body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
        self.sent.append((operation, body))
        queue = self._planned[operation]
        fault = queue.popleft() if queue else self._always.get(operation, through)

        def apply() -> AWSResponse:
            with _one_at_a_time:
                response = botocore_stubber(event_name, request)
                assert response is not None, "moto does not know this request"
                return response

        return fault(request, apply)
