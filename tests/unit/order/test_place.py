"""Order: requested → placed, by the API's row or straight from the queue."""

import json
from typing import Any

import msgspec
import pytest

from functions.order.handler import handler
from shared.idempotency.events import CloudEvent
from shared.idempotency.outbox import unpack
from shared.orders.events import OrderRequested
from tests.harness import samples
from tests.harness.interceptor import answer_lost
from tests.harness.moto_world import World
from tests.harness.observations import Log, Metrics

Row = dict[str, Any]


def deliver(world: World, order: OrderRequested, *, correlation_id: str = "c-1", trace: str | None = None) -> bool:
    """Hand one order to the function; whether its message may go."""
    body = samples.body_of(order, correlation_id=correlation_id)
    return handler(samples.sqs_event(body, trace=trace), world.context()) == {"batchItemFailures": []}


def row_of(world: World, order_id: str) -> Row:
    row = world.row(order_id)
    assert row is not None
    return row


def emitted(world: World, order_id: str) -> tuple[CloudEvent, str | None]:
    """The one event in the record's outbox, and its trace."""
    record = world.record(f"order.place#{order_id}")
    assert record is not None
    assert record["status"] == {"S": "COMPLETED"}
    (entry,) = unpack(record["outbox"]["S"])
    return entry.event, entry.trace


def reasons(world: World) -> list[str]:
    return [message["MessageAttributes"]["reason"]["StringValue"] for message in world.messages("dlq")]


def bigger(order: OrderRequested) -> OrderRequested:
    """Another request under the same id."""
    return samples.requested(order.order_id, quantity=3)


