"""Email: the way through, and what the row says of an event."""

import json
from typing import Any

import msgspec
import pytest

from functions.email.handler import handler
from shared.idempotency import Event, client
from shared.orders.events import OrderDeclined, OrderPaid
from tests.harness import samples
from tests.harness.interceptor import meanwhile
from tests.harness.moto_world import World
from tests.harness.observations import Log, Mailbox

KEY = "email.send#ord_1"


def deliver(world: World, event: Event, *, receive_count: int = 1) -> bool:
    """Hand one event to the function; whether its message may go."""
    message = samples.sqs_event(samples.body_of(event), receive_count=receive_count)
    return handler(message, world.context()) == {"batchItemFailures": []}


def objects() -> dict[str, str]:
    """The receipts in the bucket."""
    s3 = client("s3")
    keys = [found["Key"] for found in s3.list_objects_v2(Bucket="receipts").get("Contents", [])]
    return {key: s3.get_object(Bucket="receipts", Key=key)["Body"].read().decode() for key in keys}


def test_a_paid_order_gets_its_receipt_by_mail_and_in_the_bucket_and_is_final(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())

    assert deliver(world, event)

    assert mailbox.mails == [(samples.ADDRESS, "Receipt for order ord_1")]
    assert list(objects()) == ["receipts/ord_1.html"]
    row = world.row("ord_1")
    assert row is not None
    assert row["state"] == {"S": "paid"}
    assert row["mail"] == {"S": "receipt"}
    assert "mailed_at" in row
    assert not {"open_shard", "open_since", "sweeps"} & set(row)
    record = world.record(KEY)
    assert record is not None
    assert json.loads(record["data"]["S"]) == {
        "order_id": "ord_1",
        "mail": "receipt",
        "mail_id": row["mail_id"]["S"],
    }


def test_an_event_of_an_earlier_version_with_the_true_reason_is_mailed(world: World, mailbox: Mailbox) -> None:
    event = samples.decline(world, samples.requested())
    assert isinstance(event, OrderDeclined)
    world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": "ord_1"}},
        UpdateExpression="SET decline_reason = :reason",
        ExpressionAttributeValues={":reason": {"S": "stolen_card"}},
    )

    assert deliver(world, msgspec.structs.replace(event, reason="stolen_card"))

    assert mailbox.mails == [(samples.ADDRESS, "Order ord_1 was declined")]


def test_a_declined_order_gets_its_word_by_mail_alone(world: World, mailbox: Mailbox) -> None:
    event = samples.decline(world, samples.requested())

    assert deliver(world, event)
    assert deliver(world, event)

    assert mailbox.mails == [(samples.ADDRESS, "Order ord_1 was declined")]
    assert objects() == {}
    row = world.row("ord_1")
    assert row is not None
    assert (row["state"], row["mail"]) == ({"S": "declined"}, {"S": "decline"})


@pytest.mark.usefixtures("mailbox")
def test_the_mail_holds_text_and_html_and_is_tagged_with_the_effect_key(world: World) -> None:
    deliver(world, samples.pay(world, samples.requested()))

    (body,) = world.wire.bodies("SendEmail")
    sent = json.loads(body)
    assert sent["FromEmailAddress"] == "shop@example.com"
    assert sent["Destination"] == {"ToAddresses": [samples.ADDRESS]}
    assert sent["EmailTags"] == [{"Name": "effect_key", "Value": "email_send_ord_1"}]
    simple = sent["Content"]["Simple"]
    assert "25.99 EUR" in simple["Body"]["Text"]["Data"]
    assert simple["Body"]["Html"]["Data"] == objects()["receipts/ord_1.html"]


@pytest.mark.usefixtures("mailbox")
def test_one_run_makes_five_requests(world: World) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.sent.clear()

    deliver(world, event)

    assert [name for name, _ in world.wire.sent] == [
        "UpdateItem",
        "GetItem",
        "PutObject",
        "SendEmail",
        "TransactWriteItems",
    ]


def test_a_duplicate_is_replayed_and_mails_nothing(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())

    assert deliver(world, event)
    assert deliver(world, event, receive_count=2)

    assert len(mailbox.mails) == 1


