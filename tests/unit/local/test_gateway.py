"""The check in front of MiniStack: which requests need a token, and which are refused even with one."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tools.local.gateway import Gateway, Scope

PORT = 4567
HOST = f"127.0.0.1:{PORT}"
TOKEN = "token-1"
WITH_TOKEN = {"x-amz-security-token": TOKEN}
WITH_KEY = {"x-local-key": TOKEN}
ENDPOINT = "/_aws/execute-api/a1b2c3d4/$default/orders"
UUID = "0b5a8d9e-1c2d-4e3f-8a9b-0c1d2e3f4a5b"
FUNCTION_URL = "0123456789abcdef0123456789abcdef"


@dataclass
class Emulator:
    """Stands for MiniStack: it notes each request and allows every origin."""

    requests: list[Scope] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:  # noqa: ARG002
        self.requests.append(scope)
        headers = [(b"Access-Control-Allow-Origin", b"*"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"reached"})


@dataclass(frozen=True)
class Answer:
    """`request` is what MiniStack got; None if nothing."""

    status: int
    headers: dict[str, str]
    body: str
    request: Scope | None


def ask(method: str, path: str, headers: dict[str, str] | None = None, host: str = HOST, query: str = "") -> Answer:
    """Send one request through the gateway."""
    emulator, sent = Emulator(), list[Scope]()
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in {"host": host, **(headers or {})}.items()],
    }

    async def receive() -> Scope:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Scope) -> None:
        sent.append(message)

    asyncio.run(Gateway(emulator, PORT, TOKEN)(scope, receive, send))
    start, *body = sent
    answered = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    text = b"".join(message["body"] for message in body).decode()
    return Answer(start["status"], answered, text, emulator.requests[0] if emulator.requests else None)


def refused(answer: Answer) -> bool:
    return answer.status == 403 and answer.request is None


@pytest.mark.parametrize("headers", [{}, {"x-amz-security-token": "token-2"}, {"x-amz-security-token": ""}, WITH_KEY])
def test_an_aws_call_without_the_token_is_refused(headers: dict[str, str]) -> None:
    answer = ask("POST", "/", headers)
    assert refused(answer)
    assert ".local/env" in answer.body


@pytest.mark.parametrize(
    ("headers", "query"), [(WITH_TOKEN, ""), ({}, f"X-Amz-Expires=60&X-Amz-Security-Token={TOKEN}")]
)
def test_an_aws_call_with_the_token_passes(headers: dict[str, str], query: str) -> None:
    assert ask("GET", "/bucket/key", headers, query=query).body == "reached"


def test_an_access_key_is_no_token() -> None:
    signature = f"AWS4-HMAC-SHA256 Credential={TOKEN}/20260101/eu-central-1/sqs/aws4_request"
    assert refused(ask("POST", "/", {"authorization": signature}))


@pytest.mark.parametrize("path", ["/_ministack/ses/messages", "/_ministack/reset", "/_ministack/ready"])
def test_the_paths_of_ministack_need_the_local_key(path: str) -> None:
    assert refused(ask("POST", path, WITH_TOKEN))
    assert refused(ask("POST", path, {"x-local-key": "token-2"}))
    assert "X-Local-Key" in ask("POST", path).body
    assert ask("POST", path, WITH_KEY).body == "reached"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/_ministack/health"),
        ("PUT", f"/_ministack/cfn-response/{UUID}"),
        ("POST", ENDPOINT),
        ("GET", "/_aws/execute-api/a1b2c3d4/$default"),
        ("POST", f"/_aws/lambda-url/{FUNCTION_URL}"),
        ("DELETE", f"/_aws/lambda-url/{FUNCTION_URL}/v1/charges"),
        ("GET", f"/_aws/lambda-url/{FUNCTION_URL}/a\nb"),
    ],
)
def test_health_custom_resources_and_endpoints_need_no_token(method: str, path: str) -> None:
    assert ask(method, path).body == "reached"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_ministack/health"),
        ("GET", "/_ministack/health/"),
        ("GET", "//_ministack/health"),
        ("GET", "/_MINISTACK/health"),
        ("GET", "/_ministack/healthy"),
        ("GET", "/_ministack/health\n"),
        ("GET", "/_ministack/health/../reset"),
        ("GET", "/health"),
        ("POST", f"/_ministack/cfn-response/{UUID}"),
        ("PUT", "/_ministack/cfn-response/"),
        ("PUT", f"/_ministack/cfn-response/{UUID}/../../reset"),
        ("PUT", f"/_ministack/cfn-signal/{UUID}"),
        ("POST", "/_aws/execute-api/a1b2c3d4"),
        ("POST", "/_aws/execute-api//x"),
        ("POST", "/_aws/execute-api/../2015-03-31/functions"),
        ("POST", "//_aws/execute-api/a1b2c3d4/x"),
        ("POST", "/_AWS/execute-api/a1b2c3d4/x"),
        ("POST", "/x/_aws/execute-api/a1b2c3d4/x"),
        ("POST", "/_aws/execute-api/a1b2c3d4/$default/@connections/c1"),
        ("POST", "/_aws/execute-api/a1b2c3d4//@connections/c1"),
        ("POST", "/_aws/lambda-url/"),
        ("POST", "/_aws/lambda-url//x"),
        ("POST", "/_aws/lambda-url"),
        ("POST", "http://127.0.0.1:4567/_aws/lambda-url/a1/x"),
    ],
)
def test_a_path_that_only_resembles_an_exempt_one_needs_the_token(method: str, path: str) -> None:
    assert refused(ask(method, path))


@pytest.mark.parametrize("host", [f"bucket.localhost:{PORT}", f"a1.cloudfront.localhost:{PORT}"])
def test_under_a_host_that_ministack_routes_by_itself_no_path_is_exempt(host: str) -> None:
    assert refused(ask("POST", ENDPOINT, host=host))
    assert ask("POST", ENDPOINT, WITH_TOKEN, host=host).body == "reached"


@pytest.mark.parametrize(
    ("host", "by_path"),
    [
        ("a1b2c3d4.execute-api.localhost", "/_aws/execute-api/a1b2c3d4"),
        (f"{FUNCTION_URL}.lambda-url.eu-central-1.localhost", f"/_aws/lambda-url/{FUNCTION_URL}"),
    ],
)
@pytest.mark.parametrize("path", ["/orders", "/", "/_ministack/reset", "/v2/email/outbound-emails", "/iceberg/v1"])
def test_an_endpoint_that_is_named_by_its_host_is_addressed_by_its_path(host: str, by_path: str, path: str) -> None:
    request = ask("POST", path, host=f"{host}:{PORT}").request
    assert request is not None
    assert (request["path"], request["raw_path"]) == (by_path + path, (by_path + path).encode())
    assert [value for name, value in request["headers"] if name == b"host"] == [b"localhost:4567"]


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"evillocalhost:{PORT}",
        f"0.0.0.0:{PORT}",
        f"x{HOST}",
        f"{HOST},evil.example",
        f"{HOST}\n",
        "127.0.0.1:4568",
        "127.0.0.1",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/_ministack/health", ENDPOINT])
def test_a_foreign_host_is_refused_even_with_the_token(host: str, path: str) -> None:
    assert refused(ask("GET", path, WITH_TOKEN | WITH_KEY, host=host))


@pytest.mark.parametrize("host", [HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"my.bucket.s3.localhost:{PORT}"])
def test_the_names_of_loopback_are_known(host: str) -> None:
    assert ask("GET", "/", WITH_TOKEN, host=host).body == "reached"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8080"},
        {"origin": f"https://{HOST}"},
        {"origin": f"http://localhost:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "same-origin"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/_ministack/health", ENDPOINT])
def test_a_request_of_a_web_page_is_refused_even_with_the_token(headers: dict[str, str], path: str) -> None:
    assert refused(ask("POST", path, headers | WITH_TOKEN | WITH_KEY))
    assert refused(ask("OPTIONS", path, headers | WITH_TOKEN | WITH_KEY))


def test_an_address_that_a_person_types_passes() -> None:
    assert ask("GET", "/_ministack/health", {"sec-fetch-site": "none"}).body == "reached"
    assert ask("GET", "/_ministack/health", {"origin": f"http://{HOST}"}).body == "reached"


def test_no_answer_allows_another_origin() -> None:
    for answer in (ask("GET", "/", WITH_TOKEN), ask("GET", "/"), ask("GET", ENDPOINT)):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "content-type" in answer.headers


def test_a_refusal_has_the_form_that_the_sdk_of_the_service_reads() -> None:
    answer = ask("POST", "/", {"x-amz-target": "AmazonSQS.SendMessage"})
    assert json.loads(answer.body)["__type"] == "AccessDenied"
    assert "<Code>AccessDenied</Code>" in ask("GET", "/bucket").body
    assert "<Message>Host 'a&lt;b&amp;c'" in ask("GET", "/bucket", host="a<b&c").body


@pytest.mark.parametrize("headers", [{}, WITH_TOKEN | WITH_KEY])
def test_websockets_are_refused(headers: dict[str, str]) -> None:
    emulator, sent = Emulator(), list[Scope]()
    fields = [(name.encode(), value.encode()) for name, value in {"host": HOST, **headers}.items()]

    async def receive() -> Scope:
        return {"type": "websocket.connect"}

    async def send(message: Scope) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": ENDPOINT, "query_string": b"", "headers": fields}
    asyncio.run(Gateway(emulator, PORT, TOKEN)(scope, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
    assert emulator.requests == []


def test_a_gateway_without_a_token_does_not_start() -> None:
    with pytest.raises(ValueError, match="AWS_SESSION_TOKEN is empty"):
        Gateway(Emulator(), PORT, "")


def test_on_port_80_clients_leave_the_port_out() -> None:
    gateway = Gateway(Emulator(), 80, TOKEN)
    for host, passes in (("localhost", True), ("localhost:80", True), ("localhost:81", False)):
        headers = [(b"host", host.encode())]
        scope = {"method": "GET", "path": "/_ministack/health", "query_string": b"", "headers": headers}
        assert (gateway._refusal(scope) is None) is passes


def test_a_method_that_looks_like_an_exempt_request_is_refused() -> None:
    assert refused(ask("POST /_aws/execute-api/a/", "/", {"x-amz-target": "DynamoDB_20120810.ListTables"}))