def test_an_order_from_the_queue_is_placed_in_one_transaction(world: World) -> None:
    assert deliver(world, samples.requested(), trace=samples.TRACE)

    assert [name for name, _ in world.wire.sent] == ["TransactWriteItems"]
    row = row_of(world, "ord_1")
    assert row["state"] == {"S": "placed"}
    assert row["total"] == {"N": "2599"}
    assert row["caller"] == {"S": "queue"}
    assert row["correlation_id"] == {"S": "c-1"}
    assert row["open_since"] == {"N": str(world.clock.now_ms() // 1000)}


def test_its_event_carries_ids_and_amounts_and_names_nobody(world: World) -> None:
    deliver(world, samples.requested(), trace=samples.TRACE)

    event, trace = emitted(world, "ord_1")
    assert (event.id, event.type, event.correlationid) == ("ord_1/order.placed", "order.placed", "c-1")
    assert json.loads(bytes(event.data)) == {
        "order_id": "ord_1",
        "currency": "EUR",
        "total": 2599,
        "payment_method": "pm_card_visa",
    }
    assert trace == samples.TRACE


def test_an_order_from_the_api_moves_its_row(world: World) -> None:
    order = samples.requested("api_1")
    samples.accept(world, order)
    world.clock.advance(5)

    assert deliver(world, order)

    row = row_of(world, "api_1")
    assert row["state"] == {"S": "placed"}
    assert row["caller"] == {"S": "aws:1:role"}
    assert row["requested_at"]["S"] < row["placed_at"]["S"]
    assert emitted(world, "api_1")[0].id == "api_1/order.placed"


def test_an_id_of_the_apis_without_its_row_is_refused_for_good(world: World) -> None:
    assert deliver(world, samples.requested("api_made_up"))

    assert reasons(world) == ["reserved_order_id"]
    assert world.row("api_made_up") is None
    assert world.record("order.place#api_made_up") is None


def test_a_message_with_other_facts_can_not_take_an_api_order_over(world: World) -> None:
    order = samples.requested("api_1")
    samples.accept(world, order)

    assert deliver(world, bigger(order))

    assert reasons(world) == ["key_reused"]
    assert row_of(world, "api_1")["state"] == {"S": "requested"}
    assert deliver(world, order)
    assert row_of(world, "api_1")["total"] == {"N": "2599"}
    assert row_of(world, "api_1")["state"] == {"S": "placed"}


@pytest.mark.parametrize("emptied", [False, True], ids=["by the record", "by the row"])
def test_another_request_under_a_taken_id_is_refused_for_good(world: World, metrics: Metrics, emptied: bool) -> None:
    order = samples.requested()
    deliver(world, order)
    before = row_of(world, "ord_1")
    if emptied:
        world.empty("idempotency", "id")

    assert deliver(world, bigger(order))

    assert reasons(world) == ["key_reused"]
    assert row_of(world, "ord_1") == before
    assert metrics.of("order.place") == {"FirstRun": 1, "KeyReused": 1, "Parked": 1}
    assert (world.record("order.place#ord_1") is None) == emptied


def test_the_same_order_again_is_replayed(world: World, metrics: Metrics) -> None:
    order = samples.requested()
    deliver(world, order)
    before = row_of(world, "ord_1"), world.record("order.place#ord_1")

    assert deliver(world, order, correlation_id="c-2")  # another way to say it, the same request

    assert (row_of(world, "ord_1"), world.record("order.place#ord_1")) == before
    assert metrics.of("order.place") == {"FirstRun": 1, "DuplicateReplayed": 1}


@pytest.mark.parametrize("order_id", ["ord_1", "api_1"])
@pytest.mark.parametrize("state", ["placed", "paid", "declined"])
def test_after_the_record_is_gone_the_row_decides_and_the_event_is_emitted_again(
    world: World, metrics: Metrics, order_id: str, state: str
) -> None:
    order = samples.requested(order_id)
    if order_id.startswith("api_"):
        samples.accept(world, order)
    deliver(world, order)
    first, _ = emitted(world, order_id)
    if state != "placed":
        samples.settle(world, order, state)
    before = row_of(world, order_id)
    world.empty("idempotency", "id")
    world.clock.advance(60 * 86400)

    assert deliver(world, order)

    again, _ = emitted(world, order_id)
    assert (again.id, again.source, bytes(again.data)) == (first.id, first.source, bytes(first.data))
    assert row_of(world, order_id) == before
    assert metrics.of("order.place") == {"FirstRun": 1, "DuplicateReplayed": 1}


def test_a_lost_answer_places_the_order_once(world: World, metrics: Metrics) -> None:
    world.wire.plan("TransactWriteItems", answer_lost)

    assert deliver(world, samples.requested())

    assert metrics.of("order.place") == {"FirstRun": 1}
    assert row_of(world, "ord_1")["state"] == {"S": "placed"}


def test_a_move_starts_the_sweeps_count_anew(world: World) -> None:
    order = samples.requested("api_1")
    samples.accept(world, order)
    world.dynamodb.update_item(
        TableName="orders",
        Key={"order_id": {"S": "api_1"}},
        UpdateExpression="SET sweeps = :three",
        ExpressionAttributeValues={":three": {"N": "3"}},
    )

    deliver(world, order)

    assert row_of(world, "api_1")["sweeps"] == {"N": "0"}


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown currency": ({"currency": "XXX"}, "schema_invalid"),
    "no items": ({"items": []}, "schema_invalid"),
    "half a cent": ({"items": [{"sku": "A-1", "quantity": 1, "unit_price": 0.5}]}, "schema_invalid"),
    "more than a charge can carry": (
        {"items": [{"sku": "A-1", "quantity": 2, "unit_price": 99_999_999}]},
        "schema_invalid",
    ),
    "a line break in the name": ({"customer": {"name": "A\nB", "email": "a@example.com"}}, "schema_invalid"),
}


@pytest.mark.parametrize(("change", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_no_later_hop_could_carry_is_refused_before_anything_happens(
    world: World, log: Log, change: dict[str, Any], reason: str
) -> None:
    message = json.loads(samples.body_of(samples.requested()))
    message["data"] |= change

    handler(samples.sqs_event(json.dumps(message)), world.context())

    assert reasons(world) == [reason]
    assert world.row("ord_1") is None
    assert "Buyer" not in log.text


def test_no_character_passes_the_edge_that_a_queue_would_refuse() -> None:
    """SQS takes what XML 1.0 takes, and an event is sent as it is: https://www.w3.org/TR/REC-xml/#charsets"""
    refused = [*range(0x9), 0xB, 0xC, *range(0xE, 0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]
    plain = msgspec.to_builtins(samples.requested())
    passed = []
    for code in refused:
        plain["customer"]["name"] = f"A{chr(code)}B"
        try:
            msgspec.convert(plain, OrderRequested)
        except msgspec.ValidationError:
            continue
        passed.append(hex(code))
    assert passed == []


def test_the_sample_event_places_an_order(world: World) -> None:
    assert handler(samples.sample_event("order"), world.context()) == {"batchItemFailures": []}

    assert row_of(world, "ord_sample")["state"] == {"S": "placed"}
