"""One order's story: from its row, records, charges, receipt, DLQs and logs, in the order in which it happened."""

import json
from dataclasses import asdict
from typing import Any

import pytest
import stripe

from shared.idempotency import epoch_ms, iso
from tests.harness.driver import Pipeline
from tests.harness.observations import Log, log
from tests.unit.operate.test_audit import change, charge, order_done, order_placed
from tests.unit.operate.test_dlq import parked
from tools.ledger import Ledger, whole_second
from tools.operate.deployment import Deployment
from tools.operate.trace import Story, trace

__all__ = ["log"]


def logged(deployment: Deployment, function: str, *lines: dict[str, Any]) -> None:
    """Lines in a function's log group."""
    now_ms = epoch_ms()
    events = [{"timestamp": now_ms, "message": json.dumps(line)} for line in lines]
    deployment.session.logs.groups.setdefault(f"logs-of-{function}", []).extend(events)


def told(story: Story, who: str) -> list[str]:
    return [moment.what for moment in story.moments if moment.who == who]


def test_it_tells_what_row_records_provider_and_bucket_know(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)

    story = trace(deployment, "ord_1")

    assert story.row is not None
    assert (story.row["state"], story.row["total"]) == ("paid", 2599)
    assert [(r["operation"], r["status"], r["attempt"]) for r in story.records] == [
        ("order.place", "COMPLETED", 1),
        ("payment.charge", "COMPLETED", 1),
        ("email.send", "COMPLETED", 1),
    ]
    assert all(len(record["owner"]) == 8 for record in story.records)
    assert [intent["on_the_row"] for intent in story.intents] == [True]
    assert [one.status for one in story.charges] == ["succeeded"]
    assert (story.receipt_at is not None, story.gaps) == (True, [])
    assert told(story, "order row") == ["placed", "paid", "mailed"]


