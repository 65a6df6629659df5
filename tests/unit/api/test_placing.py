"""POST /orders where all goes well: once, however often it is asked."""

import copy
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.idempotency import outbox
from tests.harness.api_fixtures import KEY, ORDER, Answer, Api, counts
from tests.harness.interceptor import answer_lost, meanwhile

# Pinned: an id that changes between two versions makes two orders of one request.
ORDER_ID = "api_gqwheqbxezv4divrqtnkx7gqj5"
BODY = f'{{"order_id":"{ORDER_ID}","state":"requested","total":2500,"currency":"EUR"}}'


def changed(**fields: Any) -> dict[str, Any]:
    return copy.deepcopy(ORDER) | fields


def assert_replays(answer: Answer) -> None:
    assert (answer.status, answer.text) == (202, BODY)
    assert answer.headers["location"] == f"/orders/{ORDER_ID}"
    assert answer.headers["idempotent-replayed"] == "true"


def test_a_new_key_places_an_order(api: Api) -> None:
    answer = api.post()

    assert (answer.status, answer.text) == (202, BODY)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["location"] == f"/orders/{ORDER_ID}"
    assert "idempotent-replayed" not in answer.headers


def test_row_record_and_event_are_written_in_one_transaction(api: Api) -> None:
    api.post()

    assert [name for name, _ in api.world.wire.sent] == ["TransactWriteItems"]
    row = api.world.row(ORDER_ID)
    assert row is not None
    assert row["state"] == {"S": "requested"}
    assert row["caller"] == {"S": "111122223333/AROAEXAMPLEROLEID"}
    assert row["total"] == {"N": "2500"}
    record = api.world.record(f"order.request#{ORDER_ID}")
    assert record is not None
    (entry,) = outbox.unpack(record["outbox"]["S"])
    assert entry.event.id == f"{ORDER_ID}/order.requested"
    assert json.loads(bytes(entry.event.data)) == ORDER | {"order_id": ORDER_ID}


def test_the_same_request_again_has_the_identical_answer(api: Api) -> None:
    api.post()

    assert_replays(api.post())
    assert len(api.orders) == 1


@pytest.mark.parametrize(("first", "second"), [("Zo\u00eb", "Zoe\u0308"), ("Zoe\u0308", "Zo\u00eb")])
def test_the_same_name_in_another_unicode_form_is_the_same_request(api: Api, first: str, second: str) -> None:
    api.post(changed(customer={"name": first, "email": "zoe@example.com"}))

    again = api.post(json.dumps(changed(customer={"name": second, "email": "zoe@example.com"}), ensure_ascii=False))

    assert_replays(again)


def test_a_whole_number_with_a_decimal_point_and_another_order_of_fields_are_the_same_request(api: Api) -> None:
    api.post()
    backwards = dict(reversed(changed(items=[{"unit_price": 1250.0, "quantity": 2.0, "sku": "A-1"}]).items()))

    assert_replays(api.post(json.dumps(backwards, indent=4)))


def test_the_row_alone_answers_once_the_record_is_gone(api: Api) -> None:
    api.post()
    api.world.empty("idempotency", "id")

    assert_replays(api.post())
    assert len(api.orders) == 1


def test_the_row_alone_answers_once_the_record_has_expired_and_was_not_yet_deleted(api: Api) -> None:
    api.post()
    api.world.clock.advance(400 * 86400)

    assert_replays(api.post())


def test_an_order_that_has_gone_far_is_still_answered_as_it_was_first(api: Api) -> None:
    api.post()
    api.world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": ORDER_ID}},
        UpdateExpression="SET #state = :paid, paid_at = :at",
        ExpressionAttributeNames={"#state": "state"},
        ExpressionAttributeValues={":paid": {"S": "paid"}, ":at": {"S": "2026-01-01T00:00:00Z"}},
    )
    api.world.empty("idempotency", "id")

    assert_replays(api.post())
    assert api.get(ORDER_ID).json["state"] == "paid"


def test_a_request_that_another_worker_completed_meanwhile_has_its_answer(api: Api) -> None:
    first: list[Answer] = []
    api.world.wire.plan("TransactWriteItems", meanwhile(lambda: first.append(api.post())))

    assert_replays(api.post())
    assert [answer.text for answer in first] == [BODY]
    assert len(api.orders) == 1


def test_a_write_whose_answer_was_lost_is_recognised_as_ones_own(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.world.wire.plan("TransactWriteItems", answer_lost)

    answer = api.post()

    assert (answer.status, answer.text) == (202, BODY)
    assert "idempotent-replayed" not in answer.headers
    assert api.world.wire.count("TransactWriteItems") == 2
    assert len(api.orders) == 1
    assert counts(capsys.readouterr().out) == {"FirstRun": 1}


def test_a_key_with_another_body_is_refused_and_the_first_order_stays(api: Api) -> None:
    api.post()
    before = api.orders, api.records

    answer = api.post(changed(items=[{"sku": "A-1", "quantity": 2, "unit_price": 100}]))

    assert (answer.status, answer.problem) == (422, "key-reused")
    assert 'rel="describedby"' in answer.headers["link"]
    assert (api.orders, api.records) == before


def test_a_key_with_another_body_is_refused_by_the_row_alone(api: Api) -> None:
    api.post()
    api.world.empty("idempotency", "id")

    answer = api.post(changed(currency="USD"))

    assert (answer.status, answer.problem) == (422, "key-reused")
    assert len(api.orders) == 1
    assert api.records == []


def test_another_key_is_another_order(api: Api) -> None:
    api.post()
    api.post(key="2")

    assert len(api.orders) == 2


def test_eight_racing_requests_with_one_key_make_one_order_and_have_one_answer(api: Api) -> None:
    together = threading.Barrier(8)

    def post(_: int) -> Answer:
        together.wait(timeout=10)
        return api.post()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(8)))

    assert {(answer.status, answer.text) for answer in answers} == {(202, BODY)}
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert len(api.orders) == len(api.records) == 1


def test_first_runs_replays_and_reused_keys_are_counted(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.post()
    api.post()
    api.post()
    api.post(changed(currency="USD"))
    api.post(changed(currency="nothing"))

    assert counts(capsys.readouterr().out) == {"FirstRun": 1, "DuplicateReplayed": 2, "KeyReused": 1}


def test_the_key_of_the_sample_event_is_the_one_these_tests_send(api: Api) -> None:
    assert api.post(key=f'"{KEY}"').json["order_id"] == ORDER_ID
