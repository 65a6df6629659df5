"""An answer that arrives byte by byte ends by the read timeout, over a real socket."""

import datetime
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import stripe
from botocore.exceptions import ReadTimeoutError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from shared.idempotency.runtime import Service, make_client
from tests.harness.layer_world import ENVIRONMENT
from tests.unit.idempotency.test_clients import REQUESTS

TIMEOUT_S = 0.2
GAP_S = 0.02  # between two bytes: far below the timeout, so that no single read times out
LATE_S = 1.5  # the whole answer takes longer
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
BODY = b"{" + b" " * 98 + b"}"
FULL = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


class Server:
    """Answers one request after the other, each with `at_once` and then byte by byte with `dripping`."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.at_once, self.dripping = FULL, b""
        self.requests = 0
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._over.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with closing(connection):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        try:
            while _read_request(connection):
                self.requests += 1
                connection.sendall(self.at_once)
                for byte in self.dripping:
                    connection.sendall(bytes([byte]))
                    if self._over.wait(GAP_S):
                        return
        except OSError:
            return  # the client closed the connection


def _read_request(connection: socket.socket) -> bool:
    """Read one request. Returns False if the client closed the connection."""
    found = b""
    while b"\r\n\r\n" not in found:
        if not (more := connection.recv(65536)):
            return False
        found += more
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.I)
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0:
        missing -= len(connection.recv(missing))
    return True


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    path.write_bytes(
        made.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain)
    )
    return path


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    tls = None
    if request.param == "https":
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    made = Server(tls)
    for name, value in {
        **ENVIRONMENT,
        "AWS_ENDPOINT_URL": made.url,
        "AWS_CA_BUNDLE": str(certificate),
        "NO_PROXY": "127.0.0.1",
        "CLIENT_CONNECT_TIMEOUT_S": "5",
        "CLIENT_READ_TIMEOUT_S": str(TIMEOUT_S),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(stripe, "ca_bundle_path", str(certificate))
    with closing(made):
        yield made


def ask_aws(service: Service) -> Callable[[], Any]:
    method, _, parameters = REQUESTS[service]
    client = make_client(service)
    return lambda: getattr(client, method)(**parameters)


def ask_stripe(url: str) -> Callable[[], Any]:
    client = stripe.StripeClient(
        "sk_test_x",
        base_addresses={"api": url},
        http_client=stripe.RequestsClient(timeout=(5, TIMEOUT_S)),
        max_network_retries=0,
    )
    return lambda: client.v1.payment_intents.retrieve("pi_1")


def seconds_until(error: type[Exception], call: Callable[[], Any]) -> float:
    began_s = time.monotonic()
    with pytest.raises(error):
        call()
    return time.monotonic() - began_s


@pytest.mark.parametrize("service", ["dynamodb", "s3"])
@pytest.mark.parametrize("at_once", [b"", HEAD, FULL[: -len(BODY)]], ids=["all", "from a header on", "the body"])
def test_an_aws_client_waits_no_longer_for_a_dripping_answer_than_for_none(
    server: Server, service: Service, at_once: bytes
) -> None:
    server.at_once, server.dripping = at_once, FULL[len(at_once) :]

    assert TIMEOUT_S * 0.9 < seconds_until(ReadTimeoutError, ask_aws(service)) < LATE_S

    assert server.requests == 1


@pytest.mark.parametrize("at_once", [b"", FULL[: -len(BODY)]], ids=["all", "the body"])
def test_the_sdk_of_the_provider_waits_no_longer_for_a_dripping_answer_than_for_none(
    server: Server, at_once: bytes
) -> None:
    server.at_once, server.dripping = at_once, FULL[len(at_once) :]

    assert TIMEOUT_S * 0.9 < seconds_until(stripe.APIConnectionError, ask_stripe(server.url)) < LATE_S


def test_each_request_on_a_connection_has_the_whole_time(server: Server) -> None:
    server.at_once, server.dripping = FULL[:-3], FULL[-3:]
    ask = ask_aws("dynamodb")

    for _ in range(8):  # together they take longer than the timeout
        ask()

    assert server.requests == 8
