"""Relay: from the stream to the queues."""

import json
from functools import partial
from typing import Any

import pytest

from functions.relay.handler import NotRelayed, handler
from shared.idempotency import outbox
from shared.orders.events import OrderDeclined, OrderPaid, OrderPlaced
from tests.harness import samples
from tests.harness.growth import assert_linear
from tests.harness.interceptor import answer_lost, meanwhile, never_sent, refused
from tests.harness.lost_messages import some_refused
from tests.harness.moto_world import World
from tests.harness.observations import Log, Metrics

Record = dict[str, Any]


@pytest.fixture(autouse=True)
def _routed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTES", json.dumps(samples.routes(world)))
    monkeypatch.setenv("DLQ_URL", world.queues["relay-dlq"])
    monkeypatch.setenv("RESERVE_S", "0.25")


def placed(n: int = 1) -> OrderPlaced:
    return OrderPlaced(order_id=f"ord_{n}", currency="EUR", total=2599, payment_method="pm_card_visa")


def packed(*events: Any, trace: str | None = None) -> str:
    text = outbox.pack(events, correlation_id="c-1", now_ms=1_767_225_600_000, trace=trace)
    assert text is not None
    return text


def with_note(n: int, note: str) -> str:
    """An event with a field that this version does not know."""
    (entry,) = json.loads(packed(placed(n)))
    entry["event"]["data"]["note"] = note
    return json.dumps([entry], ensure_ascii=False)


def record(text: str | None, n: int = 1, kind: str = "INSERT") -> Record:
    """A stream record whose outbox is this text."""
    image = {"id": {"S": f"order.place#ord_{n}"}, "status": {"S": "COMPLETED"}, "correlation_id": {"S": "c-1"}}
    if text is not None:
        image["outbox"] = {"S": text}
    return {
        "eventID": f"event-{n}",
        "eventName": kind,
        "dynamodb": {"Keys": {"id": image["id"]}, **({} if kind == "REMOVE" else {"NewImage": image})},
    }


def relay(world: World, *records: Record, seconds: float = 30) -> None:
    assert handler({"Records": list(records)}, world.context(seconds)) is None  # type: ignore[func-returns-value]


def ids(world: World, queue: str) -> list[str]:
    """Ids of the events in a queue, sorted."""
    return sorted(json.loads(message["Body"])["id"] for message in world.messages(queue))


def traces(world: World) -> list[str | None]:
    """Of all entries sent. moto loses it on the way to the queue."""
    entries = [entry for body in world.wire.bodies("SendMessageBatch") for entry in json.loads(body)["Entries"]]
    return [entry.get("MessageSystemAttributes", {}).get("AWSTraceHeader", {}).get("StringValue") for entry in entries]


def parked(world: World) -> list[tuple[str, str, Any]]:
    """Record id, reason and outbox of each message in the failure queue."""
    found = []
    for message in world.messages("relay-dlq"):
        body = json.loads(message["Body"])
        found.append((body["id"], message["MessageAttributes"]["reason"]["StringValue"], body.get("outbox")))
    return found


def test_each_event_goes_to_the_queue_of_its_type(world: World, metrics: Metrics) -> None:
    facts: dict[str, Any] = {"currency": "EUR", "total": 2599, "payment_intent": "pi_1"}
    relay(
        world,
        record(packed(samples.requested("api_1"))),
        record(packed(placed(2))),
        record(packed(OrderPaid(order_id="ord_3", **facts))),
        record(packed(OrderDeclined(order_id="ord_4", reason="card_declined", **facts))),
    )

    assert ids(world, "orders") == ["api_1/order.requested"]
    assert ids(world, "payments") == ["ord_2/order.placed"]
    assert ids(world, "emails") == ["ord_3/order.paid", "ord_4/order.declined"]
    assert metrics.of("relay") == {"Sent": 4}
    assert world.wire.count("SendMessageBatch") == 3


def test_the_message_is_the_event_as_it_stands_in_the_outbox_with_its_trace(world: World) -> None:
    text = packed(samples.requested("api_1"), trace=samples.TRACE)

    relay(world, record(text))

    (message,) = world.messages("orders")
    (entry,) = json.loads(text)
    assert message["Body"] == json.dumps(entry["event"], separators=(",", ":"), ensure_ascii=False)
    assert "MessageAttributes" not in message
    assert traces(world) == [samples.TRACE]


def test_without_a_trace_none_is_made_up(world: World) -> None:
    relay(world, record(packed(placed())))

    assert traces(world) == [None]


def test_a_removed_record_and_one_with_nothing_to_send_are_passed_over(world: World, metrics: Metrics) -> None:
    relay(world, record(packed(placed()), kind="REMOVE"), record(None, kind="MODIFY"))

    assert world.wire.sent == []
    assert metrics.of("relay") == {}


