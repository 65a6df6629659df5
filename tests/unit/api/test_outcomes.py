"""POST /orders where the database is slow, busy or away: what is answered, what is stored, and what may be repeated."""

import pytest

from tests.harness.api_fixtures import ORDER, Api, counts
from tests.harness.interceptor import Fault, answer_lost, cancelled, never_sent, refused

NEVER_APPLIED = {
    "throttled": refused("ThrottlingException"),
    "throttled by its reasons": cancelled("ThrottlingError", "None"),
    "never sent": never_sent,
    "access denied": refused("AccessDeniedException"),
    "table gone": refused("ResourceNotFoundException"),
}


def assert_the_same_key_still_places_one_order(api: Api) -> None:
    api.world.wire.always("TransactWriteItems", None)
    assert api.post().status == 202
    assert len(api.orders) == len(api.records) == 1


def test_a_write_in_flight_on_the_same_order_is_a_conflict_and_nothing_is_stored(api: Api) -> None:
    api.world.wire.always("TransactWriteItems", cancelled("TransactionConflict", "None"))

    answer = api.post()

    assert (answer.status, answer.problem) == (409, "in-flight")
    assert int(answer.headers["retry-after"]) >= 1
    assert not api.stored
    assert_the_same_key_still_places_one_order(api)


@pytest.mark.parametrize("fault", NEVER_APPLIED.values(), ids=NEVER_APPLIED)
def test_what_is_known_not_to_be_written_is_unavailable_and_nothing_is_stored(api: Api, fault: Fault) -> None:
    api.world.wire.always("TransactWriteItems", fault)

    answer = api.post()

    assert (answer.status, answer.problem) == (503, "not-created")
    assert int(answer.headers["retry-after"]) >= 1
    assert "nothing was stored" in answer.json["detail"]
    assert not api.stored
    assert_the_same_key_still_places_one_order(api)


def test_a_lost_answer_that_never_comes_is_an_unknown_outcome_and_the_same_key_gives_the_same_order(api: Api) -> None:
    api.world.wire.always("TransactWriteItems", answer_lost)

    answer = api.post()

    assert (answer.status, answer.problem) == (504, "outcome-unknown")
    assert int(answer.headers["retry-after"]) >= 1
    assert "same key" in answer.json["detail"]
    placed = api.orders
    assert len(placed) == 1
    assert_the_same_key_still_places_one_order(api)
    assert api.orders == placed


def test_an_unknown_outcome_stays_unknown_when_the_last_try_was_refused(api: Api) -> None:
    api.world.wire.plan("TransactWriteItems", answer_lost)
    api.world.wire.always("TransactWriteItems", refused("ThrottlingException"))

    assert api.post().status == 504


@pytest.mark.parametrize("fault", [refused("InternalServerError", 500), refused("TransactionInProgressException")])
def test_a_server_error_is_an_unknown_outcome(api: Api, fault: Fault) -> None:
    api.world.wire.always("TransactWriteItems", fault)

    assert api.post().status == 504


def test_a_conflict_and_a_throttle_that_pass_are_not_seen_by_the_caller(api: Api) -> None:
    api.world.wire.plan(
        "TransactWriteItems", cancelled("TransactionConflict", "None"), refused("ThrottlingException"), never_sent
    )

    answer = api.post()

    assert answer.status == 202
    assert "idempotent-replayed" not in answer.headers


@pytest.mark.parametrize("seconds", [14, 29, 300])
def test_the_answer_comes_before_lambda_and_api_gateway_give_up(api: Api, seconds: float) -> None:
    api.world.wire.always("TransactWriteItems", refused("ThrottlingException"))
    start_ms = api.world.clock.now_ms()

    assert api.post(seconds=seconds).status == 503

    waited_s = (api.world.clock.now_ms() - start_ms) / 1000
    request_s = 3  # the last request may take that long
    assert waited_s > 5
    assert waited_s + request_s < min(seconds, 30)


def test_with_too_little_time_left_nothing_is_begun(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    answer = api.post(seconds=10.2)

    assert (answer.status, answer.problem) == (503, "not-created")
    assert answer.headers["retry-after"]
    assert api.world.wire.count("TransactWriteItems") == 0
    assert counts(capsys.readouterr().out) == {"NotStarted": 1}


def test_a_damaged_record_is_a_server_error_that_says_nothing_of_itself(api: Api) -> None:
    order_id = api.post().json["order_id"]
    api.world.dynamodb.update_item(
        TableName="idempotency",
        Key={"id": {"S": f"order.request#{order_id}"}},
        UpdateExpression="REMOVE #data",
        ExpressionAttributeNames={"#data": "data"},
    )

    answer = api.post()

    assert (answer.status, answer.problem) == (500, "failed")
    assert "order.request" not in answer.text
    (error,) = [line for line in api.lines if line["level"] == "ERROR"]
    assert error["error"] == "Damaged"
    assert order_id in error["reason"]


def test_whatever_else_fails_is_a_server_error_whose_log_has_no_values(api: Api) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(str(ORDER["customer"]))  # as botocore quotes what it can not send

    api.world.wire.plan("TransactWriteItems", broken)  # type: ignore[arg-type]

    answer = api.post()

    assert (answer.status, answer.problem) == (500, "failed")
    assert "Buyer" not in answer.text + api.log.getvalue()
    (error,) = [line for line in api.lines if line["level"] == "ERROR"]
    assert error["error"] == "RuntimeError"
    assert any("create_order.py" in frame for frame in error["stack"])
