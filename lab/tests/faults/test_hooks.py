"""Each kind of fault, on the real boto3 and the real stripe client, over sockets."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import boto3
import pytest
import stripe
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError
from tests.harness import samples
from tests.harness.http_lambda import Context, serve
from tests.harness.interceptor import Killed

from lab.faults import hooks
from lab.faults.plan import Fault, Kind
from lab.tests.faults.conftest import Bench

DONE: dict[str, Any] = {"batchItemFailures": []}


def message(*orders: str, receive_count: int = 1) -> dict[str, Any]:
    bodies = [json.dumps({"data": {"order_id": order}}) for order in orders]
    return samples.sqs_event(*bodies, receive_count=receive_count)


def writing(bench: Bench, *, fails: list[Exception] | None = None) -> Callable[[Any, Any], Any]:
    """A handler that writes one item for each order, and keeps what its client raises."""
    dynamodb = bench.client("dynamodb")

    def handler(event: Any, _: Any) -> Any:
        for record in event["Records"]:
            order = json.loads(record["body"])["data"]["order_id"]
            try:
                dynamodb.put_item(TableName="orders", Item={"order_id": {"S": order}})
            except Exception as error:
                if fails is None:
                    raise
                fails.append(error)
        return DONE

    return handler


@pytest.mark.parametrize(
    ("kind", "written", "error"),
    [
        (Kind.ANSWER_LOST, True, ReadTimeoutError),
        (Kind.THROTTLED, False, ClientError),
        (Kind.ERROR_BEFORE, False, ClientError),
        (Kind.ERROR_AFTER, True, ClientError),
        (Kind.SLOW, True, None),
    ],
)
def test_boto3_sees_a_fault_as_it_sees_the_real_one(
    bench: Bench, kind: Kind, written: bool, error: type[Exception] | None
) -> None:
    fails: list[Exception] = []
    worker = bench.worker(writing(bench, fails=fails), fault=Fault(kind, 1))

    assert worker(message("ord_1"), Context()) == DONE

    assert len(fails) == (1 if error else 0)
    assert all(isinstance(failed, error or Exception) for failed in fails)
    assert (bench.world.row("ord_1") is not None) == written
    assert bench.kinds() == [kind]
    assert bench.slept == ([0.5] if kind is Kind.SLOW else [])
    for failed in fails:
        if isinstance(failed, ClientError):
            code, status = failed.response["Error"]["Code"], failed.response["ResponseMetadata"]["HTTPStatusCode"]
            throttled = kind is Kind.THROTTLED
            assert (code, status) == (("ThrottlingException", 429) if throttled else ("InternalServerError", 500))


@pytest.mark.parametrize(("kind", "written"), [(Kind.DIE_BEFORE, False), (Kind.DIE_AFTER, True)])
def test_a_death_comes_before_the_request_or_after_its_answer(bench: Bench, kind: Kind, written: bool) -> None:
    worker = bench.worker(writing(bench), fault=Fault(kind, 1))

    with pytest.raises(Killed):
        worker(message("ord_1"), Context())

    assert (bench.world.row("ord_1") is not None) == written
    assert bench.kinds() == [kind]


@pytest.mark.parametrize(
    ("kind", "executed", "error"),
    [
        (Kind.ANSWER_LOST, 1, stripe.APIConnectionError),
        (Kind.THROTTLED, 0, stripe.RateLimitError),
        (Kind.ERROR_BEFORE, 0, stripe.APIError),
        (Kind.ERROR_AFTER, 1, stripe.APIError),
        (Kind.SLOW, 1, None),
    ],
)
def test_the_stripe_client_sees_a_fault_as_it_sees_the_real_one(
    bench: Bench, kind: Kind, executed: int, error: type[Exception] | None
) -> None:
    confirmed: list[str] = []

    def provider(event: Any, _: Any) -> Any:
        if event["rawPath"].endswith("/confirm"):
            confirmed.append(event["rawPath"])
        return {"statusCode": 200, "body": '{"id": "pi_1", "object": "payment_intent"}'}

    with serve(provider) as url:
        client = stripe.StripeClient("sk_test", base_addresses={"api": url}, max_network_retries=0)

        def handler(*_: Any) -> Any:
            client.v1.payment_intents.create({"amount": 1, "currency": "eur", "metadata": {"order_id": "ord_1"}})
            client.v1.payment_intents.confirm("pi_1")

        worker = bench.worker(handler, "payment", Fault(kind))
        if error is None:
            worker(message("ord_1"), Context())
        else:
            with pytest.raises(error):
                worker(message("ord_1"), Context())

    assert len(confirmed) == executed
    [injected] = bench.injected()
    assert (injected.kind, injected.call) == (kind, 2)  # which names the intent only


def test_the_effect_is_known_by_its_address() -> None:
    def has_effect(method: str, path: str, body: str = "") -> bool:
        address = f"http://127.0.0.1:1{path}"
        return hooks.Exchange(method, address, {}, body, lambda: None, Exception, lambda *_: None).has_effect

    assert has_effect("POST", "/v1/payment_intents/pi_1/confirm", "error_on_requires_action=true")
    assert has_effect("POST", "/v1/payment_intents", "amount=1&confirm=true")
    assert has_effect("POST", "/v1/charges")
    assert has_effect("POST", "/v2/email/outbound-emails", "{}")
    assert not has_effect("POST", "/v1/payment_intents", "amount=1")
    assert not has_effect("GET", "/v1/charges")
    assert not has_effect("POST", "/v1/payment_intents/pi_1/cancel")
    assert not has_effect("POST", "/")


def test_with_two_orders_in_two_threads_the_one_that_is_due_suffers_and_the_other_does_not(bench: Bench) -> None:
    dynamodb = bench.client("dynamodb")
    lost: list[str] = []

    def work(order: str) -> None:
        for n in range(5):
            try:
                dynamodb.put_item(TableName="orders", Item={"order_id": {"S": order}, "n": {"N": str(n)}})
            except ReadTimeoutError:
                lost.append(order)

    def handler(event: Any, _: Any) -> Any:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, [json.loads(record["body"])["data"]["order_id"] for record in event["Records"]]))

    bench.worker(handler, fault=Fault(Kind.ANSWER_LOST, 3))(message("ord_2", "ord_1"), Context())

    assert lost == ["ord_2"]
    assert [(injected.order, injected.call) for injected in bench.injected()] == [("ord_2", 3)]
    assert len(bench.gateway.received) == 10


def test_a_record_of_a_stream_meets_its_fault_once_however_often_it_comes(bench: Bench) -> None:
    dynamodb = bench.client("dynamodb")

    def relay(*_: Any) -> None:
        dynamodb.put_item(TableName="orders", Item={"order_id": {"S": "ord_1"}, "with": {"S": "ord_2"}})

    worker = bench.worker(relay, "relay", seed=1, percent=100)
    keys = [f"payment.charge#ord_{n}" for n in (1, 2)]
    event = {"Records": [{"eventID": f"of {key}", "dynamodb": {"Keys": {"id": {"S": key}}}} for key in keys]}
    suffered: list[int] = []
    for _ in range(4):
        with suppress(Killed, ClientError, ReadTimeoutError):
            worker(event, Context())
        suffered.append(len(bench.injected()))

    assert suffered == [1, 2, 2, 2]  # one request carries both, and one fault at a time
    assert bench.world.row("ord_1") is not None


def test_a_fault_that_cannot_be_noted_does_not_strike_and_the_log_says_so(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = bench.worker(writing(bench), seed=1, percent=100)
    bench.world.dynamodb.delete_table(TableName="faults")

    assert worker(message("ord_1"), Context()) == DONE

    assert bench.world.row("ord_1") is not None
    assert "no fault injected" in capsys.readouterr().out


class Recorder:
    """A server that writes down each request, byte for byte."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []
        recorder = self

        class Front(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                recorder.requests.append((f"{self.requestline}\n{self.headers}", body))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                """Nothing on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    thread = Thread(target=recorder.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield recorder
    recorder.server.shutdown()
    recorder.server.server_close()
    thread.join()


def test_where_no_fault_strikes_every_request_is_the_same_byte_for_byte(bench: Bench, recorder: Recorder) -> None:
    unsigned = Config(signature_version="v4", retries={"mode": "standard", "total_max_attempts": 1})
    dynamodb: Any = boto3.client("dynamodb", endpoint_url=recorder.url, config=unsigned)
    provider = stripe.StripeClient("sk_test", base_addresses={"api": recorder.url}, max_network_retries=0)

    def handler(*_: Any) -> None:
        dynamodb.put_item(TableName="orders", Item={"order_id": {"S": "ord_1"}, "blob": {"B": bytes(range(256))}})
        provider.v1.payment_intents.create(
            {"amount": 1, "currency": "eur", "metadata": {"order_id": "ord_1"}}, {"idempotency_key": "ord_1"}
        )

    handler()
    bench.worker(handler, "payment")(message("ord_1"), Context())
    bench.worker(handler, "payment", Fault(Kind.DIE_BEFORE, 99))(message("ord_1"), Context())

    plain, without, watched = (recorder.requests[n : n + 2] for n in (0, 2, 4))
    assert len(recorder.requests) == 6
    assert _lasting(plain) == _lasting(without) == _lasting(watched)
    assert bench.injected() == []


def _lasting(requests: list[tuple[str, bytes]]) -> list[tuple[list[str], bytes]]:
    """Without what differs from one request to the next by itself: times, signatures and ids of the invocation."""
    changing = ("x-amz-date", "authorization: aws4", "amz-sdk-invocation-id", "x-stripe-client-telemetry")
    return [
        ([line for line in head.splitlines() if not line.lower().startswith(changing)], body) for head, body in requests
    ]
