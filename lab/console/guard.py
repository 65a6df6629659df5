"""Accept requests only from the page itself. Any web page can send requests to a port on loopback.

The Host header is checked against DNS rebinding, Origin and a token against requests of other pages
(https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html).
"""

import hashlib
import hmac
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PROOF_HEADER = "x-console-token"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Tokens:
    """A token for each loaded page. Nothing is stored. Tokens are valid until this process ends."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def new(self) -> str:
        nonce = secrets.token_hex(16)
        return f"{nonce}.{self._sign(nonce)}"

    def is_valid(self, token: str) -> bool:
        nonce, _, signature = token.partition(".")
        return hmac.compare_digest(signature.encode(), self._sign(nonce).encode())

    def _sign(self, nonce: str) -> str:
        return hmac.new(self._secret, nonce.encode(), hashlib.sha256).hexdigest()


class Guard:
    """Middleware. `hosts` are the allowed values of the Host header, with port."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], tokens: Tokens) -> None:
        self._app = app
        self._hosts = hosts
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["method"], Headers(scope=scope))

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                headers["Cache-Control"] = "no-store"
            await send(message)

        app = JSONResponse({"refused": refusal}, 403) if refusal else self._app
        await app(scope, receive, hardened)

    def _refusal(self, method: str, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if host not in self._hosts:
            return f"The host {host!r} is not allowed."
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return "Requests from other sites are not allowed."
        if method in ("GET", "HEAD"):
            return None
        if origin is None:
            return "The Origin header is missing."
        if not self._tokens.is_valid(headers.get(PROOF_HEADER, "")):
            return "The server was restarted: reload this page."
        return None
