"""Events as CloudEvents 1.0 JSON: what goes in is typed and canonical, what comes out has a deterministic id.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md (same `source` and `id` means duplicate)
"""

import functools
import hashlib
import unicodedata
from collections.abc import Hashable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta

from shared.idempotency.errors import Permanent

FINGERPRINT_VERSION = "v1"

T = TypeVar("T")

Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Business data of one event; subclasses set `type` and `source` and say what they are about.

    Unknown fields are passed over, so that a newer producer parks nothing at an older consumer.
    """

    type: ClassVar[str]
    source: ClassVar[str]

    @property
    def subject(self) -> str:
        """The thing that the event is about; with the type it makes the event's id."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """Deterministic: a repeated emission has the id of the first."""
        return f"{self.subject}/{self.type}"


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The CloudEvents context attributes that we read and write."""

    specversion: Literal["1.0"]
    id: Name
    source: Name
    type: Name
    time: str | None = None
    subject: Name | None = None
    datacontenttype: Literal["application/json"] | None = None
    correlationid: Name | None = None
    data: msgspec.Raw

    @property
    def correlation_id(self) -> str:
        """Whatever the first producer set, else the id of its event."""
        return self.correlationid or self.id


_envelopes = msgspec.json.Decoder(Envelope)


def open_envelope(body: str) -> Envelope:
    """Read what a message says of itself; its data is still closed.

    Raises Permanent("unparsable") where it is not JSON, Permanent("schema_invalid") where it breaks a rule.
    """
    try:
        envelope = _envelopes.decode(body)
    except UNREADABLE as error:
        raise _refusal(error) from error
    if broken := broken_rule(envelope):
        raise Permanent("schema_invalid", broken)
    return envelope


def broken_rule(envelope: Envelope) -> str | None:
    """What is wrong with an envelope's names, which travel in headers and log lines; None where nothing is.

    One look at all: five patterns cost five times what it costs to read the message.
    """
    names = (envelope.id, envelope.source, envelope.type, envelope.subject or "-", envelope.correlationid or "-")
    if _printable("".join(names)):
        return None
    fields = ("id", "source", "type", "subject", "correlationid")
    wrong = next(field for field, name in zip(fields, names, strict=True) if not _printable(name))
    return f"Expected printable ASCII without blanks - at `$.{wrong}`"


def _printable(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def event_in(envelope: Envelope, kinds: Mapping[str, type[Event]]) -> Event:
    """The data of a message, by the type that it names. Raises as above."""
    kind = kinds.get(envelope.type)
    if kind is None:
        raise Permanent("schema_invalid", f"type is none of {', '.join(sorted(kinds))}")
    try:
        return decode_as(bytes(envelope.data), kind)
    except UNREADABLE as error:
        raise _refusal(error) from error


def decode(body: str, kinds: Mapping[str, type[Event]]) -> tuple[Envelope, Event]:
    """Both at once."""
    envelope = open_envelope(body)
    return envelope, event_in(envelope, kinds)


# The last for what is nested too deep.
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def _refusal(error: Exception) -> Permanent:
    invalid = isinstance(error, msgspec.ValidationError)
    rule, _, value_and_where = str(error).partition("Invalid enum value ")
    if value_and_where:  # the one rule that quotes what came, which may name a person: this goes into logs
        return Permanent("schema_invalid", f"Invalid enum value - at {value_and_where.rpartition(' - at ')[2]}")
    return Permanent("schema_invalid" if invalid else "unparsable", rule)


_BACKSLASH = ord("\\")  # looked for first, and as a number: that costs a tenth of looking for two characters


def decode_as(raw: bytes, kind: type[T]) -> T:
    """Typed canonical data: text in NFC, `1.0` read as `1`.

    Raises msgspec.DecodeError (not JSON) or its kin msgspec.ValidationError, which names field and rule.
    """
    if raw.isascii() and (_BACKSLASH not in raw or b"\\u" not in raw):
        try:
            found: T = _decoder(kind).decode(raw)  # type: ignore[arg-type]  # mypy doubts that a class is hashable
            return found
        except msgspec.ValidationError:
            pass  # it may be the same data in another spelling: below
    return msgspec.convert(canonical(msgspec.json.decode(raw)), kind)


@functools.cache
def _decoder(kind: Hashable) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)


def canonical(value: Any) -> Any:
    """The one spelling of JSON data in which equal requests are equal."""
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case float() if value.is_integer():
            return int(value)
        case list():
            return [canonical(item) for item in value]
        case dict():
            return {canonical(name): canonical(item) for name, item in value.items()}
        case _:
            return value


_sorted = msgspec.json.Encoder(order="sorted")


def fingerprint(event: Event) -> str:
    """What makes two requests under one key the same request. Golden tests pin it.

    Business data only, keys sorted, defaults left out: an optional field added later changes nothing.
    """
    data = _sorted.encode(_said(event))
    if not data.isascii():
        data = unicodedata.normalize("NFC", data.decode()).encode()
    digest = hashlib.sha256(event.type.encode() + b"\n" + data).hexdigest()
    return f"{FINGERPRINT_VERSION}:{digest}"


_PLAIN = frozenset({str, int, bool})  # most of what there is, spared a call each


def _said(value: Any) -> Any:
    """Structs without fields that hold their default: `omit_defaults` would keep an equal value that was spelled out,
    and a struct within the event may lack it."""
    if isinstance(value, msgspec.Struct):
        said = {}
        for field, name, default in _fields(type(value)):
            held = getattr(value, field)
            if held != default:
                said[name] = held if type(held) in _PLAIN else _said(held)
        return said
    if isinstance(value, (tuple, list)):
        return [_said(item) for item in value]
    if isinstance(value, dict):
        return {name: _said(item) for name, item in value.items()}
    return value


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> list[tuple[str, str, Any]]:
    """Name, name in JSON, and default of each field."""
    made = (
        (field, field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory())
        for field in msgspec.structs.fields(kind)
    )
    return [(field.name, field.encode_name, default) for field, default in made]


def cloudevent(event: Event, *, correlation_id: str, time: str) -> Envelope:
    """The event as it is sent; `time` is RFC 3339."""
    return Envelope(
        specversion="1.0",
        id=event.id,
        source=event.source,
        type=event.type,
        time=time,
        subject=event.subject,
        datacontenttype="application/json",
        correlationid=correlation_id,
        data=msgspec.Raw(msgspec.json.encode(event)),
    )
