"""The work on a message is bounded before it is done, and a record costs its neighbours nothing."""

import json
import threading
from functools import partial
from typing import Annotated, Any, ClassVar

import pytest
from msgspec import Meta

from shared.idempotency import (
    BODY_LIMIT_BYTES,
    Attempt,
    Effect,
    Event,
    Outcome,
    Permanent,
    events,
    fingerprint,
    sqs,
    step,
)
from tests.harness.decoding import decode
from tests.harness.growth import assert_linear
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import ParcelWanted, external, record
from tests.unit.idempotency.messages import deliver, sqs_record, wanted

WAIT_S = 10  # only ever reached by a test that fails
DONE = Outcome("done")
KINDS = {ParcelWanted.type: ParcelWanted}
MARKS = "\u0300\u0316"


def fill(size: int, unit: str) -> str:
    return unit * (size // len(unit.encode()))


class Note(Event, frozen=True, omit_defaults=True, kw_only=True):
    type: ClassVar[str] = "note"
    source: ClassVar[str] = "tests"

    free: str
    short: Annotated[str, Meta(max_length=20)] = ""

    @property
    def subject(self) -> str:
        return self.short


def test_the_work_on_a_fingerprint_grows_no_faster_than_the_event() -> None:
    assert_linear(lambda size: partial(fingerprint, Note(free="a" + fill(size, MARKS))))


@pytest.mark.parametrize("unit", ["x", "\u20ac", "\ud800"])
def test_a_body_over_the_limit_is_refused_unread_and_one_at_the_limit_is_read(unit: str) -> None:
    bytes_of_unit = len(unit.encode(errors="surrogatepass"))
    at_limit = unit * (BODY_LIMIT_BYTES // bytes_of_unit)

    with pytest.raises(Permanent, match="unparsable"):
        decode(at_limit, KINDS)
    with pytest.raises(Permanent, match="too_large: the body has more than 65536 bytes"):
        decode(at_limit + unit, KINDS)


def test_a_function_can_set_another_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BODY_LIMIT_BYTES", "1000")
    text = sqs_record("m1", wanted("p1"))["body"]
    records = [sqs_record("m1", text.ljust(1000)), sqs_record("m2", text.ljust(1001))]

    assert deliver(world, external(lambda _, __: DONE), *records) == []

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "too_large"
    assert len(parked["Body"]) == 1001


def test_a_message_that_is_too_large_is_parked_alone(world: World) -> None:
    heavy = sqs_record("heavy", json.dumps({"note": "a" + fill(100_000, MARKS)}, ensure_ascii=False))
    neighbours = [sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(9)]

    assert deliver(world, external(lambda _, __: DONE), heavy, *neighbours) == []

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["original_message_id"]["StringValue"] == "heavy"
    assert all(record(world, f"parcel.send#p{n}")["status"] == "COMPLETED" for n in range(9))


neighbours_done = threading.Event()


class Slow(Event, frozen=True, omit_defaults=True, kw_only=True):
    """An event that is read only after the other record of its batch is done."""

    type: ClassVar[str] = "slow"
    source: ClassVar[str] = "tests"

    name: str

    def __post_init__(self) -> None:
        if self.name == "slow" and not neighbours_done.wait(WAIT_S):
            raise ValueError("the neighbour waits for this record")

    @property
    def subject(self) -> str:
        return self.name


def test_a_record_that_is_slow_to_read_does_not_delay_its_neighbours(world: World) -> None:
    neighbours_done.clear()

    @step("slow.read", event=Slow, key=lambda event: event.name, effect=Effect.NONE)
    def function(event: Slow, _: Attempt) -> Outcome:
        if event.name == "quick":
            neighbours_done.set()
        return DONE

    slow = sqs_record("m1", '{"specversion":"1.0","id":"a","source":"s","type":"slow","data":{"name":"slow"}}')
    quick = sqs_record("m2", slow["body"].replace('"name":"slow"', '"name":"quick"'))

    assert deliver(world, function, slow, quick) == []

    assert world.messages("dlq") == []
    assert neighbours_done.is_set()


def test_the_time_for_reading_counts_against_the_deadline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*arguments: Any) -> Event:
        world.clock.advance(25)
        return events.decode_event(*arguments)

    monkeypatch.setattr(sqs, "decode_event", slowly)

    assert deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p"))) == ["m1"]

    assert record(world, "parcel.send#p") == {}


def test_a_record_is_not_read_without_time_for_its_step(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqs, "decode_cloudevent", lambda *_: pytest.fail("read without time for its step"))

    assert deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p")), seconds=9) == ["m1"]

    assert world.messages("dlq") == []
