"""What arrives over HTTP: checks, keys of the API, routes, the function URL's event."""

import io
import json
from pathlib import Path

import boto3
import pytest
import requests
import stripe

from functions.payment_sandbox import auth, wire
from functions.payment_sandbox.handler import handler
from shared.idempotency import logger
from tests.harness.http_lambda import Context
from tests.unit.payment_sandbox.conftest import Clock, Connect, Shop, seen

GOOD = {"amount": "2500", "currency": "eur"}


@pytest.mark.parametrize(
    ("changed", "code", "param"),
    [
        ({"amount": None}, "parameter_missing", "amount"),
        ({"amount": ""}, "parameter_missing", "amount"),
        ({"amount": "0"}, "parameter_invalid_integer", "amount"),
        ({"amount": "-5"}, "parameter_invalid_integer", "amount"),
        ({"amount": "12.50"}, "parameter_invalid_integer", "amount"),
        ({"amount": "1_000"}, "parameter_invalid_integer", "amount"),
        ({"amount": "١٢"}, "parameter_invalid_integer", "amount"),
        ({"amount": "100000000"}, "parameter_invalid_integer", "amount"),
        ({"currency": None}, "parameter_missing", "currency"),
        ({"currency": "euro"}, None, "currency"),
        ({"currency": "€€€"}, None, "currency"),
        ({"payment_method": "pm_none"}, "resource_missing", "payment_method"),
        ({"capture_method": "manual"}, "parameter_unknown", "capture_method"),
        ({"payment_method_types[0]": "sepa_debit"}, None, "payment_method_types[0]"),
        ({"allowed_payment_method_types[0]": "link"}, None, "allowed_payment_method_types[0]"),
        ({"metadata": "x"}, None, "metadata"),
        ({"metadata[a][b]": "x"}, None, "metadata[a][b]"),
        ({"metadata[a]": "x" * 501}, None, "metadata[a]"),
        ({f"metadata[{n}]": "x" for n in range(51)}, None, "metadata"),
    ],
)
def test_a_parameter_that_is_wrong_is_a_400_that_names_it(
    url: str, changed: dict[str, str | None], code: str | None, param: str
) -> None:
    form = {name: value for name, value in {**GOOD, **changed}.items() if value is not None}
    answer = requests.post(f"{url}/v1/payment_intents", form, headers={"Authorization": "Bearer k"}, timeout=20)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert (error.get("code"), error["param"]) == (code, param)
    assert error["message"]


def test_a_reason_for_cancelling_is_one_of_stripes(shop: Shop) -> None:
    intent = shop.intent()
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.intents.cancel(intent.id, params=seen({"cancellation_reason": "whim"}))
    assert refused.value.param == "cancellation_reason"
    assert shop.status(intent) == "requires_confirmation"


def test_text_survives_the_form_as_it_was(shop: Shop) -> None:
    odd = "ü & = + % [x] 漢"
    intent = shop.intents.create(
        params={"amount": 1, "currency": "eur", "description": odd, "metadata": {"order_id": odd, "k&=": "v"}}
    )
    assert intent.description == odd
    assert intent.metadata.to_dict() == {"order_id": odd, "k&=": "v"}


def test_what_a_client_away_from_the_customer_says_at_confirmation_is_taken(shop: Shop) -> None:
    params = {"off_session": True, "error_on_requires_action": True, "return_url": "https://shop.example"}
    assert shop.intents.confirm(shop.intent().id, params=seen(params)).status == "succeeded"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/customers"),
        ("POST", "/v1/charges"),
        ("DELETE", "/v1/payment_intents"),
        ("POST", "/v1/payment_intents/pi_1/capture"),
        ("GET", "/v1/sandbox/idempotency_keys"),
    ],
)
def test_a_route_that_is_not_served_is_404(url: str, method: str, path: str) -> None:
    answer = requests.request(method, url + path, headers={"Authorization": "Bearer k"}, timeout=20)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")


