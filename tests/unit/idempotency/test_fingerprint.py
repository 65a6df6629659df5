"""What makes two requests the same request: typed, canonical business data, and nothing else."""

import json
from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from msgspec import Meta

from shared.idempotency import Event, fingerprint
from tests.harness.decoding import decode
from tests.unit.idempotency.core_helpers import ParcelSent, ParcelWanted


class Label(msgspec.Struct, frozen=True):
    """Within an event, and it does not omit its defaults by itself."""

    text: str
    copies: int = 1


class Shipment(Event, frozen=True, omit_defaults=True, kw_only=True):
    type: ClassVar[str] = "shipment"
    source: ClassVar[str] = "tests"

    name: Annotated[str, Meta(max_length=100)]
    weight: int
    labels: tuple[Label, ...] = ()
    extra: dict[str, Any] = {}  # noqa: RUF012 (msgspec copies it)

    @property
    def subject(self) -> str:
        return self.name


class LaterLabel(Label, frozen=True):
    colour: str = "a colour that no one has interned"


class LaterShipment(Shipment, frozen=True, omit_defaults=True, kw_only=True):
    """A later version, with optional fields added in it and within."""

    labels: tuple[LaterLabel, ...] = ()
    channel: str = "web shop"
    rank: int = 100_000
    note: str | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    gift: bool = False


PLAIN = '{"name": "Zoë", "weight": 12, "labels": [{"text": "a"}]}'
SAME = {
    "an integral float": '{"name": "Zoë", "weight": 12.0, "labels": [{"text": "a"}]}',
    "an exponent": '{"name": "Zoë", "weight": 1.2e1, "labels": [{"text": "a"}]}',
    "another key order": '{"labels": [{"text": "a"}], "weight": 12, "name": "Zoë"}',
    "blanks": '{"name":"Zoë","weight":12,"labels":[{"text":"a"}]}',
    "NFD": '{"name": "Zoe\u0308", "weight": 12, "labels": [{"text": "a"}]}',
    "escapes": '{"name": "Zo\\u00eb", "weight": 12, "labels": [{"text": "\\u0061"}]}',
    "NFD in escapes": '{"name": "Zoe\\u0308", "weight": 12, "labels": [{"text": "a"}]}',
    "an unknown field": '{"name": "Zoë", "weight": 12, "labels": [{"text": "a", "x": 1}], "newer": {"y": 2}}',
    "a default spelled out": '{"name": "Zoë", "weight": 12, "labels": [{"text": "a", "copies": 1}], "extra": {}}',
}
LATER = {
    "absent": PLAIN,
    "null": '{"name": "Zoë", "weight": 12, "labels": [{"text": "a"}], "note": null}',
    "spelled out": json.dumps(
        {
            "name": "Zoë",
            "weight": 12,
            "labels": [{"text": "a", "copies": 1, "colour": "a colour that no one has interned"}],
            "channel": "web shop",
            "rank": 100_000,
            "note": None,
            "tags": [],
            "gift": False,
        }
    ),
}
OTHER = {
    "another number": '{"name": "Zoë", "weight": 13, "labels": [{"text": "a"}]}',
    "another name": '{"name": "Zoe", "weight": 12, "labels": [{"text": "a"}]}',
    "another case": '{"name": "ZOË", "weight": 12, "labels": [{"text": "a"}]}',
    "one more": '{"name": "Zoë", "weight": 12, "labels": [{"text": "a"}, {"text": "a"}]}',
    "none": '{"name": "Zoë", "weight": 12}',
    "another within": '{"name": "Zoë", "weight": 12, "labels": [{"text": "a", "copies": 2}]}',
    "extra": '{"name": "Zoë", "weight": 12, "labels": [{"text": "a"}], "extra": {"a": 0}}',
}


def read(data: str, kind: type[Event] = Shipment, **envelope: Any) -> Event:
    body = {"specversion": "1.0", "id": "i", "source": "s", "type": kind.type, **envelope, "data": "HERE"}
    return decode(json.dumps(body).replace('"HERE"', data), {kind.type: kind})[1]


def test_a_fingerprint_is_pinned_by_value_with_its_version() -> None:
    assert fingerprint(read(PLAIN)) == "v1:05830733324cbb3f492b97f3cbd8a3a845ffd853d24233fb6e7c0081260ffdf3"
    assert (
        fingerprint(ParcelWanted(parcel_id="p1"))
        == "v1:a8dcae4ad3d6df500894de568eddd085379c875317c835032652b76374bbc9ab"
    )


@pytest.mark.parametrize("data", SAME.values(), ids=SAME.keys())
def test_another_spelling_is_the_same_request(data: str) -> None:
    assert fingerprint(read(data)) == fingerprint(read(PLAIN))


@pytest.mark.parametrize("data", LATER.values(), ids=LATER.keys())
def test_optional_fields_of_a_later_version_change_nothing_until_they_say_something(data: str) -> None:
    assert fingerprint(read(data, LaterShipment)) == fingerprint(read(PLAIN))


@pytest.mark.parametrize("said", ['"channel": "phone"', '"rank": 1', '"gift": true', '"tags": ["x"]', '"note": ""'])
def test_an_optional_field_that_says_something_is_another_request(said: str) -> None:
    assert fingerprint(read(PLAIN[:-1] + f", {said}}}", LaterShipment)) != fingerprint(read(PLAIN))


@pytest.mark.parametrize("data", OTHER.values(), ids=OTHER.keys())
def test_other_data_is_another_request(data: str) -> None:
    assert fingerprint(read(data)) != fingerprint(read(PLAIN))


def test_the_order_of_a_list_is_part_of_the_request() -> None:
    one, other = ('"labels": [{"text": "a"}, {"text": "b"}]', '"labels": [{"text": "b"}, {"text": "a"}]')

    assert fingerprint(read(f'{{"name": "n", "weight": 1, {one}}}')) != fingerprint(
        read(f'{{"name": "n", "weight": 1, {other}}}')
    )


def test_who_sent_it_and_when_is_no_part_of_the_request() -> None:
    plain = fingerprint(read(PLAIN))

    assert fingerprint(read(PLAIN, id="other", source="other", time="2027-01-01T00:00:00Z")) == plain
    assert fingerprint(read(PLAIN, correlationid="other", subject="other")) == plain


def test_the_same_data_under_another_type_is_another_request() -> None:
    assert fingerprint(ParcelSent(parcel_id="p1")) != fingerprint(ParcelWanted(parcel_id="p1"))


def test_an_event_made_in_code_has_the_fingerprint_of_the_one_that_is_read() -> None:
    made = Shipment(name="Zoe\u0308", weight=12, labels=(Label("a"),))

    assert fingerprint(made) == fingerprint(read(PLAIN))
