"""Events as CloudEvents 1.0 JSON. Input is typed and canonical; output has a deterministic id.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md (equal `source` and `id` means duplicate)
"""

import functools
import hashlib
import unicodedata
from collections.abc import Hashable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, inspect

from .errors import Permanent

FINGERPRINT_VERSION = "v1"

# The largest body that is read, in bytes of UTF-8. A function may set another limit: BODY_LIMIT_BYTES (sqs.py).
# The source queue accepts 8 KB more, for message attributes (stacks/constructs/queues.py).
BODY_LIMIT_BYTES = 64 * 1024

# Each whole number up to this limit has its own float. https://www.rfc-editor.org/rfc/rfc8259#section-6
EXACT_FLOAT_LIMIT = 2**53

# A character in NFC replaces at most this many characters of the original text.
# https://www.unicode.org/faq/normalization.html
NFC_SHRINKS_BY = 4

T = TypeVar("T")

# Printable ASCII without blanks: these names travel in headers and log lines.
Name = Annotated[str, Meta(pattern=r"^[!-~]{1,256}\Z")]


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Business data of one event. Subclasses set `type`, `source` and `subject`.

    Unknown fields are ignored, so that a newer producer does not park messages at an older consumer.
    """

    type: ClassVar[str]
    source: ClassVar[str]

    @property
    def subject(self) -> str:
        """The thing that the event is about. With the type it makes the event's id."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """Deterministic: a repeated emission has the id of the first."""
        return f"{self.subject}/{self.type}"


class CloudEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The CloudEvents context attributes that this layer reads and writes. `data` stays encoded."""

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
        """The id that the first producer set, or the id of the event."""
        return self.correlationid or self.id


_cloudevents = msgspec.json.Decoder(CloudEvent)

# RecursionError: JSON that is nested too deep.
UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def decode_cloudevent(body: str, limit_bytes: int = BODY_LIMIT_BYTES) -> CloudEvent:
    """Decode the context attributes of a message.

    `limit_bytes` is the largest body that is read, in bytes of UTF-8.
    Raises Permanent: "too_large" before anything is read, "unparsable" for a body that is not JSON,
    "schema_invalid" for a context attribute that breaks a rule.
    """
    if exceeds(body, limit_bytes):
        raise Permanent("too_large", f"the body has more than {limit_bytes} bytes")
    try:
        return _cloudevents.decode(body)
    except UNREADABLE as error:
        raise _as_permanent(error) from error


def exceeds(text: str, limit_bytes: int) -> bool:
    """Return whether a text has more bytes of UTF-8 than the limit. A text far over the limit is not encoded."""
    if len(text) > limit_bytes:
        return True
    return not text.isascii() and len(text.encode(errors="surrogatepass")) > limit_bytes


def decode_event(cloudevent: CloudEvent, kinds: Mapping[str, type[Event]]) -> Event:
    """Decode the data of a message as the struct of its type. `kinds`: structs by event type. Raises Permanent."""
    kind = kinds.get(cloudevent.type)
    if kind is None:
        raise Permanent("schema_invalid", f"type is none of {', '.join(sorted(kinds))}")
    try:
        return decode_as(bytes(cloudevent.data), kind)
    except UNREADABLE as error:
        raise _as_permanent(error) from error


def _as_permanent(error: Exception) -> Permanent:
    invalid = isinstance(error, msgspec.ValidationError)
    rule, _, value_and_path = str(error).partition("Invalid enum value ")
    if value_and_path:  # the only rule that quotes the value, which may name a person: the text goes into logs
        return Permanent("schema_invalid", f"Invalid enum value - at {value_and_path.rpartition(' - at ')[2]}")
    return Permanent("schema_invalid" if invalid else "unparsable", rule)


def decode_as(raw: bytes, kind: type[T]) -> T:
    """Decode JSON into a type. Equal data in another spelling becomes an equal value.

    Text is normalised to NFC and `1.0` is read as `1`, in fields of the type only (see `_canonical`).
    Raises msgspec.DecodeError (not JSON) or its subclass msgspec.ValidationError, which names field and rule.
    """
    return msgspec.convert(_canonical(msgspec.json.decode(raw), _shape(kind)), kind)  # type: ignore[arg-type]


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
    """Return the hash of an event's business data. Two requests under one key are equal if their hashes are equal.

    Keys are sorted and defaults are left out, so that an optional field added later changes no hash.
    """
    data = _sorted.encode(_without_defaults(event))
    if not data.isascii():  # code can make an event whose text is not in NFC
        data = _sorted.encode(_canonical(_without_defaults(event), _shape(type(event))))
    digest = hashlib.sha256(event.type.encode() + b"\n" + data).hexdigest()
    return f"{FINGERPRINT_VERSION}:{digest}"


def _without_defaults(value: Any) -> Any:
    """Structs as dictionaries without the fields that hold their default.

    `omit_defaults` of msgspec is not enough: it keeps an equal value in another object, and inner structs may lack it.
    """
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, field), default) for field, name, default in _fields(type(value)))
        return {name: _without_defaults(found) for name, found, default in fields if found != default}
    if isinstance(value, (tuple, list)):
        return [_without_defaults(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_defaults(item) for name, item in value.items()}
    return value


@functools.cache
def _fields(kind: type[msgspec.Struct]) -> list[tuple[str, str, Any]]:
    """Name, name in JSON, and default of each field."""
    return [
        (
            field.name,
            field.encode_name,
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in msgspec.structs.fields(kind)
    ]


def cloudevent(event: Event, *, correlation_id: str, time: str) -> CloudEvent:
    """Wrap an event for sending. `time` is RFC 3339 text."""
    return CloudEvent(
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
