"""GET /orders/{order_id}."""

from typing import Any

import pytest

from shared.orders import writes
from tests.harness.api_fixtures import ORDER, Api, role
from tests.harness.interceptor import Fault, answer_lost, meanwhile, never_sent, refused

NOBODYS = "api_" + "a" * 26


def update(api: Api, order_id: str, **fields: str) -> None:
    for name, value in fields.items():
        api.world.dynamodb.update_item(
            TableName="orders",
            Key={"order_id": {"S": order_id}},
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": {"S": value}},
        )


def placed(api: Api) -> str:
    order_id: str = api.post().json["order_id"]
    return order_id


def test_an_order_is_shown_right_after_it_was_accepted(api: Api) -> None:
    order_id = placed(api)

    answer = api.get(order_id)

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json == {
        "order_id": order_id,
        "state": "requested",
        "total": 2500,
        "currency": "EUR",
        "items": ORDER["items"],
        "timeline": [{"state": "requested", "at": "2027-01-15T08:00:00.000Z"}],
    }


def test_the_row_is_read_strongly_consistent(api: Api) -> None:
    api.get(placed(api))

    (request,) = api.world.wire.bodies("GetItem")
    assert b'"ConsistentRead": true' in request


def test_a_paid_and_mailed_order_shows_its_charge_and_its_way(api: Api) -> None:
    order_id = placed(api)
    at = {"placed_at": "2027-01-15T08:00:01Z", "paid_at": "2027-01-15T08:00:02Z", "mailed_at": "2027-01-15T08:00:03Z"}
    update(api, order_id, state="paid", intent_id="pi_1", charge_id="ch_1", mail="receipt", mail_id="m-1", **at)

    shown = api.get(order_id).json

    assert shown["state"] == "paid"
    assert [move["state"] for move in shown["timeline"]] == ["requested", "placed", "paid", "mailed"]
    assert shown["payment"] == {"charge_id": "ch_1"}


def test_a_declined_order_shows_why(api: Api) -> None:
    order_id = placed(api)
    update(api, order_id, state="declined", declined_at="2027-01-15T08:00:02Z", decline_reason="insufficient_funds")

    shown = api.get(order_id).json

    assert (shown["state"], shown["payment"]) == ("declined", {"decline_reason": "insufficient_funds"})


@pytest.mark.parametrize(
    "reason", ["stolen_card", "lost_card", "lost_or_stolen_card", "fraudulent", "merchant_blacklist"]
)
def test_a_reason_that_the_provider_asks_not_to_disclose_is_shown_as_card_declined(api: Api, reason: str) -> None:
    order_id = placed(api)
    update(api, order_id, state="declined", declined_at="2027-01-15T08:00:02Z", decline_reason=reason)

    answer = api.get(order_id)

    assert answer.json["payment"] == {"decline_reason": "card_declined"}
    assert reason not in answer.text


def test_the_timeline_is_sorted_by_time(api: Api) -> None:
    """The clock of the worker that placed the order was ahead."""
    order_id = placed(api)
    update(api, order_id, state="paid", placed_at="2027-01-15T08:00:09Z", paid_at="2027-01-15T08:00:05Z")

    assert [move["state"] for move in api.get(order_id).json["timeline"]] == ["requested", "paid", "placed"]


def test_the_customer_and_the_card_are_not_shown(api: Api) -> None:
    text = api.get(placed(api)).text

    assert not [part for part in ("Buyer", "buyer@example.com", "pm_card_visa", "AROA") if part in text]


def test_another_session_of_the_role_sees_the_order(api: Api) -> None:
    assert api.get(placed(api), iam=role("pod-2")).status == 200


def test_an_order_of_somebody_else_looks_like_none(api: Api) -> None:
    order_id = placed(api)

    somebody_elses, missing = api.get(order_id, iam=role("pod-1", "AROAOTHER")), api.get(NOBODYS)

    assert (missing.status, missing.problem) == (404, "no-such-order")
    assert (somebody_elses.status, somebody_elses.text) == (missing.status, missing.text)
    assert somebody_elses.headers == missing.headers


def test_an_order_that_came_straight_to_the_queue_is_nobodys_here(api: Api) -> None:
    order_id = placed(api)
    update(api, order_id, caller=writes.DIRECT_CALLER)

    assert api.get(order_id).status == 404


@pytest.mark.parametrize(
    "order_id",
    ["ord_1", "api_", "api_" + "a" * 27, "api_" + "A" * 26, "api_%61", "alice@example.com", '"', "\u00e4", "a\nb"],
)
def test_a_malformed_id_is_not_found_read_or_logged(api: Api, order_id: str) -> None:
    answer = api.get(order_id)

    assert answer.status == 404
    assert answer.problem in ("no-such-order", "no-route")
    assert api.world.wire.count("GetItem") == 0
    assert "alice" not in api.log.getvalue()


FAULTS: dict[str, Any] = {
    "throttled": refused("ProvisionedThroughputExceededException"),
    "down": refused("InternalServerError", 500),
    "no permission": refused("AccessDeniedException"),
    "no connection": never_sent,
    "no answer": answer_lost,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_row_that_can_not_be_read_is_unavailable(api: Api, fault: Fault) -> None:
    order_id = placed(api)
    api.world.wire.always("GetItem", fault)

    answer = api.get(order_id)

    assert (answer.status, answer.problem) == (503, "not-read")
    assert int(answer.headers["retry-after"]) >= 1


def test_a_connection_that_died_while_the_worker_was_frozen_is_not_seen_by_the_caller(api: Api) -> None:
    order_id = placed(api)
    api.world.wire.plan("GetItem", answer_lost)

    assert api.get(order_id).status == 200


def test_a_row_that_is_damaged_is_a_server_error(api: Api) -> None:
    order_id = placed(api)
    update(api, order_id, total="a lot")

    answer = api.get(order_id)

    assert (answer.status, answer.problem) == (500, "failed")
    assert "a lot" not in answer.text + api.log.getvalue()


@pytest.mark.parametrize(("seconds", "reads"), [(3.249, 0), (3.25, 1), (6.249, 1), (6.25, 2), (29, 2)])
def test_the_order_is_read_only_while_there_is_time_for_the_answer(api: Api, seconds: float, reads: int) -> None:
    order_id = api.post().json["order_id"]
    api.world.wire.sent.clear()
    api.world.wire.always("GetItem", meanwhile(lambda: api.world.clock.advance(3), answer_lost))
    start_ms = api.world.clock.now_ms()

    answer = api.get(order_id, seconds=seconds)

    assert (answer.status, answer.problem) == (503, "not-read")
    assert answer.headers["retry-after"]
    assert api.world.wire.count("GetItem") == reads
    assert (api.world.clock.now_ms() - start_ms) / 1000 + 0.25 <= seconds
