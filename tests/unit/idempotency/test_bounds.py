"""The work on a message is bounded before it is done, and a record costs its neighbours nothing."""

import json
import threading
import unicodedata
from functools import partial
from typing import Annotated, Any, ClassVar

import pytest
from msgspec import Meta

from functions.order.handler import place
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
from tests.harness import samples
from tests.harness.decoding import decode
from tests.harness.growth import assert_linear
from tests.harness.moto_world import World
from tests.unit.idempotency.kit import external, record
from tests.unit.idempotency.messages import deliver, sqs_record, wanted

WAIT_S = 10  # only ever reached by a test that fails
DONE = Outcome("done")
MARKS = "\u0300\u0316"


def order(**changes: Any) -> str:
    """A valid order on the queue, with changes to its data."""
    body = json.loads(samples.body_of(samples.requested("ord_1")))
    body["data"] |= changes
    return json.dumps(body, ensure_ascii=False)


def fill(size: int, unit: str) -> str:
    return unit * (size // len(unit.encode()))


def raw(size: int, name: str, unit: str) -> str:
    """An order with JSON text that `json` would not write."""
    return order(**{name: "HERE"}).replace('"HERE"', unit.replace("@", "9" * size))


HOSTILE = {
    "marks in an unknown field": lambda size: order(note="a" + fill(size, MARKS)),
    "escaped marks in an unknown field": lambda size: json.dumps(json.loads(order(note="a" + fill(size // 3, MARKS)))),
    "marks in a name of a field": lambda size: order(**{"a" + fill(size, MARKS): 1}),
    "marks in a name": lambda size: order(customer={"name": "a" + fill(size, MARKS), "email": "a@example.com"}),
    "marks in a currency": lambda size: order(currency="E" + fill(size, MARKS)),
    "marks in a list": lambda size: order(items=[{"sku": fill(size, MARKS), "quantity": 1, "unit_price": 1}]),
    "marks in an envelope": lambda size: json.dumps(
        json.loads(order()) | {"note": fill(size, MARKS)}, ensure_ascii=False
    ),
    "marks in the type": lambda size: json.dumps(json.loads(order()) | {"type": fill(size, MARKS)}, ensure_ascii=False),
    "digits": lambda size: raw(size, "currency", "@"),
    "digits in an unknown field": lambda size: raw(size, "note", "@"),
    "a long fraction": lambda size: raw(size, "note", "1.@"),
    "a long exponent": lambda size: raw(size, "note", "1e@"),
    "large exponents": lambda size: raw(0, "note", f"[{','.join(['1e308'] * (size // 6))}]"),
    "whole floats for items": lambda size: raw(0, "items", f"[{','.join(['1e308'] * (size // 6))}]"),
    "nested lists": lambda size: raw(0, "note", "[" * (size // 2) + "]" * (size // 2)),
    "nested objects": lambda size: raw(0, "note", '{"":' * (size // 5) + "1" + "}" * (size // 5)),
    "many fields": lambda size: order(**{f"f{n}": n for n in range(size // 14)}),
    "one field repeated": lambda size: raw(0, "note", "1" + ',"note":1' * (size // 9)),
    "many items": lambda size: order(items=[{"sku": "\u00e9", "quantity": 1.0, "unit_price": 1}] * (size // 50)),
    "a long address": lambda size: order(customer={"name": "a", "email": fill(size, "a.") + "@example.com"}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_the_work_on_a_message_grows_no_faster_than_its_size(case: str) -> None:
    assert_linear(lambda size: partial(decode, HOSTILE[case](size), place.kinds))


@pytest.mark.parametrize("case", HOSTILE)
def test_only_short_text_is_normalised(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []

    class Counting:
        @staticmethod
        def normalize(form: Any, text: str) -> str:
            lengths.append(len(text))
            return unicodedata.normalize(form, text)

    monkeypatch.setattr(events, "unicodedata", Counting)
    try:
        _, event = decode(HOSTILE[case](48_000), place.kinds)
    except Permanent:
        pass
    else:
        fingerprint(event)

    assert max(lengths, default=0) <= 4 * 254  # of the longest field: an address


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


def test_a_text_that_normalisation_makes_too_long_is_refused() -> None:
    """U+0958 is one character that NFC writes as two."""
    body = order(customer={"name": "\u0958" * 101, "email": "a@example.com"})

    with pytest.raises(Permanent, match=r"length <= 200 - at `\$\.customer\.name`"):
        decode(body, place.kinds)


@pytest.mark.parametrize("unit", ["x", "\u20ac", "\ud800"])
def test_a_body_over_the_limit_is_refused_unread_and_one_at_the_limit_is_read(unit: str) -> None:
    bytes_of_unit = len(unit.encode(errors="surrogatepass"))
    at_limit = unit * (BODY_LIMIT_BYTES // bytes_of_unit)

    with pytest.raises(Permanent, match="unparsable"):
        decode(at_limit, place.kinds)
    with pytest.raises(Permanent, match="too_large: the body has more than 65536 bytes"):
        decode(at_limit + unit, place.kinds)


def test_the_largest_valid_order_is_read() -> None:
    body = order()

    decode(body + " " * (BODY_LIMIT_BYTES - len(body.encode())), place.kinds)


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
