"""Hooks in botocore and requests, at the point where a request is ready to be sent."""

import importlib.util
import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ReadTimeoutError
from botocore.httpsession import URLLib3Session


@dataclass(frozen=True)
class Exchange:
    """A request that is ready to be sent, and functions that build answers as its library does."""

    method: str
    url: str
    headers: Any  # a mapping
    body: Any  # bytes or text, None, or a file, which is not read
    send: Callable[[], Any]
    timeout: Callable[[], Exception]  # the exception of the library if no answer comes
    answer: Callable[[int, str], Any]  # with this status and error code

    @property
    def text(self) -> str:
        """All text that may contain an order id."""
        return "\n".join([self.url, *(_text(value) for value in self.headers.values()), _text(self.body)])

    @property
    def has_effect(self) -> bool:
        """Whether the request charges a card (confirms an intent) or sends an email."""
        path = urlsplit(self.url).path
        if self.method != "POST":
            return False
        if path.endswith("/v1/payment_intents"):
            return "confirm=true" in _text(self.body)
        return path.endswith(("/confirm", "/v1/charges", "/v2/email/outbound-emails"))


Guard = Callable[[Exchange], Any]

_guard: Guard | None = None  # of the present invocation: a worker has one at a time
_unguarded = threading.local()  # set while a thread sends requests of the fault injection


@contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """Pass all requests of the process to the guard, which decides whether to send them."""
    global _guard
    _install()
    _guard = guard
    try:
        yield
    finally:
        _guard = None


@contextmanager
def unguarded() -> Iterator[None]:
    """Send the requests of this thread without the guard."""
    _unguarded.on = True
    try:
        yield
    finally:
        _unguarded.on = False


def _through(exchange: Callable[[], Exchange], send: Callable[[], Any]) -> Any:
    if _guard is None or getattr(_unguarded, "on", False):
        return send()
    return _guard(exchange())


_installed = False


def _install() -> None:
    """Install the hooks, once in a process."""
    global _installed
    if _installed:
        return
    _installed = True
    _under_botocore()
    if importlib.util.find_spec("requests"):  # installed with the provider's SDK only
        _under_requests()


def _under_botocore() -> None:
    original = URLLib3Session.send

    def send(self: URLLib3Session, request: AWSPreparedRequest) -> Any:
        def go() -> Any:
            return original(self, request)

        def exchange() -> Exchange:
            return Exchange(
                str(request.method),
                str(request.url),
                request.headers,
                request.body,
                send=go,
                timeout=lambda: ReadTimeoutError(endpoint_url=request.url),
                answer=lambda status, code: _aws_answer(request, status, code),
            )

        return _through(exchange, go)

    URLLib3Session.send = send  # type: ignore[method-assign, assignment]


def _aws_answer(request: AWSPreparedRequest, status: int, code: str) -> AWSResponse:
    """An error answer in the format of the service: XML for S3, JSON for the other services."""
    in_json = "X-Amz-Target" in request.headers or "/v2/email/" in str(request.url)
    if in_json:
        body = json.dumps({"__type": code, "message": "injected"})
        headers = {"Content-Type": "application/x-amz-json-1.0", "x-amzn-ErrorType": code}
    else:
        body = f"<Error><Code>{code}</Code><Message>injected</Message></Error>"
        headers = {"Content-Type": "application/xml"}
    return AWSResponse(request.url, status, headers, _raw(status, headers, body))  # type: ignore[arg-type]


def _under_requests() -> None:
    from requests import PreparedRequest, Response
    from requests.adapters import HTTPAdapter
    from requests.exceptions import ReadTimeout

    original = HTTPAdapter.send

    def send(self: HTTPAdapter, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        def go() -> Response:
            return original(self, request, *args, **kwargs)

        def answer(status: int, code: str) -> Response:
            body = json.dumps({"error": {"type": "api_error", "code": code, "message": "injected"}})
            return self.build_response(request, _raw(status, {"Content-Type": "application/json"}, body))

        def exchange() -> Exchange:
            return Exchange(
                str(request.method),
                str(request.url),
                request.headers,
                request.body,
                send=go,
                timeout=lambda: ReadTimeout("injected", request=request),
                answer=answer,
            )

        response: Response = _through(exchange, go)
        return response

    HTTPAdapter.send = send  # type: ignore[method-assign]


def _raw(status: int, headers: Mapping[str, str], body: str) -> urllib3.HTTPResponse:
    return urllib3.HTTPResponse(io.BytesIO(body.encode()), headers, status, preload_content=False)


def _text(part: Any) -> str:
    if isinstance(part, bytes | bytearray):
        return part.decode(errors="replace")
    return part if isinstance(part, str) else ""
