"""Other programs and web pages cannot use the local AWS: only clients with its token can."""

import base64
import http.client
import io
import json
import re
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from playwright.sync_api import Browser

from tests.e2e.app import App
from tools.local import processes

CREATE = "/2015-03-31/functions"
FUNCTION = "from-a-web-page"
DYNAMODB = {"X-Amz-Target": "DynamoDB_20120810.ListTables", "Content-Type": "application/x-amz-json-1.0"}

# Runs in the page. A request in mode no-cors needs no permission of the server; the page cannot read its answer.
ATTACK = """async ([endpoint, create, requests]) => {
    const create_it = {method: "POST", body: requests[0][1]};
    const read = await fetch(endpoint + create, create_it).then(() => "read", () => "refused");
    for (const [path, body] of requests)
        await fetch(endpoint + path, {mode: "no-cors", method: body ? "POST" : "GET", body});
    const socket = new WebSocket(endpoint.replace("http", "ws") + "/_aws/execute-api/a1b2c3d4/x");
    const opened = await new Promise(done => {
        socket.onopen = () => done("open");
        socket.onerror = () => done("refused");
    });
    return [read, opened];
}"""


@pytest.fixture
def address(app: App) -> str:
    """Host and port of the local AWS."""
    return urllib.parse.urlsplit(app.running.endpoint).netloc


def ask(address: str, method: str, path: str, headers: dict[str, str] | None = None, body: str = "") -> tuple[int, str]:
    """Send a request that carries no token by itself. Return status and body."""
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    return answer.status, text


def function_of_a_stranger() -> str:
    """A body for Lambda's CreateFunction."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context):\n    return {}\n")
    role = "arn:aws:iam::000000000000:role/x"
    settings = {"FunctionName": FUNCTION, "Runtime": "python3.13", "Role": role, "Handler": "index.handler"}
    return json.dumps(settings | {"Code": {"ZipFile": base64.b64encode(code.getvalue()).decode()}})


@contextmanager
def web_page() -> Iterator[str]:
    """An empty page of another origin; its address."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("site", ["127.0.0.1", "localhost"])
def test_a_web_page_of_another_origin_cannot_run_code(app: App, browser: Browser, site: str) -> None:
    endpoint = app.running.endpoint
    requests = [
        (CREATE, function_of_a_stranger()),
        (f"{CREATE}/{FUNCTION}/invocations", "{}"),
        ("/_ministack/config", "{}"),
        ("/_ministack/ses/messages", None),
        ("/_ministack/health", None),
        (urllib.parse.urlsplit(app.outputs["PaymentSandboxUrl"]).path + "/v1/charges", None),
    ]
    answers: list[tuple[str, int]] = []
    with web_page() as page_address, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://{page_address.replace('127.0.0.1', site)}/")
        page.on("response", lambda answer: answers.append((answer.url.removeprefix(endpoint), answer.status)))
        outcome = page.evaluate(ATTACK, [endpoint, CREATE, requests])
    functions = app.running.client("lambda").get_paginator("list_functions").paginate()
    assert FUNCTION not in {function["FunctionName"] for page in functions for function in page["Functions"]}
    assert outcome == ["refused", "refused"]
    assert set(answers) >= {(path, 403) for path, _ in requests}
    assert {status for _, status in answers} == {403}


@pytest.mark.parametrize("service", ["sts", "s3", "sqs", "dynamodb", "lambda", "cloudformation"])
def test_an_sdk_without_the_token_is_refused(app: App, service: str) -> None:
    call = {"sts": "get_caller_identity", "s3": "list_buckets", "sqs": "list_queues", "dynamodb": "list_tables"}
    name = call.get(service) or {"lambda": "list_functions", "cloudformation": "list_stacks"}[service]
    for token in (None, "wrong"):
        session: Any = boto3.session.Session("test", "test", token, app.running.environment["AWS_REGION"])
        client = session.client(service, endpoint_url=app.running.endpoint)
        with pytest.raises(ClientError, match=r"Read \.local/env") as refusal:
            getattr(client, name)()
        assert refusal.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert getattr(app.running.client(service), name)()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_presigned_url_carries_the_token(app: App) -> None:
    s3 = app.running.client("s3")
    target = {"Bucket": app.outputs["ReceiptsBucketName"], "Key": "presigned"}
    s3.put_object(**target, Body=b"here")
    url = s3.generate_presigned_url("get_object", Params=target)
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - loopback
        assert answer.read() == b"here"
    s3.delete_object(**target)


