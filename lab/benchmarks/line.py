"""Stands where the network would: real clients spell each request and read each answer, nothing is sent.

Every request is kept, so that what was measured can be checked: `sent` as bytes, `calls` as the code asked for it.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

JSON = HTTPHeaders.from_dict({"Content-Type": "application/x-amz-json-1.0"})
ANSWERS: Mapping[str, bytes] = {
    "SendMessage": b'{"MessageId": "m-1", "MD5OfMessageBody": ""}',
    "SendEmail": b'{"MessageId": "mail-1"}',
    "PutObject": b"",
}

Answer = Callable[[bytes], bytes]  # from a request's body to its answer's
Call = tuple[Any, str, dict[str, Any]]  # client, operation, parameters


class Line:
    """One for all clients of a benchmark. `answers`: for operations whose answer depends on what was asked."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.calls: list[Call] | None = None
        self._answers = answers or {}

    def put_on(self, client: Any) -> Any:
        """Every request of this client ends here from now on."""
        client.meta.events.register_first("before-send", self._send)
        client.meta.events.register_first(
            "before-parameter-build", lambda params, model, **_: self._note(client, model.name, params)
        )
        return client

    def recording(self, run: Callable[[], object]) -> list[Call]:
        """All calls that a run makes."""
        self.calls = []
        try:
            run()
            return self.calls
        finally:
            self.calls = None

    def count(self) -> Counter[str]:
        """Requests by operation."""
        return Counter(operation for operation, _ in self.sent)

    def _note(self, client: Any, operation: str, params: dict[str, Any]) -> None:
        if self.calls is not None:
            self.calls.append((client, operation, copy.deepcopy(params)))

    def _send(self, event_name: str, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        operation = event_name.rsplit(".", 1)[-1]
        asked: Any = request.body
        body: bytes = asked.read() if hasattr(asked, "read") else asked if isinstance(asked, bytes) else asked.encode()
        self.sent.append((operation, body))
        answer = self._answers.get(operation)
        return AWSResponse(request.url, 200, JSON, _Raw(answer(body) if answer else ANSWERS.get(operation, b"{}")))


def replay(calls: list[Call]) -> Callable[[], None]:
    """Only those calls, made by the same clients: what nobody who makes these requests can go below."""
    bound = [(getattr(client, _method(client, operation)), params) for client, operation, params in calls]

    def run() -> None:
        for call, params in bound:
            call(**params)

    return run


def _method(client: Any, operation: str) -> str:
    found: str = next(name for name, known in client.meta.method_to_api_mapping.items() if known == operation)
    return found


class _Raw:
    """What botocore reads a raw response from."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Any:
        yield self._content
