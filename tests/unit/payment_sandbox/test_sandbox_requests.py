"""HTTP requests: parameters, API key, routes, limits, errors and the log."""

import io
import json
from pathlib import Path

import boto3
import pytest
import requests
import stripe

from functions.payment_sandbox import host, wire
from functions.payment_sandbox.handler import handler
from shared.idempotency import logger
from tests.harness.http_lambda import Context
from tests.unit.payment_sandbox.conftest import Clock, Connect, Sandbox, untyped

GOOD = {"amount": "2500", "currency": "eur"}
HEADERS = {"Authorization": "Bearer k"}


@pytest.mark.parametrize(
    ("changed", "code", "param"),
    [
        ({"amount": None}, "parameter_missing", "amount"),
        ({"amount": "0"}, "parameter_invalid_integer", "amount"),
        ({"amount": "1_000"}, "parameter_invalid_integer", "amount"),
        ({"amount": "100000000"}, "parameter_invalid_integer", "amount"),
        ({"currency": None}, "parameter_missing", "currency"),
        ({"currency": "euro"}, None, "currency"),
        ({"payment_method": "pm_none"}, "resource_missing", "payment_method"),
        ({"capture_method": "manual"}, "parameter_unknown", "capture_method"),
        ({"payment_method_types[0]": "sepa_debit"}, None, "payment_method_types[0]"),
        ({"allowed_payment_method_types[0]": "link"}, None, "allowed_payment_method_types[0]"),
        ({"metadata[a][b]": "x"}, None, "metadata[a][b]"),
        ({"metadata[a]": "x" * 501}, None, "metadata[a]"),
        ({f"metadata[{n}]": "x" for n in range(51)}, None, "metadata"),
    ],
)
def test_a_wrong_parameter_is_a_400_that_names_it(
    url: str, changed: dict[str, str | None], code: str | None, param: str
) -> None:
    form = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    answer = requests.post(f"{url}/v1/payment_intents", form, headers=HEADERS, timeout=20)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert (error.get("code"), error["param"]) == (code, param)
    assert error["message"]


def test_an_unknown_cancellation_reason_is_refused(sandbox: Sandbox) -> None:
    intent = sandbox.create_intent()
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.intents.cancel(intent.id, params=untyped({"cancellation_reason": "whim"}))
    assert refused.value.param == "cancellation_reason"
    assert sandbox.status(intent) == "requires_confirmation"


