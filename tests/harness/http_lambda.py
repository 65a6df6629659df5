"""A Lambda handler behind a real socket, as behind a function URL: real HTTP clients can be tested against it.

    with serve(handler) as url:
        stripe.StripeClient("sk_test", base_addresses={"api": url})

Each request runs on a thread of its own, so handlers meet each other as workers do. An exception that leaves the
handler becomes a 502, as with AWS. What a test puts into a handler may raise `WorkerDied` (the process is gone:
a 502 as well, but no handler catches it) or `ConnectionCut` (the caller gets no answer at all).
"""

import base64
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


class WorkerDied(BaseException):
    """Stands for the end of the process, which a test can not survive."""


class ConnectionCut(BaseException):
    """Stands for a network that loses the answer."""


@dataclass
class Context:
    """As much of Lambda's context as the handlers use."""

    remaining_ms: int = 5_000
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda would end the worker."""
        return self.remaining_ms


def function_url_event(method: str, url: str, headers: dict[str, str], body: bytes = b"") -> dict[str, Any]:
    """The event that a function URL makes of a request, payload format 2.0, bodies in base64.

    https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads
    """
    parts = urlsplit(url)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": parts.path,
        "rawQueryString": parts.query,
        "headers": {name.lower(): value for name, value in headers.items()},
        "requestContext": {
            "http": {"method": method, "path": parts.path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"},
            "requestId": str(uuid.uuid4()),
            "stage": "$default",
        },
        "isBase64Encoded": bool(body),
    }
    if body:
        event["body"] = base64.b64encode(body).decode()
    return event


@contextmanager
def serve(handler: Handler, context: Callable[[], Any] = Context) -> Iterator[str]:
    """Serve a handler on a free loopback port; yields its URL."""

    class Front(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            event = function_url_event(self.command, self.path, dict(self.headers.items()), body)
            try:
                answer = handler(event, context())
            except ConnectionCut:
                self.close_connection = True
                return
            except (Exception, WorkerDied):
                answer = {"statusCode": 502, "body": json.dumps({"message": "Internal Server Error"})}
            payload = answer.get("body", "").encode()
            self.send_response(answer["statusCode"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - the names http.server looks for

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
