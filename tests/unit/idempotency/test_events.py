"""CloudEvents, in and out."""

import json
from typing import Any

import msgspec
import pytest

from shared.idempotency import Permanent, cloudevent
from shared.idempotency.events import CloudEvent
from shared.idempotency.outbox import pack, unpack
from tests.harness.decoding import decode
from tests.unit.idempotency.core_helpers import ParcelSent, ParcelWanted

KINDS = {ParcelWanted.type: ParcelWanted}
GOOD: dict[str, Any] = {
    "specversion": "1.0",
    "id": "p1/parcel.wanted",
    "source": "partner.example",
    "type": "parcel.wanted",
    "time": "2026-01-01T00:00:00Z",
    "subject": "p1",
    "datacontenttype": "application/json",
    "correlationid": "c-1",
    "data": {"parcel_id": "p1", "weight": 3},
}
NOW_MS = 1_767_225_600_123  # 2026-01-01T00:00:00.123Z


def body(**changes: Any) -> str:
    """The good message with some attributes changed; Ellipsis leaves one out."""
    return json.dumps({name: value for name, value in (GOOD | changes).items() if value is not ...})


def reason(text: str) -> str:
    with pytest.raises(Permanent) as refused:
        decode(text, KINDS)
    return refused.value.reason


@pytest.mark.parametrize("name", ["specversion", "datacontenttype", "type"])
def test_what_is_refused_is_not_quoted_since_it_may_name_a_person(name: str) -> None:
    with pytest.raises(Permanent) as refused:
        decode(body(**{name: "jane.doe@example.org,4-Elm-Street`-at-`$.x`"}), KINDS)

    assert refused.value.reason == "schema_invalid"
    assert "jane" not in str(refused.value)
    assert name in str(refused.value)


def test_a_message_is_read_into_its_envelope_and_its_event() -> None:
    envelope, event = decode(body(), KINDS)

    assert event == ParcelWanted(parcel_id="p1", weight=3)
    assert (envelope.id, envelope.source, envelope.subject) == ("p1/parcel.wanted", "partner.example", "p1")
    assert envelope.correlation_id == "c-1"


@pytest.mark.parametrize("text", ["", "{", "no", "\ufeff{}", body()[:-1], body() + "}", '{"a": NaN}', '"\ud800"', "\0"])
def test_what_is_not_json_is_unparsable(text: str) -> None:
    assert reason(text) == "unparsable"


def test_data_that_is_not_json_within_its_strings_is_unparsable() -> None:
    assert reason(body(data={"parcel_id": "@"}).replace("@", "\\ud800")) == "unparsable"


@pytest.mark.parametrize("text", ["5", "[]", "null", '"text"', "{}"])
def test_json_that_is_no_event_is_schema_invalid(text: str) -> None:
    assert reason(text) == "schema_invalid"


@pytest.mark.parametrize("name", ["specversion", "id", "source", "type", "data"])
def test_an_attribute_that_must_be_there_must_be_there(name: str) -> None:
    assert reason(body(**{name: ...})) == "schema_invalid"
    assert reason(body(**{name: None})) == "schema_invalid"


@pytest.mark.parametrize("name", ["time", "subject", "datacontenttype", "correlationid"])
@pytest.mark.parametrize("nothing", [..., None])
def test_an_attribute_that_may_be_missing_may_be_missing(name: str, nothing: object) -> None:
    decode(body(**{name: nothing}), KINDS)


@pytest.mark.parametrize("name", ["id", "source", "type", "subject", "correlationid"])
@pytest.mark.parametrize("value", ["", "a b", "a\nb", "a\0b", "é", "\u2028", "x" * 257, 5, [], "a\n", "\x7f"])
def test_what_travels_in_headers_and_log_lines_is_printable_and_short(name: str, value: object) -> None:
    assert reason(body(**{name: value})) == "schema_invalid"


@pytest.mark.parametrize(
    "changes",
    [{"specversion": "0.3"}, {"datacontenttype": "text/xml"}, {"type": "parcel.lost"}, {"data": {"weight": 3}}],
    ids=["other version", "other content", "other type", "a field missing"],
)
def test_what_breaks_a_rule_is_schema_invalid(changes: dict[str, Any]) -> None:
    assert reason(body(**changes)) == "schema_invalid"


@pytest.mark.parametrize("weight", ["3", True, 3.5, None, [3], 1e16, 1e300])
def test_types_are_strict(weight: object) -> None:
    assert reason(body(data={"parcel_id": "p1", "weight": weight})) == "schema_invalid"