def test_credentials_of_an_assumed_role_work_too(app: App) -> None:
    role = "arn:aws:iam::000000000000:role/any"
    assumed = app.running.client("sts").assume_role(RoleArn=role, RoleSessionName="session")["Credentials"]
    session: Any = boto3.session.Session(
        assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"], "eu-central-1"
    )
    assert session.client("s3", endpoint_url=app.running.endpoint).list_buckets()["Buckets"]


def test_the_paths_of_ministack_need_the_local_key(app: App, address: str) -> None:
    assert ask(address, "GET", "/_ministack/ses/messages")[0] == 403
    assert ask(address, "GET", "/_ministack/ses/messages", app.running.local_key)[0] == 200
    assert ask(address, "POST", "/_ministack/reset")[0] == 403
    assert ask(address, "GET", "/_ministack/health")[0] == 200


def test_another_name_for_loopback_is_refused(app: App, address: str) -> None:
    port = address.rpartition(":")[2]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1"):
        headers = app.running.local_key | {"Host": host}
        assert ask(address, "GET", "/_ministack/ses/messages", headers)[0] == 403
        assert ask(address, "GET", "/_ministack/health", headers)[0] == 403


def test_endpoints_need_no_token_by_path_or_by_host(app: App, address: str) -> None:
    port = address.rpartition(":")[2]
    api = re.search(r"/_aws/execute-api/(\w+)/", app.outputs["ApiUrl"])
    sandbox = re.search(r"/_aws/lambda-url/(\w+)", app.outputs["PaymentSandboxUrl"])
    assert api
    assert sandbox
    bearer = {"Authorization": "Bearer sk_test_1"}
    assert "charge" in ask(address, "GET", f"{sandbox[0]}/v1/charges?limit=1", bearer)[1]
    hosts = {"Host": f"{sandbox[1]}.lambda-url.eu-central-1.localhost:{port}"}
    assert ask(address, "GET", "/v1/charges?limit=1", bearer | hosts)[0] == 200
    hosts = {"Host": f"{api[1]}.execute-api.localhost:{port}"}
    answer_of_the_api = (403, '{"message": "Forbidden"}')  # the request has no signature
    assert ask(address, "GET", f"{api[0]}$default/orders/ord_1") == answer_of_the_api
    assert ask(address, "GET", "/orders/ord_1", hosts) == answer_of_the_api


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/_aws/execute-api/a1b2c3d4", ""),
        ("POST", "/_aws/execute-api/a1b2c3d4/", ""),
        ("POST", "/_aws/execute-api/a1b2c3d4/x", ""),
        ("POST", "/_aws/lambda-url/a1b2c3d4", ""),
        ("POST", "/_aws/lambda-url/a1b2c3d4/..%2f..%2f..%2f", ""),
        ("POST", "/_aws/lambda-url/a1b2c3d4/../../../", ""),
        ("PUT", "/_ministack/cfn-response/0b5a8d9e-1c2d-4e3f-8a9b-0c1d2e3f4a5b", ""),
        ("POST", "/_ministack/health", ""),
        ("POST", "/", "a1b2c3d4.execute-api."),
        ("POST", "/", "dynamodb."),
    ],
)
def test_no_exempt_address_reaches_an_aws_api(address: str, method: str, path: str, name: str) -> None:
    """MiniStack routes by X-Amz-Target and by Action= where a path says nothing."""
    host = {"Host": name + address.replace("127.0.0.1", "localhost")}
    assert "TableNames" not in ask(address, method, path, DYNAMODB | host, "{}")[1]
    assert "QueueUrl" not in ask(address, method, f"{path}?Action=ListQueues&Version=2012-11-05", host)[1]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's /proc")
def test_it_listens_on_one_port_of_loopback_only(app: App, address: str) -> None:
    sockets = "".join(Path(f"/proc/net/{table}").read_text() for table in ("tcp", "tcp6")).splitlines()
    by_inode = {fields[9]: fields[1] for fields in map(str.split, sockets) if fields[3] == "0A"}  # 0A is LISTEN
    found = set()
    for pid in processes.find("tools.local.gateway"):
        if f"TMPDIR={app.running.tmp}".encode() in Path(f"/proc/{pid}/environ").read_bytes():
            files = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
            found |= {local for inode, local in by_inode.items() if f"socket:[{inode}]" in files}
    port = int(address.rpartition(":")[2])
    assert found == {f"0100007F:{port:04X}"}
