"""A network for botocore clients: real clients build each request and read each answer, and nothing is sent.

`sent` keeps each request as bytes, `calls` as operation and parameters, so that a benchmark can check its work.
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


class FakeNetwork:
    """The network of all clients of a benchmark. `answers` builds answers that depend on the request."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.sent: list[tuple[str, bytes]] = []
        self.calls: list[Call] | None = None
        self._answers = answers or {}

    def put_on(self, client: Any) -> Any:
        """Answer every request of this client from now on."""
        client.meta.events.register_first("before-send", self._send)
        client.meta.events.register_first(
            "before-parameter-build", lambda params, model, **_: self._note(client, model.name, params)
        )
        return client

    def recording(self, run: Callable[[], object]) -> list[Call]:
        """All calls of a run."""
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
        arguments: Any = request.body
        body: bytes = (
            arguments.read()
            if hasattr(arguments, "read")
            else arguments
            if isinstance(arguments, bytes)
            else arguments.encode()
        )
        self.sent.append((operation, body))
        answer = self._answers.get(operation)
        return AWSResponse(request.url, 200, JSON, _Raw(answer(body) if answer else ANSWERS.get(operation, b"{}")))


def replay(calls: list[Call]) -> Callable[[], None]:
    """A function that repeats these calls by the same clients: the least cost of these requests."""
    bound = [(getattr(client, _method(client, operation)), params) for client, operation, params in calls]

    def run() -> None:
        for call, params in bound:
            call(**params)

    return run


def _method(client: Any, operation: str) -> str:
    method: str = next(name for name, known in client.meta.method_to_api_mapping.items() if known == operation)
    return method


class _Raw:
    """The raw response that botocore reads."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: Any) -> Any:
        yield self._content