def test_many_events_go_in_tens(world: World) -> None:
    relay(world, *(record(packed(placed(n)), n) for n in range(25)))

    assert len(ids(world, "payments")) == 25
    assert world.wire.count("SendMessageBatch") == 3


def test_no_request_is_larger_than_a_queue_takes(world: World) -> None:
    relay(world, *(record(with_note(n, 40_000 * "é"), n) for n in range(10)))

    assert len(ids(world, "payments")) == 10
    sizes = [
        sum(len(entry["MessageBody"].encode()) for entry in json.loads(body)["Entries"])
        for body in world.wire.bodies("SendMessageBatch")
    ]
    assert max(sizes) <= 256 * 1024
    assert len(sizes) == 4  # three events of 80 kB each, and one


def test_refused_entries_are_sent_again_and_nothing_else(world: World, metrics: Metrics) -> None:
    world.wire.plan(
        "SendMessageBatch",
        some_refused(lambda entry: "ord_1/" in entry["MessageBody"] or "ord_2/" in entry["MessageBody"]),
        some_refused(lambda entry: "ord_2/" in entry["MessageBody"]),
    )

    relay(world, *(record(packed(placed(n)), n) for n in range(4)))

    assert ids(world, "payments") == [f"ord_{n}/order.placed" for n in range(4)]
    assert metrics.of("relay") == {"Sent": 4, "Resent": 3}
    assert len(world.clock.slept) == 2


@pytest.mark.parametrize(
    "fault", [answer_lost, never_sent, refused("ThrottlingException"), refused("AccessDenied", 403)]
)
def test_a_request_that_fails_is_sent_again(world: World, fault: Any) -> None:
    world.wire.plan("SendMessageBatch", fault)

    relay(world, record(packed(placed())))

    assert set(ids(world, "payments")) == {"ord_1/order.placed"}
    assert world.wire.count("SendMessageBatch") == 2


def test_a_queue_in_trouble_keeps_no_other_waiting_and_then_the_batch_fails(world: World, metrics: Metrics) -> None:
    world.wire.always("SendMessageBatch", some_refused(lambda entry: "placed" in entry["MessageBody"]))
    before_ms = world.clock.now_ms()

    with pytest.raises(NotRelayed):
        relay(world, record(packed(placed())), record(packed(samples.requested("api_2")), 2), seconds=20)

    assert ids(world, "orders") == ["api_2/order.requested"]
    assert ids(world, "payments") == []
    assert parked(world) == []
    assert metrics.of("relay")["Sent"] == 1
    assert 16_000 < world.clock.now_ms() - before_ms <= 17_000  # until there was no time for one more request


def test_with_no_time_left_nothing_is_sent_and_the_batch_fails(world: World) -> None:
    with pytest.raises(NotRelayed):
        relay(world, record(packed(placed())), seconds=2)

    assert world.wire.count("SendMessageBatch") == 0