def test_it_shows_intents_besides_the_one_on_the_row_with_their_charges(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    other, _ = charge("ord_1")
    charge("ord_2")

    story = trace(deployment, "ord_1")

    assert {intent["id"]: intent["on_the_row"] for intent in story.intents} == {
        other: False,
        (story.row or {})["intent_id"]: True,
    }
    assert len(story.charges) == 2


def test_what_is_parked_belongs_to_the_story(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    parked(pipeline.world, "payments", "ord_1", "intent_mismatch")
    parked(pipeline.world, "payments", "ord_2", "intent_mismatch")

    story = trace(deployment, "ord_1")

    assert [(one["queue"], one["reason"]) for one in story.parked] == [("payments", "intent_mismatch")]
    assert told(story, "payments DLQ") == ["parked, reason intent_mismatch"]


def test_log_lines_of_the_order_are_told_and_those_of_others_are_not(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    logged(
        deployment,
        "payment",
        {"message": "done", "operation": "payment.charge", "key": "ord_1", "correlation_id": "c-1"},
        {"message": "busy", "operation": "payment.charge", "key": "ord_12", "correlation_id": "c-1"},
        {"message": "done", "operation": "payment.charge", "key": "x-ord_1", "correlation_id": "c-9"},
    )
    logged(deployment, "api", {"message": "request", "status": 202, "correlation_id": "c-1"})
    logged(deployment, "email", {"message": "request", "status": 202, "correlation_id": "c-11"})
    logged(deployment, "relay", {"message": "sent", "event_id": "ord_1/order.paid", "correlation_id": "c-1"})

    story = trace(deployment, "ord_1")

    assert told(story, "payment") == ["done: operation payment.charge"]
    assert told(story, "api") == ["request: status 202"]
    assert told(story, "relay") == ["sent: event_id ord_1/order.paid"]
    assert told(story, "email") == []


def test_a_line_stands_at_the_time_that_it_says_itself(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)
    line = {"message": "done", "key": "ord_1", "timestamp": "2027-01-02 03:04:05,678+0100"}
    logged(deployment, "payment", line)
    story = trace(deployment, "ord_1")
    (moment,) = (moment for moment in story.moments if moment.who == "payment")
    assert moment.at == "2027-01-02T02:04:05.678Z"
    assert [m.at for m in story.moments] == sorted(m.at for m in story.moments)


def test_real_log_lines_are_told_and_name_nobody(pipeline: Pipeline, deployment: Deployment, log: Log) -> None:
    order_done(pipeline)
    logged(deployment, "payment", *[{**line, "customer": "Buyer"} for line in log.lines])
    parked(pipeline.world, "orders", "ord_1", "key_reused")

    story = trace(deployment, "ord_1")

    said = json.dumps(asdict(story))
    assert len(told(story, "payment")) >= 6
    assert "uyer" not in said


def test_an_order_that_nobody_has_heard_of_is_unknown(deployment: Deployment) -> None:
    assert not trace(deployment, "ord_9").is_known


def test_without_its_row_the_rest_is_told(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)
    pipeline.world.dynamodb.delete_item(TableName="orders", Key={"order_id": {"S": "ord_1"}})
    logged(deployment, "api", {"message": "request", "correlation_id": "c-1"})

    story = trace(deployment, "ord_1")

    assert (story.is_known, story.row, len(story.records)) == (True, None, 3)
    assert told(story, "api") == ["request"]


@pytest.mark.parametrize(("name", "value"), [("total", {"S": "x"}), ("total", {"N": "1.5"}), ("placed_at", {"S": "x"})])
def test_a_row_whose_values_are_none_is_said_too(
    pipeline: Pipeline, deployment: Deployment, name: str, value: dict[str, str]
) -> None:
    order_done(pipeline)
    deployment.client("dynamodb").update_item(
        TableName="orders",
        Key={"order_id": {"S": "ord_1"}},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
    )

    story = trace(deployment, "ord_1")

    assert story.row is None
    assert any("cannot be read" in gap for gap in story.gaps)


def test_a_record_whose_times_are_none_is_told_all_the_same(pipeline: Pipeline, deployment: Deployment) -> None:
    order_done(pipeline)
    deployment.client("dynamodb").update_item(
        TableName="idempotency",
        Key={"id": {"S": "order.place#ord_1"}},
        UpdateExpression="SET expiration = :value",
        ExpressionAttributeValues={":value": {"N": "9" * 20}},
    )

    (record, *_) = trace(deployment, "ord_1").records

    assert str(record["expires_at"]).startswith("not a time")


@pytest.mark.parametrize("correlation_id", ['c"1', "c\\1"])
def test_a_correlation_id_that_no_filter_can_hold_is_not_searched_for(
    pipeline: Pipeline, deployment: Deployment, correlation_id: str
) -> None:
    order_done(pipeline)
    change(pipeline.world, "orders", "ord_1", "SET correlation_id = :odd", odd={"S": correlation_id})
    logged(deployment, "payment", {"message": "done", "key": "ord_1", "correlation_id": correlation_id})
    assert told(trace(deployment, "ord_1"), "payment") == ["done"]


def test_what_a_step_said_of_a_poison_message_is_told_though_the_line_names_no_order(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    parked(pipeline.world, "orders", "ord_1", "schema_invalid")
    logged(
        deployment,
        "order",
        {"message": "parked", "message_id": "m-ord_1", "detail": "at $.items[0].quantity"},
        {"message": "parked", "message_id": "m-ord_2", "detail": "at $.currency"},
    )
    assert told(trace(deployment, "ord_1"), "order") == ["parked: detail at $.items[0].quantity, message_id m-ord_1"]


def test_while_the_provider_is_down_the_rest_is_told(
    pipeline: Pipeline, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_done(pipeline)

    def down(*_: Any) -> Any:
        raise stripe.APIConnectionError("no route")  # type: ignore[no-untyped-call]

    monkeypatch.setattr(Ledger, "intents_of", down)
    story = trace(deployment, "ord_1")

    assert story.gaps == ["the provider, which does not answer: APIConnectionError"]
    assert told(story, "order row") == ["placed", "paid", "mailed"]


def test_a_time_without_a_fraction_sorts_after_all_others_of_its_second() -> None:
    times = [whole_second(1_800_000_000), iso(1_800_000_000_999), iso(1_800_000_001_000)]
    assert [at[11:] for at in sorted(times)] == ["08:00:00.999Z", "08:00:00Z", "08:00:01.000Z"]
