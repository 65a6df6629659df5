"""Events as CloudEvents 1.0 JSON: what goes in is typed and canonical, what comes out has a deterministic id.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md (same `source` and `id` means duplicate)
"""

import functools
import hashlib
import unicodedata
from collections.abc import Hashable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, inspect

from shared.idempotency.errors import Permanent

FINGERPRINT_VERSION = "v1"

# The largest body that is read, in bytes of UTF-8. A function may set another limit: BODY_LIMIT_BYTES (runtime.py).
# The source queue accepts 8 KB more, for message attributes (stacks/constructs/queues.py).
BODY_LIMIT_BYTES = 64 * 1024

# Up to here each whole number has its own float. https://www.rfc-editor.org/rfc/rfc8259#section-6
EXACT_FLOAT_LIMIT = 2**53

# A character in NFC stands for at most so many characters of the text before normalisation.
# https://www.unicode.org/faq/normalization.html
NFC_SHRINKS_BY = 4

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


def open_envelope(body: str, limit_bytes: int = BODY_LIMIT_BYTES) -> Envelope:
    """Read the context attributes of a message. The event data stays encoded.

    `limit_bytes` is the largest body that is read, in bytes of UTF-8.
    Raises Permanent: "too_large" before anything is read, "unparsable" for a body that is not JSON,
    "schema_invalid" for an envelope that breaks a rule.
    """
    if exceeds(body, limit_bytes):
        raise Permanent("too_large", f"the body has more than {limit_bytes} bytes")
    try:
        envelope = _envelopes.decode(body)
    except UNREADABLE as error:
        raise _refusal(error) from error
    if broken := broken_rule(envelope):
        raise Permanent("schema_invalid", broken)
    return envelope


def exceeds(text: str, limit_bytes: int) -> bool:
    """Whether a text has more bytes of UTF-8 than the limit. A text far over the limit is not encoded."""
    if len(text) > limit_bytes:
        return True
    return not text.isascii() and len(text.encode(errors="surrogatepass")) > limit_bytes


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
    """Decode JSON into a type. Equal data in another spelling becomes an equal value.

    Text is normalised to NFC and `1.0` is read as `1`, in fields of the type only (see `_canonical`).
    Raises msgspec.DecodeError (not JSON) or its subclass msgspec.ValidationError, which names field and rule.
    """
    if raw.isascii() and (_BACKSLASH not in raw or b"\\u" not in raw):
        try:
            found: T = _decoder(kind).decode(raw)  # type: ignore[arg-type]  # mypy doubts that a class is hashable
            return found
        except msgspec.ValidationError:
            pass  # the data may be valid in another spelling: see below
    return msgspec.convert(_canonical(msgspec.json.decode(raw), _shape(kind)), kind)  # type: ignore[arg-type]


@functools.cache
def _decoder(kind: Hashable) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)


@functools.cache
def _shape(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


def _canonical(value: Any, shape: inspect.Type) -> Any:
    """Give equal JSON data one spelling, field by field, only where the type bounds the work.

    A text is normalised only if its field has a `max_length` and the result can keep it: the time that normalisation
    takes grows with the square of a run of combining marks. A whole float becomes an integer if the field holds
    integers. All other data stays as it is, and the type accepts or refuses it.
    """
    match shape, value:
        case inspect.StrType(max_length=int(most)), str() if len(value) <= NFC_SHRINKS_BY * most:
            return unicodedata.normalize("NFC", value)
        case inspect.IntType(), float() if value.is_integer() and abs(value) <= EXACT_FLOAT_LIMIT:
            return int(value)
        case inspect.StructType(fields=fields), dict():
            shapes = {field.encode_name: field.type for field in fields}
            return {name: _canonical(item, shapes[name]) if name in shapes else item for name, item in value.items()}
        case inspect.DictType(value_type=item_shape), dict():
            return {name: _canonical(item, item_shape) for name, item in value.items()}
        case (inspect.VarTupleType() | inspect.ListType()) as array, list():
            return [_canonical(item, array.item_type) for item in value]
        case inspect.UnionType(types=shapes_of_union), _:
            return functools.reduce(_canonical, shapes_of_union, value)
        case _:
            return value


_sorted = msgspec.json.Encoder(order="sorted")


def fingerprint(event: Event) -> str:
    """What makes two requests under one key the same request. Golden tests pin it.

    Business data only, keys sorted, defaults left out: an optional field added later changes nothing.
    """
    data = _sorted.encode(_said(event))
    if not data.isascii():  # code can make an event whose text is not in NFC
        data = _sorted.encode(_canonical(_said(event), _shape(type(event))))
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
