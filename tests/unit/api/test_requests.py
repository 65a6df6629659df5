"""What holds for each request: its route, its correlation id, its trace, its one line in the log."""

import inspect
import json
import re
from pathlib import Path

import pytest

from functions.api import handler as api_handler
from shared.idempotency import outbox
from tests.harness.api_fixtures import ORDER, Api
from tests.harness.interceptor import refused


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("PUT", "/orders"), ("DELETE", "/orders/api_1"), ("POST", "/orders/api_1")]
)
def test_a_route_that_only_a_deploy_can_add_is_not_found(api: Api, method: str, path: str) -> None:
    answer = api.send(method, path)

    assert (answer.status, answer.problem) == (404, "no-route")


@pytest.mark.parametrize("prefix", ["", "/shop", "/eu/shop"])
def test_a_custom_domain_with_a_mapping_key_works_and_location_has_the_key(api: Api, prefix: str) -> None:
    headers = {"content-type": "application/json", "idempotency-key": "k-1"}

    posted = api.send_to(prefix, "POST", "/orders", json.dumps(ORDER), headers=headers)

    order_id = posted.json["order_id"]
    assert (posted.status, posted.headers["location"]) == (202, f"{prefix}/orders/{order_id}")
    assert api.send_to(prefix, "GET", f"/orders/{order_id}").json["order_id"] == order_id
    assert api.post(key="k-1").json["order_id"] == order_id  # the same order, through any domain


def test_the_routes_are_those_of_the_deployed_api() -> None:
    stack = Path("stacks/constructs/api.py").read_text()
    for path, method in re.findall(r'path="([^"]+)", methods=\[apigatewayv2.HttpMethod.(\w+)\]', stack):
        assert f'case "{method} {path}":' in inspect.getsource(api_handler)


def test_the_correlation_id_of_the_caller_goes_into_answer_event_row_and_log(api: Api) -> None:
    answer = api.post(headers={"x-correlation-id": "c-17"})

    assert answer.headers["x-correlation-id"] == "c-17"
    (record,), (row,) = api.records, api.orders
    (entry,) = outbox.unpack(record["outbox"]["S"])
    assert entry.event.correlationid == "c-17"
    assert record["correlation_id"] == row["correlation_id"] == {"S": "c-17"}
    assert {line["correlation_id"] for line in api.lines} == {"c-17"}


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "\u00e4", "a\x07"])
def test_a_correlation_id_that_can_not_travel_gives_way_to_the_id_of_the_request(api: Api, given: str) -> None:
    answer = api.post(headers={"x-correlation-id": given})

    assert answer.status == 202
    assert answer.headers["x-correlation-id"] == "JKJaXmPLvHcESHA="


def test_a_repetition_has_its_own_correlation_id_and_the_event_keeps_the_first(api: Api) -> None:
    api.post(headers={"x-correlation-id": "first"})
    again = api.post(headers={"x-correlation-id": "second"})

    assert again.headers["x-correlation-id"] == "second"
    (record,) = api.records
    assert record["correlation_id"] == {"S": "first"}


def test_the_trace_goes_into_the_outbox(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793")

    api.post()

    (record,) = api.records
    (entry,) = outbox.unpack(record["outbox"]["S"])
    assert entry.trace == "Root=1-5759e988-bd862e3fe1be46a994272793"


def test_each_request_has_one_line_with_its_outcome_and_nothing_of_the_one_before(api: Api) -> None:
    order_id = api.post().json["order_id"]
    api.post()
    api.get(order_id)
    api.post(ORDER | {"currency": "USD"})
    api.post(key=None)
    api.send("GET", "/")

    seen = [(line["method"], line["status"], line["outcome"], line.get("order_id")) for line in api.lines]
    assert seen == [
        ("POST", 202, "accepted", order_id),
        ("POST", 202, "replayed", order_id),
        ("GET", 200, "shown", order_id),
        ("POST", 422, "key-reused", order_id),
        ("POST", 400, "key-missing", None),
        ("GET", 404, "no-route", None),
    ]


def test_what_the_core_says_of_a_failure_is_logged(api: Api) -> None:
    api.world.wire.always("TransactWriteItems", refused("AccessDeniedException"))

    api.post()

    (line,) = api.lines
    assert (line["outcome"], line["error"], line["reason"]) == ("not-created", "NotWritten", "AccessDeniedException")


def test_no_log_line_and_no_metric_names_the_customer(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.get(api.post().json["order_id"])
    api.post()
    api.post(ORDER | {"currency": "USD"})
    api.post(ORDER | {"customer": {"name": "A. Buyer\n", "email": "buyer@example.com"}})

    said = api.log.getvalue() + capsys.readouterr().out
    assert not [part for part in ("Buyer", "buyer@example.com", "pm_card_visa") if part in said]
    assert said


@pytest.mark.parametrize(
    "answer", [lambda api: api.post(), lambda api: api.post(key=None), lambda api: api.get("api_" + "a" * 26)]
)
def test_no_answer_is_kept_by_a_cache(api: Api, answer: object) -> None:
    assert callable(answer)
    assert answer(api).headers["cache-control"] == "no-store"