def test_the_form_keeps_all_characters_of_a_text(sandbox: Sandbox) -> None:
    text = "ü & = + % [x] 漢"
    intent = sandbox.intents.create(
        params={"amount": 1, "currency": "eur", "description": text, "metadata": {"order_id": text, "k&=": "v"}}
    )
    assert intent.description == text
    assert intent.metadata.to_dict() == {"order_id": text, "k&=": "v"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/customers"), ("POST", "/v1/payment_intents/pi_1/capture")])
def test_an_unknown_route_is_a_404(url: str, method: str, path: str) -> None:
    answer = requests.request(method, url + path, headers=HEADERS, timeout=20)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")


def test_every_answer_has_a_request_id_of_its_own(sandbox: Sandbox) -> None:
    ids = {untyped(sandbox.intents.list()).last_response.request_id for _ in range(2)}
    with pytest.raises(stripe.InvalidRequestError) as refused:
        sandbox.intents.retrieve("pi_none")
    ids.add(refused.value.request_id)
    assert len(ids) == 3
    assert all(str(id_).startswith("req_") for id_ in ids)


@pytest.mark.parametrize("authorization", [None, "Bearer ", "Basic c2tfdGVzdDo="])
def test_a_request_without_a_bearer_key_is_a_401(url: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = requests.get(f"{url}/v1/charges", headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "invalid_request_error")


def test_a_configured_secret_is_the_only_key_that_is_accepted(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = boto3.client("secretsmanager").create_secret(Name="key", SecretString="sk_test_right")
    monkeypatch.setenv("API_KEY_SECRET_ARN", secret["ARN"])
    host.secret.cache_clear()
    assert connect("sk_test_right").v1.charges.list().data == []
    for wrong in ("sk_test_wrong", "sk_test_righ", "ключ".encode().decode("latin-1")):
        with pytest.raises(stripe.AuthenticationError) as refused:
            connect(wrong).v1.charges.list()
        assert refused.value.http_status == 401
        assert wrong not in str(refused.value)


def sample_event(**changes: object) -> dict[str, object]:
    event: dict[str, object] = json.loads(Path("events/payment_sandbox.json").read_text())
    return event | changes


@pytest.mark.usefixtures("aws", "clock")
def test_the_sample_event_creates_an_intent() -> None:
    answer = handler(sample_event(), Context())
    intent = json.loads(answer["body"])
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "application/json")
    assert (intent["amount"], intent["currency"], intent["metadata"]) == (2500, "eur", {"order_id": "ord_sample"})


@pytest.mark.usefixtures("aws", "clock")
def test_a_body_may_be_text_or_base64_of_text() -> None:
    text = sample_event(body="amount=7&currency=usd", isBase64Encoded=False)
    assert json.loads(handler(text, Context())["body"])["amount"] == 7
    for body in ("%%%", "/w=="):
        assert handler(sample_event(body=body), Context())["statusCode"] == 400


@pytest.mark.usefixtures("aws", "clock")
@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("a=" + "x" * 65_535, "more than 65536 bytes"),
        ("&".join(f"f{n}=1" for n in range(101)), "Max number of fields"),
        ("&" * 1000, "Max number of fields"),
    ],
)
def test_too_many_parameters_are_a_400(form: str, rule: str) -> None:
    body = sample_event(body=form, isBase64Encoded=False)
    query = sample_event(requestContext={"http": {"method": "GET"}}, rawQueryString=form)
    for event in (body, query):
        answer = handler(event, Context())
        assert answer["statusCode"] == 400
        assert rule in json.loads(answer["body"])["error"]["message"]


def test_a_body_far_over_the_limit_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("base64.b64decode", lambda *_, **__: pytest.fail("decoded"))
    with pytest.raises(ValueError, match="more than 65536 bytes"):
        wire.parse_request(sample_event(body="QUFB" * 1_500_000), 0)


def test_the_body_of_a_request_without_a_key_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "parse_request", lambda *_: pytest.fail("parsed"))
    assert handler(sample_event(headers={}), Context())["statusCode"] == 401


def test_an_internal_failure_is_a_500_without_details(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_TABLE", "gone")
    with pytest.raises(stripe.APIError) as failed:
        sandbox.intents.list()
    assert (failed.value.http_status, untyped(failed.value).json_body["error"]["type"]) == (500, "api_error")
    assert "gone" not in untyped(failed.value).http_body


def test_the_log_has_ids_and_states_and_no_personal_data(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", log)
    intent = sandbox.intents.create(
        params={
            "amount": 1,
            "currency": "eur",
            "description": "for A. Buyer",
            "payment_method": "pm_card_chargeDeclined",
            "metadata": {"order_id": "ord_1", "mail": "buyer@example.com"},
        }
    )
    with pytest.raises(stripe.CardError):
        sandbox.confirm(intent)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["status"], line["object_status"]) for line in lines] == [
        (200, "requires_confirmation"),
        (402, "requires_payment_method"),
    ]
    assert {(line["object_id"], line["order_id"]) for line in lines} == {(intent.id, "ord_1")}
    assert lines[1]["error_code"] == "card_declined"
    for private in ("Buyer", "buyer@", "sk_test_1"):
        assert private not in log.getvalue()


def test_a_configured_answer_time_delays_every_request(
    sandbox: Sandbox, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.confirm(sandbox.create_intent())
    assert clock.waits == []
    monkeypatch.setenv("ANSWER_S", "0.35")
    sandbox.confirm(sandbox.create_intent())
    assert clock.waits == [0.35, 0.35]