@pytest.mark.parametrize("weight", [10**30, 3.0, 9e15])
def test_a_whole_number_is_read_unless_its_spelling_is_inexact(weight: float) -> None:
    _, event = decode(body(data={"parcel_id": "p1", "weight": weight}), KINDS)

    assert event == ParcelWanted(parcel_id="p1", weight=int(weight))


def test_a_refusal_names_the_field_and_the_rule_and_never_the_value() -> None:
    with pytest.raises(Permanent) as refused:
        decode(body(data={"parcel_id": "p1", "weight": "buyer@example.com"}), KINDS)

    assert "$.weight" in str(refused.value)
    assert "buyer" not in str(refused.value)


def test_fields_that_a_newer_producer_added_are_passed_over() -> None:
    text = body(traceparent="00-1", data={"parcel_id": "p1", "colour": {"deep": [1]}, "größe": "\u00e9"})

    assert decode(text, KINDS)[1] == ParcelWanted(parcel_id="p1")


def test_without_a_correlation_id_the_events_own_id_is_it() -> None:
    assert decode(body(correlationid=...), KINDS)[0].correlation_id == "p1/parcel.wanted"


@pytest.mark.parametrize("escaped", [True, False])
def test_text_is_read_in_nfc(escaped: bool) -> None:
    told = json.loads(body(data={"parcel_id": "p1", "note": "Zoe\u0308"}))
    _, event = decode(json.dumps(told, ensure_ascii=escaped), KINDS)

    assert event == ParcelWanted(parcel_id="p1", note="Zo\u00eb")


def test_an_outbox_with_an_event_that_no_consumer_would_take_can_not_be_read() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"at `\$\[0\]\.event\.correlationid`"):
        unpack(pack([ParcelSent(parcel_id="p1")], correlation_id="c 1", now_ms=1, trace=None))


def test_an_events_id_is_made_of_its_subject_and_type_and_nothing_else() -> None:
    assert ParcelSent(parcel_id="p1", weight=1).id == ParcelSent(parcel_id="p1", weight=2).id == "p1/parcel.sent"


def test_an_event_is_sent_as_a_cloudevent_that_reads_back_the_same() -> None:
    sent = cloudevent(ParcelWanted(parcel_id="p1", note="é"), correlation_id="c-9", time="2026-01-01T00:00:00Z")
    assert bytes(sent.data) == '{"parcel_id":"p1","note":"é"}'.encode()
    (entry,) = unpack(pack([ParcelWanted(parcel_id="p1", note="é")], correlation_id="c-9", now_ms=1, trace=None))

    assert (sent.id, sent.source, sent.type, sent.subject) == ("p1/parcel.wanted", "tests", "parcel.wanted", "p1")
    assert (sent.specversion, sent.datacontenttype, sent.correlationid) == ("1.0", "application/json", "c-9")
    assert bytes(entry.event.data) == bytes(sent.data)


def test_an_outbox_keeps_its_events_in_order_with_time_trace_and_correlation() -> None:
    events = [ParcelSent(parcel_id="p1"), ParcelSent(parcel_id="p2")]

    text = pack(events, correlation_id="c-1", now_ms=NOW_MS, trace="Root=1-2;Sampled=1")

    assert text is not None
    first, second = unpack(text)
    assert [first.event.id, second.event.id] == ["p1/parcel.sent", "p2/parcel.sent"]
    assert first.event.time == "2026-01-01T00:00:00.123Z"
    assert first.trace == "Root=1-2;Sampled=1"
    assert second.event.correlation_id == "c-1"
    kinds = {ParcelSent.type: ParcelSent}
    assert decode(_json(first.event), kinds)[1] == events[0]


def test_an_entry_without_a_trace_says_nothing_of_it() -> None:
    assert "trace" not in pack([ParcelSent(parcel_id="p1")], correlation_id="c", now_ms=1, trace=None)


def _json(envelope: CloudEvent) -> str:
    return msgspec.json.encode(envelope).decode()


@pytest.mark.parametrize("value", ["1e400", "9" * 5_000, '{"deep": [1e999]}'])
def test_an_unknown_field_is_ignored_even_if_it_holds_a_huge_number(value: str) -> None:
    text = body(data={"parcel_id": "p1", "unknown": "HERE"}).replace('"HERE"', value)

    assert decode(text, KINDS)[1] == ParcelWanted(parcel_id="p1")
