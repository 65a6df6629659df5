"""Runs MiniStack behind a check of every request: `python -m tools.local.gateway`.

MiniStack has no authentication and allows every origin (`Access-Control-Allow-Origin: *`). Without this check any web
page can create a Lambda function with one request and run its code as the developer, because browsers send a
`text/plain` body to loopback without asking first. Three rules apply to each request:

1. A foreign `Host`, a foreign `Origin` or a `Sec-Fetch-Site` other than `none` is refused. So are all websockets.
   (https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html)
2. A request to MiniStack's own paths, `/_ministack/...`, carries the token in the header `X-Local-Key`.
3. A request to an AWS API carries the token as its session token. SDKs send a session token in the header
   `X-Amz-Security-Token`, or in the query parameter of that name in presigned URLs. The access key cannot serve as the
   secret, because MiniStack gives its workers the account id as access key.

Health, the answers of custom resources and deployed endpoints (HTTP APIs, function URLs) need no token.
"""

import hmac
import json
import os
import re
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

TOKEN_VARIABLE = "AWS_SESSION_TOKEN"  # noqa: S105 - the name of a variable
LOCAL_KEY = "X-Local-Key"
END_WITH_STDIN = "--end-with-stdin"

# MiniStack routes each of these requests by its path alone. It routes other requests by X-Amz-Target, by the credential
# scope or by Action= as well, even below a path that looks like an endpoint (`/_aws/execute-api/<id>` without a stage).
# `/@connections/` is an AWS API below an endpoint's address.
EXEMPT = re.compile(
    r"(GET|HEAD) /_ministack/health"
    r"|PUT /_ministack/cfn-response/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\S+ /_aws/execute-api/[0-9a-z]+/(?![^/]*/@connections/).*"
    r"|\S+ /_aws/lambda-url/[0-9a-z-]+(/.*)?",
    re.DOTALL,
)
ENDPOINT_NAME = re.compile(r"([0-9a-z-]+)\.(execute-api|lambda-url)(?:\.[0-9a-z-]+)?\.localhost", re.IGNORECASE)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gateway:
    """ASGI middleware. `port` is the port that clients connect to, `token` is what they must send."""

    def __init__(self, app: App, port: int, token: str) -> None:
        if not token:
            raise ValueError(f"{TOKEN_VARIABLE} is empty.")
        self._app = app
        self._port = port
        self._token = token.encode()
        optional = "?" if port == 80 else ""  # clients leave out the default port
        self._hosts = re.compile(rf"(?P<name>127\.0\.0\.1|([a-z0-9.-]+\.)?localhost)(:{port}){optional}", re.IGNORECASE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            scope = self._by_path(scope)
            if refusal := self._refusal(scope):
                await _refuse(scope, refusal, send)
            else:
                await self._app(scope, receive, _without_cors(send))
        else:
            await self._app(scope, receive, send)

    def _by_path(self, scope: Scope) -> Scope:
        """Address an endpoint that is named by its host by its path instead, so that one rule covers both forms.

        Under an endpoint's host name MiniStack still answers `/_ministack/reset` or `/v2/email/outbound-emails` itself.
        """
        host = self._hosts.fullmatch(b",".join(_values(scope, "host")).decode("latin-1"))
        endpoint = ENDPOINT_NAME.fullmatch(host["name"]) if host else None
        if endpoint is None:
            return scope
        prefix = f"/_aws/{endpoint[2].lower()}/{endpoint[1].lower()}"
        headers = [header for header in scope["headers"] if header[0].lower() != b"host"]
        return {
            **scope,
            "path": prefix + scope["path"],
            "raw_path": prefix.encode() + scope["raw_path"],
            "headers": [*headers, (b"host", f"localhost:{self._port}".encode())],
        }

    def _refusal(self, scope: Scope) -> str | None:
        """The reason why the request is refused; None if it is allowed."""
        value = b",".join(_values(scope, "host")).decode("latin-1")
        host = self._hosts.fullmatch(value)
        if host is None:
            return f"Host {value!r} is not an address of this local AWS. Use 127.0.0.1:{self._port}."
        if any(origin != f"http://{value}".encode() for origin in _values(scope, "origin")):
            return "Web pages cannot call this local AWS: the Origin is foreign."
        if any(site != b"none" for site in _values(scope, "sec-fetch-site")):
            return "Web pages cannot call this local AWS: a page sent this request (Sec-Fetch-Site)."
        if not re.fullmatch("[A-Z]+", scope["method"]):  # method and path are matched as one text below
            return "The request's method is not one of HTTP's."
        path: str = scope["path"]
        if host["name"].lower() in ("127.0.0.1", "localhost") and EXEMPT.fullmatch(f"{scope['method']} {path}"):
            return None
        if path.startswith("/_ministack/"):
            if self._is_token(_values(scope, LOCAL_KEY)):
                return None
            return f"Send the header {LOCAL_KEY} with the value of {TOKEN_VARIABLE}. Read .local/env for it."
        query = parse_qs(scope["query_string"]).get(b"X-Amz-Security-Token", [])
        if self._is_token([*_values(scope, "x-amz-security-token"), *query]):
            return None
        return (
            f"The session token of this local AWS is missing or wrong. Read .local/env, which has {TOKEN_VARIABLE}: "
            "set -a; . .local/env; set +a"
        )

    def _is_token(self, values: list[bytes]) -> bool:
        return any(hmac.compare_digest(value, self._token) for value in values)


def _values(scope: Scope, header: str) -> list[bytes]:
    name = header.lower().encode()
    return [value for key, value in scope["headers"] if key.lower() == name]


async def _refuse(scope: Scope, message: str, send: Send) -> None:
    """Answer 403 in the form that the client's SDK shows as an error with this message."""
    if _values(scope, "x-amz-target"):
        kind, body = "application/json", json.dumps({"__type": "AccessDenied", "message": message})
    else:
        error = f"<Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{_escape(message)}</Message></Error>"
        kind, body = "text/xml", f"<ErrorResponse>{error}</ErrorResponse>\n"
    headers = [(b"content-type", kind.encode()), (b"x-amzn-errortype", b"AccessDenied")]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _without_cors(send: Send) -> Send:
    """Remove what allows pages of other origins to read the response."""

    async def send_without_cors(message: Scope) -> None:
        if message["type"] == "http.response.start":
            kept = [header for header in message["headers"] if not header[0].lower().startswith(b"access-control-")]
            message = {**message, "headers": kept}
        await send(message)

    return send_without_cors


def end_with_stdin() -> None:
    """Wait until no process holds the other end of stdin, then end this process group, workers included."""
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run MiniStack. With `--end-with-stdin` it ends with the process that started it, even if that one is killed."""
    import ministack.app
    from ministack.services import sts

    token = os.environ[TOKEN_VARIABLE]
    ministack.app.app = Gateway(ministack.app.app, int(os.environ["GATEWAY_PORT"]), token)
    # The CDK CLI assumes roles. A caller of AssumeRole has sent the token, so the new credentials carry the same one.
    sts._gen_session_token = lambda: token
    if END_WITH_STDIN in sys.argv:
        sys.argv.remove(END_WITH_STDIN)  # MiniStack parses the rest
        threading.Thread(target=end_with_stdin, daemon=True).start()
    ministack.app.main()


if __name__ == "__main__":
    main()