def test_every_answer_has_its_own_request_id(shop: Shop) -> None:
    ids = {seen(shop.intents.list()).last_response.request_id for _ in range(2)}
    with pytest.raises(stripe.InvalidRequestError) as refused:
        shop.intents.retrieve("pi_none")
    ids.add(refused.value.request_id)
    assert len(ids) == 3
    assert all(str(id_).startswith("req_") for id_ in ids)


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic c2tfdGVzdDo="])
def test_without_a_bearer_key_there_is_a_401(url: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = requests.get(f"{url}/v1/charges", headers=headers, timeout=20)
    assert (answer.status_code, answer.json()["error"]["type"]) == (401, "invalid_request_error")


def test_the_key_is_compared_with_the_secret_where_one_is_configured(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = boto3.client("secretsmanager").create_secret(Name="key", SecretString="sk_test_right")
    monkeypatch.setenv("API_KEY_SECRET_ARN", secret["ARN"])
    auth._secret.cache_clear()
    assert connect("sk_test_right").v1.charges.list().data == []
    for wrong in ("sk_test_wrong", "sk_test_righ", "ключ".encode().decode("latin-1")):
        with pytest.raises(stripe.AuthenticationError) as refused:
            connect(wrong).v1.charges.list()
        assert refused.value.http_status == 401
        assert wrong not in str(refused.value)


def test_the_secret_is_fetched_once(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = boto3.client("secretsmanager")
    arn = secrets.create_secret(Name="key", SecretString="sk_test_right")["ARN"]
    monkeypatch.setenv("API_KEY_SECRET_ARN", arn)
    auth._secret.cache_clear()
    connect("sk_test_right").v1.charges.list()
    secrets.delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)
    assert connect("sk_test_right").v1.charges.list().data == []


@pytest.mark.usefixtures("aws", "clock")
def test_the_sample_event_makes_an_intent() -> None:
    event = json.loads(Path("events/payment_sandbox.json").read_text())
    answer = handler(event, Context())
    intent = json.loads(answer["body"])
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "application/json")
    assert (intent["amount"], intent["currency"], intent["metadata"]) == (2500, "eur", {"order_id": "ord_sample"})


@pytest.mark.usefixtures("aws", "clock")
@pytest.mark.parametrize("body", ["%%%", "/w=="])
def test_a_body_that_is_no_text_is_a_400(body: str) -> None:
    event = json.loads(Path("events/payment_sandbox.json").read_text()) | {"body": body}
    assert handler(event, Context())["statusCode"] == 400


@pytest.mark.usefixtures("aws", "clock")
def test_a_body_that_the_platform_left_as_text_is_read_too() -> None:
    event = json.loads(Path("events/payment_sandbox.json").read_text())
    event |= {"body": "amount=7&currency=usd", "isBase64Encoded": False}
    assert json.loads(handler(event, Context())["body"])["amount"] == 7


def test_a_failure_of_ones_own_is_a_500_that_says_nothing_of_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_TABLE", "gone")
    with pytest.raises(stripe.APIError) as failed:
        shop.intents.list()
    assert (failed.value.http_status, seen(failed.value).json_body["error"]["type"]) == (500, "api_error")
    assert "gone" not in seen(failed.value).http_body


def test_the_log_has_ids_and_states_and_nothing_a_person_wrote(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(logger.registered_handler, "stream", log)
    intent = shop.intents.create(
        params={
            "amount": 1,
            "currency": "eur",
            "description": "for A. Buyer",
            "payment_method": "pm_card_chargeDeclined",
            "metadata": {"order_id": "ord_1", "mail": "buyer@example.com"},
        }
    )
    with pytest.raises(stripe.CardError):
        shop.confirm(intent)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["status"], line["object_status"]) for line in lines] == [
        (200, "requires_confirmation"),
        (402, "requires_payment_method"),
    ]
    assert {(line["object_id"], line["order_id"]) for line in lines} == {(intent.id, "ord_1")}
    assert lines[1]["error_code"] == "card_declined"
    for private in ("Buyer", "buyer@", "sk_test_1"):
        assert private not in log.getvalue()


def test_every_request_takes_as_long_as_it_is_told_to(
    shop: Shop, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.confirm(shop.intent())
    assert clock.waits == []
    monkeypatch.setenv("ANSWER_S", "0.35")
    shop.confirm(shop.intent())
    assert clock.waits == [0.35, 0.35]


def form_event(body: str, **changes: object) -> dict[str, object]:
    return {
        "requestContext": {"http": {"method": "POST"}},
        "rawPath": "/v1/payment_intents",
        "headers": {},
        "body": body,
    } | changes


@pytest.mark.parametrize("base64", [True, False])
def test_without_a_key_the_body_is_not_read(monkeypatch: pytest.MonkeyPatch, base64: bool) -> None:
    monkeypatch.setattr(wire, "read", lambda *_: pytest.fail("the body was read before the key was checked"))

    assert handler(form_event("a=b&" * 1_500_000, isBase64Encoded=base64), Context())["statusCode"] == 401


@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("a=" + "x" * 65_535, "more than 65536 bytes"),
        ("&".join(f"f{n}=1" for n in range(101)), "Max number of fields"),
        ("&" * 1000, "Max number of fields"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_too_many_parameters_are_refused(aws: None, method: str, form: str, rule: str) -> None:  # noqa: ARG001
    event = form_event(
        form,
        requestContext={"http": {"method": method}},
        rawQueryString=form,
        headers={"authorization": "Bearer k"},
    )

    answer = handler(event, Context())

    assert answer["statusCode"] == 400
    assert rule in json.loads(answer["body"])["error"]["message"]


def test_a_body_far_over_the_limit_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("base64.b64decode", lambda *_, **__: pytest.fail("decoded"))

    with pytest.raises(ValueError, match="more than 65536 bytes"):
        wire.read(form_event("QUFB" * 1_500_000, isBase64Encoded=True), 0)