def test_after_the_record_is_gone_the_row_answers_with_the_same_result(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())
    deliver(world, event)
    first = world.record(KEY)
    world.empty("idempotency", "id")

    assert deliver(world, event)

    assert len(mailbox.mails) == 1
    second = world.record(KEY)
    assert first is not None
    assert second is not None
    assert second["data"] == first["data"]
    assert second["status"] == {"S": "COMPLETED"}


def test_an_event_ahead_of_its_row_waits(world: World, mailbox: Mailbox) -> None:
    order = samples.requested()
    event = OrderPaid(order_id="ord_1", currency="EUR", total=order.total, payment_intent="pi_ord_1")
    assert not deliver(world, event)  # there is no row
    samples.place(world, order)
    assert not deliver(world, event)  # it is placed
    record = world.record(KEY)
    assert record is not None
    assert (record["attempt"], record["unsettled"]) == ({"N": "2"}, {"BOOL": False})
    assert world.messages("dlq") == []

    world.empty("orders", "order_id")
    assert samples.pay(world, order) == event
    assert deliver(world, event)

    assert len(mailbox.mails) == 1


OTHERS = [
    OrderPaid(order_id="ord_1", currency="EUR", total=1, payment_intent="pi_ord_1"),
    OrderPaid(order_id="ord_1", currency="USD", total=2599, payment_intent="pi_ord_1"),
    OrderPaid(order_id="ord_1", currency="EUR", total=2599, payment_intent="pi_other"),
    OrderDeclined(order_id="ord_1", currency="EUR", total=2599, payment_intent="pi_ord_1", reason="card_declined"),
]


@pytest.mark.parametrize("other", OTHERS, ids=["total", "currency", "intent", "outcome"])
@pytest.mark.parametrize("mailed", [False, True], ids=["before the mail", "after the mail and the record"])
def test_an_event_with_other_facts_than_the_row_is_refused_for_good(
    world: World, mailbox: Mailbox, other: Event, mailed: bool
) -> None:
    event = samples.pay(world, samples.requested())
    if mailed:
        deliver(world, event)
        world.empty("idempotency", "id")

    assert deliver(world, other)

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "key_reused"
    assert len(mailbox.mails) == mailed
    assert deliver(world, event)  # and the true one still finishes
    assert len(mailbox.mails) == 1


@pytest.mark.parametrize("other", OTHERS, ids=["total", "currency", "intent", "outcome"])
def test_a_false_event_that_comes_before_its_order_is_paid_does_not_keep_the_true_one_out(
    world: World, mailbox: Mailbox, other: Event
) -> None:
    deliver(world, other)  # no such order yet: waited for

    event = samples.pay(world, samples.requested())

    assert deliver(world, event)
    assert len(mailbox.mails) == 1


def test_with_too_little_time_left_nothing_is_sent(world: World, mailbox: Mailbox) -> None:
    event = samples.pay(world, samples.requested())
    world.wire.plan("PutObject", meanwhile(lambda: world.clock.advance(25)))

    assert not deliver(world, event)

    assert mailbox.mails == []
    assert deliver(world, event)
    record = world.record(KEY)
    assert record is not None
    assert record["uncertain"] == {"BOOL": False}


@pytest.mark.usefixtures("mailbox")
def test_name_and_address_go_into_the_mail_and_nowhere_else(world: World, log: Log) -> None:
    event = samples.pay(world, samples.requested())
    deliver(world, event)
    deliver(world, event)

    record = world.record(KEY)
    assert len(log.lines) >= 2
    assert {line["correlation_id"] for line in log.lines} == {"c-1"}
    for secret in ("Buyer", "asa.buyer"):
        assert secret not in log.text
        assert secret not in json.dumps(record)


def test_the_sample_event_mails_a_receipt(world: World, mailbox: Mailbox) -> None:
    event: Any = samples.sample_event("email")
    order = samples.sampled_order()
    samples.pay(world, order, intent_id="pi_sample")

    assert handler(event, world.context()) == {"batchItemFailures": []}

    assert mailbox.mails == [("buyer@example.com", "Receipt for order ord_sample")]
