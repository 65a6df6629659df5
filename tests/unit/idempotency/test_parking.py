"""Parking: with its reason to the DLQ first, acknowledged second, and nothing of the message lost."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from shared.idempotency import Outcome, iso
from shared.idempotency.sqs import park
from tests.harness.interceptor import answer_lost, never_sent, refused
from tests.harness.layer_world import World
from tests.harness.sqs_records import Record
from tests.unit.idempotency.core_helpers import external
from tests.unit.idempotency.messages import deliver, sqs_record

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"


def bad(attributes: Mapping[str, Any] | None = None, message_id: str = "m1") -> Record:
    return sqs_record(message_id, "{", messageAttributes=dict(attributes or {}))


def text(value: str, kind: str = "String") -> dict[str, Any]:
    return {"dataType": kind, "stringValue": value, "stringListValues": [], "binaryListValues": []}


def parked(world: World, record: Record) -> dict[str, Any]:
    """Park a record; answers the message as it lies in the DLQ."""
    assert deliver(world, external(lambda _, __: Outcome("done")), record) == []
    (message,) = world.messages("dlq")
    return dict(message)


def attributes(message: dict[str, Any]) -> dict[str, str]:
    return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}


def test_a_parked_message_says_why_since_when_and_what_it_was(world: World) -> None:
    message = parked(world, bad())

    assert message["Body"] == "{"
    assert attributes(message) == {
        "reason": "unparsable",
        "original_message_id": "m1",
        "first_parked_at": iso(world.clock.now_ms()),
    }


def test_a_message_parked_again_tells_of_its_first_time_and_its_last_reason(world: World) -> None:
    before = {
        "reason": text("bad_card"),
        "original_message_id": text("m0"),
        "first_parked_at": text("2026-01-01T00:00:00.000Z"),
    }

    assert attributes(parked(world, bad(before, "m2"))) == {
        "reason": "unparsable",
        "original_message_id": "m0",
        "first_parked_at": "2026-01-01T00:00:00.000Z",
    }


def test_a_messages_own_attributes_are_kept_of_every_type(world: World) -> None:
    own = {
        "tenant": text("blue"),
        "weight": text("12", "Number"),
        "blob": {"dataType": "Binary", "binaryValue": "AAEC/w=="},
        "odd": text("x", "String.custom"),
    }

    kept = parked(world, bad(own))["MessageAttributes"]

    assert (kept["tenant"]["DataType"], kept["tenant"]["StringValue"]) == ("String", "blue")
    assert (kept["weight"]["DataType"], kept["weight"]["StringValue"]) == ("Number", "12")
    assert (kept["blob"]["DataType"], kept["blob"]["BinaryValue"]) == ("Binary", b"\x00\x01\x02\xff")
    assert (kept["odd"]["DataType"], kept["odd"]["StringValue"]) == ("String.custom", "x")
    assert len(kept) == 4 + 3


@pytest.mark.parametrize("own", [7, 8, 10])
def test_more_attributes_than_sqs_carries_are_cut_and_ours_are_there(world: World, own: int) -> None:
    kept = attributes(parked(world, bad({f"a{n}": text(str(n)) for n in range(own)})))

    assert len(kept) == 10
    assert {"reason", "original_message_id", "first_parked_at"} <= kept.keys()
    assert {f"a{n}" for n in range(7)} <= kept.keys()


def test_a_message_parked_again_with_ten_attributes_keeps_its_seven(world: World) -> None:
    before = {name: text("x") for name in ("reason", "original_message_id", "first_parked_at")}

    assert len(parked(world, bad(before | {f"a{n}": text(str(n)) for n in range(7)}))["MessageAttributes"]) == 10


def test_the_trace_goes_with_the_message(world: World) -> None:
    record = bad()
    record["attributes"]["AWSTraceHeader"] = TRACE

    assert parked(world, record)["Attributes"]["AWSTraceHeader"] == TRACE


def test_in_a_fifo_dlq_a_message_keeps_its_group_and_is_known_by_its_id(world: World) -> None:
    url = world.sqs.create_queue(QueueName="dlq.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]

    for _ in range(2):
        park(world.sqs, url, sqs_record("m1", "{", group="g"), "unparsable", world.clock.now_ms())

    sent = json.loads(world.wire.bodies("SendMessage")[-1])
    assert (sent["MessageGroupId"], sent["MessageDeduplicationId"]) == ("g", "m1")


@pytest.mark.parametrize("fault", [never_sent, refused("AccessDenied", 403), refused("InternalError", 500)])
def test_what_could_not_be_parked_is_reported(world: World, fault: Any) -> None:
    world.wire.plan("SendMessage", fault)

    assert deliver(world, external(lambda _, __: Outcome("done")), bad()) == ["m1"]

    assert world.messages("dlq") == []


def test_a_parking_of_unknown_outcome_is_reported_since_twice_in_the_dlq_is_better_than_nowhere(world: World) -> None:
    world.wire.plan("SendMessage", answer_lost)

    assert deliver(world, external(lambda _, __: Outcome("done")), bad()) == ["m1"]

    assert len(world.messages("dlq")) == 1


def test_parking_raises_what_sqs_says(world: World) -> None:
    world.wire.plan("SendMessage", refused("AccessDenied", 403))

    with pytest.raises(ClientError):
        park(world.sqs, world.queues["dlq"], bad(), "unparsable", 1)


def total_bytes(message: Mapping[str, Any]) -> int:
    """As SQS counts it for MaximumMessageSize: the body, and name, type and value of each attribute."""
    size = len(message["MessageBody"].encode())
    for name, value in message["MessageAttributes"].items():
        content = value.get("BinaryValue") or value["StringValue"].encode()
        size += len(name) + len(value["DataType"]) + len(content)
    return size


@pytest.mark.parametrize(
    "own", [{"a": 8000}, {"a": 20_000}, {"a": 4000, "b": 4000, "c": 100}, {"original_message_id": 9000}]
)
def test_the_attributes_of_a_parked_message_leave_room_for_a_redrive(world: World, own: dict[str, int]) -> None:
    message = parked(world, bad({name: text("x" * size) for name, size in own.items()}))

    assert {"reason", "original_message_id", "first_parked_at"} <= attributes(message).keys()
    assert total_bytes({**message, "MessageBody": ""}) <= 8 * 1024
    assert all(len(attributes(message)[name]) == own[name] for name in attributes(message) if name in {"a", "b", "c"})
