"""The connection to the provider: the real payment sandbox behind a socket, and the faults in between."""

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from functions.payment_sandbox.handler import handler as sandbox
from tests.harness.http_lambda import ConnectionCut

Answer = dict[str, Any]
Apply = Callable[[], Answer]  # lets the request through
Fault = Callable[[Apply], Answer]

CALLS = {
    r"POST /v1/payment_intents": "create",
    r"GET /v1/payment_intents/[^/]+": "retrieve",
    r"POST /v1/payment_intents/[^/]+/confirm": "confirm",
    r"POST /v1/payment_intents/[^/]+/cancel": "cancel",
}

OBSERVER = "observer"  # the account that a test's own requests name, which are no part of the story


def through(apply: Apply) -> Answer:
    """No fault."""
    return apply()


def cut_before(_: Apply) -> Answer:
    """The connection ends before the request was executed: what a client's timeout looks like, without the wait."""
    raise ConnectionCut


def cut_after(apply: Apply) -> Answer:
    """The request is executed, its answer never arrives."""
    apply()
    raise ConnectionCut


def refuses(status: int, kind: str = "api_error", headers: dict[str, str] | None = None, **error: Any) -> Fault:
    """The provider executes nothing and answers with this error."""

    def fault(_: Apply) -> Answer:
        body = json.dumps({"error": {"type": kind, "message": "no", **error}})
        return {"statusCode": status, "body": body, "headers": {"Request-Id": "req_fault", **(headers or {})}}

    return fault


def fails_after(status: int, body: str = '{"error": {"type": "api_error"}}') -> Fault:
    """The provider executes the request and answers with an error."""

    def fault(apply: Apply) -> Answer:
        apply()
        return {"statusCode": status, "body": body}

    return fault


def answers_with(**fields: Any) -> Fault:
    """The provider executes the request; its answer has these fields instead."""

    def fault(apply: Apply) -> Answer:
        answer = apply()
        return answer | {"body": json.dumps(json.loads(answer["body"]) | fields)}

    return fault


def meanwhile(happens: Callable[[], object], then: Fault = through) -> Fault:
    """Something else happens while the request is on its way."""

    def fault(apply: Apply) -> Answer:
        happens()
        return then(apply)

    return fault


@dataclass
class ProviderConnection:
    """All payment intent requests, in order, and the faults that they meet."""

    calls: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    _planned: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))
    _held: list[Apply] = field(default_factory=list)

    def plan(self, call: str, *faults: Fault) -> None:
        """The next requests of a kind meet these, in order."""
        self._planned[call].extend(faults)

    def hold(self, apply: Apply) -> Answer:
        """A fault: the client gives the request up, and the network keeps it."""
        self._held.append(apply)
        raise ConnectionCut

    def let_go(self) -> list[int]:
        """What the network kept arrives now; the statuses that nobody gets to see."""
        statuses = [apply()["statusCode"] for apply in self._held]
        self._held.clear()
        return statuses

    @property
    def unspent(self) -> list[str]:
        """Calls whose planned faults never came up: such a test shows less than it says."""
        return [call for call, faults in self._planned.items() if faults]

    def handler(self, event: dict[str, Any], context: Any) -> Answer:
        """The function behind the URL."""
        request = f"{event['requestContext']['http']['method']} {event['rawPath']}"
        call = next((call for route, call in CALLS.items() if re.fullmatch(route, request)), None)
        if call is None or OBSERVER in event["headers"].values():
            return sandbox(event, context)
        self.calls.append(call)
        self.requests.append(event)
        queue = self._planned[call]
        fault = queue.popleft() if queue else through
        return fault(lambda: sandbox(event, context))
