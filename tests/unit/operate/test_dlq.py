"""Looking into the DLQs tells what lies there and changes nothing."""

import json
from typing import Any

import pytest

from shared.idempotency.sqs import park
from tests.harness import samples
from tests.harness.interceptor import Killed, killed_before
from tests.harness.moto_world import World
from tools import queues
from tools.operate import dlq
from tools.operate.deployment import Deployment
from tools.queues import parse_parked

NOW_MS = 1_767_225_600_000  # 2026-01-01


def parked(world: World, queue: str, order_id: str, reason: str | None = None, body: str | None = None) -> None:
    """A message in a queue's DLQ: parked by its step for a reason, or moved there by SQS for none."""
    body = body or samples.body_of(samples.requested(order_id))
    url = world.queues[f"{queue}-dlq"]
    if reason:
        park(world.sqs, url, {"messageId": f"m-{order_id}", "body": body, "attributes": {}}, reason, NOW_MS)
    else:
        world.sqs.send_message(QueueUrl=url, MessageBody=body)


def test_it_says_of_each_message_which_order_why_and_since_when(world: World, deployment: Deployment) -> None:
    parked(world, "payments", "ord_1", "key_reused")
    parked(world, "payments", "ord_2")

    emails, orders, payments, relay = dlq.look_everywhere(deployment)

    assert (orders.is_empty, emails.is_empty, relay.is_empty) == (True, True, True)
    assert payments.by_reason == {"key_reused": 1, "none": 1}
    assert {(m.order_id, m.reason, m.first_parked_at) for m in payments.messages} == {
        ("ord_1", "key_reused", "2026-01-01T00:00:00.000Z"),
        ("ord_2", "none", None),
    }


def test_nobody_is_named_and_what_a_stranger_wrote_is_not_repeated(world: World, deployment: Deployment) -> None:
    parked(world, "orders", "ord_1", "schema_invalid")
    parked(world, "orders", "x", "unparsable", body="asa.buyer@example.com wants a refund")
    parked(world, "orders", "x", "unparsable", body=json.dumps({"data": {"order_id": "asa.buyer@example.com"}}))
    parked(world, "orders", "x", "asa.buyer@example.com says so")

    found = dlq.look(deployment, "orders")

    said = json.dumps(found.report)
    assert len(found.messages) == 4
    assert "buyer" not in said.lower()
    assert found.by_reason == {"unparsable": 2, "schema_invalid": 1, "other": 1}


def test_a_second_look_sees_the_same_messages(world: World, deployment: Deployment) -> None:
    for n in range(25):
        parked(world, "emails", f"ord_{n}", "mail_rejected")

    first, second = (dlq.look(deployment, "emails") for _ in range(2))

    assert {m.order_id for m in first.messages} == {f"ord_{n}" for n in range(25)}
    assert {m.message_id for m in first.messages} == {m.message_id for m in second.messages}
    assert (first.complete, first.total) == (True, 25)
    assert len(world.messages("emails-dlq")) == 25


def test_an_interrupted_look_gives_back_what_it_took(world: World, deployment: Deployment) -> None:
    for n in range(15):
        parked(world, "emails", f"ord_{n}")
    world.wire.plan("ReceiveMessage", lambda _, apply: apply(), killed_before)

    with pytest.raises(Killed):
        dlq.look(deployment, "emails")

    assert len(world.messages("emails-dlq")) == 15


def test_a_walk_so_long_that_what_it_holds_is_seen_again_still_comes_to_the_end(
    world: World, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is hidden here at all, so that every receive but the first begins with the same messages."""
    monkeypatch.setattr(queues, "HIDDEN_S", 0)
    monkeypatch.setattr(queues, "BATCH", 5)
    for n in range(5):
        parked(world, "emails", f"ord_{n}")

    found = dlq.look(deployment, "emails")

    assert (len(found.messages), found.complete) == (5, True)
    assert world.wire.count("ReceiveMessage") == 3


def test_of_a_big_dlq_it_looks_at_a_part_and_says_so(world: World, deployment: Deployment) -> None:
    for n in range(15):
        parked(world, "emails", f"ord_{n}")

    found = dlq.look(deployment, "emails", limit=12)

    assert (len(found.messages), found.total, found.complete) == (12, 15, False)


def message(**other: Any) -> dict[str, Any]:
    """A message as SQS hands it out."""
    return {"MessageId": "m-1", "Body": "{}", "Attributes": {"SentTimestamp": "0"}, **other}


def test_a_message_that_sqs_itself_moved_has_no_reason_even_if_it_kept_that_of_an_earlier_parking() -> None:
    attributes = {"reason": {"StringValue": "mail_rejected", "DataType": "String"}}
    assert parse_parked(message(MessageAttributes=attributes)).permanent
    moved = {"SentTimestamp": "0", "DeadLetterQueueSourceArn": "arn:aws:sqs:::emails"}
    assert not parse_parked(message(MessageAttributes=attributes, Attributes=moved)).permanent


def test_of_the_relays_failures_it_shows_the_order_or_what_lambda_says() -> None:
    assert parse_parked(message(Body=json.dumps({"id": "order.place#ord_7", "outbox": "[]"}))).order_id == "ord_7"
    given_up = json.dumps({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": {}})
    assert parse_parked(message(Body=given_up)).reason == "RetryAttemptsExhausted"