UNREADABLE = {
    "not JSON": "[{",
    "not a list": "{}",
    "an event without data": '[{"event":{"specversion":"1.0","id":"a","source":"b","type":"order.placed"}}]',
    "an event of another version": packed(placed()).replace('"specversion":"1.0"', '"specversion":"2.0"'),
    "characters that no queue takes": "\ufffe",
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_record_that_can_not_be_read_is_parked_and_blocks_nobody(
    world: World, metrics: Metrics, log: Log, text: str
) -> None:
    relay(world, record(packed(placed(1)), 1), record(text, 2), record(packed(placed(3)), 3))

    assert parked(world) == [("order.place#ord_2", "unreadable_outbox", text)]
    assert ids(world, "payments") == ["ord_1/order.placed", "ord_3/order.placed"]
    assert metrics.of("relay") == {"Sent": 2, "Parked": 1}
    (line,) = log.saying("parked")
    assert (line["key"], line["reason"], line["correlation_id"]) == ("order.place#ord_2", "unreadable_outbox", "c-1")


def test_an_event_that_nobody_takes_is_parked_and_its_neighbours_are_sent(world: World) -> None:
    text = packed(placed(1), placed(2)).replace("order.placed", "order.shipped", 2)

    relay(world, record(text))

    assert parked(world) == [("order.place#ord_1", "no_route", text)]
    assert ids(world, "payments") == ["ord_2/order.placed"]


def test_an_entry_refused_for_its_own_fault_is_parked_at_once(world: World, metrics: Metrics) -> None:
    world.wire.plan(
        "SendMessageBatch",
        some_refused(lambda entry: "ord_2/" in entry["MessageBody"], code="InvalidMessageContents", sender_fault=True),
    )

    relay(world, *(record(packed(placed(n)), n) for n in (1, 2, 3)))

    assert [(key, reason) for key, reason, _ in parked(world)] == [("order.place#ord_2", "refused_by_queue")]
    assert ids(world, "payments") == ["ord_1/order.placed", "ord_3/order.placed"]
    assert metrics.of("relay") == {"Sent": 2, "Parked": 1}
    assert world.wire.count("SendMessageBatch") == 1


@pytest.mark.parametrize("code", ["KmsThrottled", "AccessDenied", "QueueDoesNotExist"])
def test_an_entry_refused_for_a_sender_s_fault_that_people_can_mend_is_sent_again(world: World, code: str) -> None:
    world.wire.plan(
        "SendMessageBatch",
        some_refused(lambda entry: "ord_2/" in entry["MessageBody"], code=code, sender_fault=True),
    )

    relay(world, *(record(packed(placed(n)), n) for n in (1, 2)))

    assert parked(world) == []
    assert ids(world, "payments") == ["ord_1/order.placed", "ord_2/order.placed"]


def test_an_event_that_no_request_can_carry_is_parked_without_its_text(world: World) -> None:
    relay(world, record(with_note(1, 300_000 * "x"), 1), record(packed(placed(2)), 2))

    assert parked(world) == [("order.place#ord_1", "refused_by_queue", None)]
    assert ids(world, "payments") == ["ord_2/order.placed"]


def test_if_parking_fails_the_batch_fails(world: World) -> None:
    world.wire.plan("SendMessage", refused("InternalError", 500))
    with pytest.raises(Exception, match="InternalError"):
        relay(world, record("[{", 1), record(packed(placed(2)), 2))
    assert ids(world, "payments") == ["ord_2/order.placed"]

    relay(world, record("[{", 1), record(packed(placed(2)), 2))  # the stream comes back to it

    assert [key for key, _, _ in parked(world)] == ["order.place#ord_1"]
    assert ids(world, "payments") == ["ord_2/order.placed"]


def test_with_no_time_left_to_park_the_batch_fails(world: World) -> None:
    world.wire.plan("SendMessageBatch", meanwhile(lambda: world.clock.advance(28)))

    with pytest.raises(NotRelayed):
        relay(world, record("[{", 1), record(packed(placed(2)), 2))

    assert world.wire.count("SendMessage") == 0


def test_every_line_of_the_log_says_whose_event_it_was_and_names_nobody(world: World, log: Log) -> None:
    world.wire.plan("SendMessageBatch", some_refused(lambda _: True))

    relay(world, record(packed(samples.requested("api_1"))))

    assert [line["message"] for line in log.lines] == ["refused by its queue", "sent"]
    for line in log.lines:
        assert (line["correlation_id"], line["event_id"]) == ("c-1", "api_1/order.requested")
    assert "uyer" not in log.text


def test_it_writes_to_no_table(world: World) -> None:
    relay(world, record(packed(placed())), record("[{", 2))

    assert {name for name, _ in world.wire.sent} == {"SendMessageBatch", "SendMessage"}


def test_the_sample_event_is_sent_on(world: World) -> None:
    handler(samples.sample_event("relay"), world.context())

    assert ids(world, "payments") == ["ord_sample/order.placed"]
    assert traces(world) == [samples.TRACE]


def test_an_event_that_two_stages_take_goes_to_both_and_trouble_with_one_repeats_only_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = " ".join(world.queues[name] for name in ("payments", "emails"))
    monkeypatch.setenv("ROUTES", json.dumps({OrderPlaced.type: both}))
    world.wire.plan("SendMessageBatch", some_refused(lambda _: True))

    relay(world, record(packed(placed())))

    assert ids(world, "payments") == ids(world, "emails") == ["ord_1/order.placed"]
    assert world.wire.count("SendMessageBatch") == 3


def test_an_outbox_that_is_nested_too_deep_is_parked_alone(world: World) -> None:
    deep = packed(placed(1)).replace('"data":{', '"data":{"note":' + "[" * 60_000 + "]" * 60_000 + ",")

    relay(world, record(deep, 1), record(packed(placed(2)), 2))

    assert ids(world, "payments") == ["ord_2/order.placed"]
    assert [reason for _, reason, _ in parked(world)] == ["unreadable_outbox"]


def test_the_work_on_an_outbox_grows_no_faster_than_its_size() -> None:
    """Combining marks are not normalised, and nested data is not followed."""
    assert_linear(lambda size: partial(outbox.unpack, with_note(1, "a" + "\u0300\u0316" * (size // 4))))
    assert_linear(lambda size: partial(outbox.unpack, with_note(1, "x").replace('"x"', "[" * size)))
