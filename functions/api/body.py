"""The body of POST /orders: read strictly, and what is wrong is named by field and rule, never by value."""

import base64
import functools
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec import inspect

from functions.api.http import Request
from functions.api.problems import Problem, Wrong
from shared.idempotency.events import BODY_LIMIT_BYTES, decode_as
from shared.orders.events import NewOrder

# The largest valid order is 15 KB of JSON. The rest is for blanks and escapes.
LIMIT_BYTES = BODY_LIMIT_BYTES
NAMED = 20  # of the fields that are not ours: an answer is not to grow with what is wrong

# For the fields whose rule is a pattern: what it means.
PATTERNS = {
    "name": "1 to 200 characters, no control characters and no line breaks",
    "email": "one plain mail address in ASCII",
    "currency": "an ISO 4217 code in capitals",
    "sku": "1 to 64 of A-Z a-z 0-9 . _ - and not one of . _ - in front",
    "payment_method": "pm_ and 1 to 64 of A-Z a-z 0-9 _",
}
OURS = {"order_id": "not sent: it is made here", "total": "not sent: it is computed from the items"}


@functools.cache
def _shape() -> inspect.Type:
    """Of an order: not while Lambda starts the worker, since to show one takes none."""
    return inspect.type_info(NewOrder)


def order_of(request: Request) -> NewOrder:
    """Raises Problem."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Problem(415, "not-json", "Unsupported media type", "Send the order as application/json.")
    try:
        # Before the body is encoded or decoded. Base64 makes four characters of three bytes.
        _require_size(len(request.body) // 4 * 3 - 2 if request.is_base64 else len(request.body))
        raw = _bytes_of(request)
        _require_size(len(raw))
        raw.decode()
    except UnicodeError as error:
        raise _invalid("The body is not UTF-8.") from error
    return _read(raw)


def _require_size(size: int) -> None:
    if size > LIMIT_BYTES:
        raise Problem(413, "too-large", "Content too large", f"An order has at most {LIMIT_BYTES} bytes of JSON.")


def _bytes_of(request: Request) -> bytes:
    if not request.is_base64:
        return request.body.encode()
    try:
        return base64.b64decode(request.body, validate=True)
    except ValueError as error:
        raise _invalid("The body is not Base64.") from error


def _read(raw: bytes) -> NewOrder:
    wrong: list[Wrong] = []
    try:
        try:
            order = decode_as(raw, NewOrder)
        except msgspec.ValidationError as error:
            wrong = [_broken(str(error))]
        # A misspelt or repeated field would be dropped in silence, and it may be the one that says how many.
        wrong = [*islice(_not_ours(raw), NAMED), *wrong]
    except (ValueError, RecursionError) as error:  # msgspec's and json's errors are ValueErrors
        raise _invalid("The body is not JSON, or nested too deep.") from error
    if wrong:
        raise _invalid("Each of `errors` names a field and the rule that it breaks.", wrong)
    return order


def _invalid(detail: str, wrong: list[Wrong] | None = None) -> Problem:
    detail += " Nothing was stored: the same key is free for the corrected order."
    return Problem(400, "invalid-order", "Invalid order", detail, errors=wrong or ())


def _broken(message: str) -> Wrong:
    """From msgspec's ``rule - at `$.path` ``, or `Object missing required field`."""
    rule, _, path = message.partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", rule):
        return Wrong(f"{field}.{missing[1]}".lstrip("."), "required")
    if " matching regex " in rule:
        rule = PATTERNS.get(field.rpartition(".")[2], "another form")
    # Only the kind of what was found may stay, which msgspec writes in backticks.
    return Wrong(field or "body", re.sub(r", got (?!`).*", "", rule))


def _not_ours(raw: bytes) -> Iterator[Wrong]:
    repeated: Counter[str] = Counter()

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = Counter(name for name, _ in pairs)
        repeated.update(name for name, count in names.items() if count > 1)
        return dict(pairs)

    yield from _unknown(json.loads(raw, object_pairs_hook=fields), _shape(), "")
    for name in repeated:
        yield Wrong(_shown(name), "given once")


def _unknown(value: Any, shape: inspect.Type, path: str) -> Iterator[Wrong]:
    """Fields that no struct on the way has."""
    match shape, value:
        case inspect.StructType(fields=fields), dict():
            shapes = {field.encode_name: field.type for field in fields}
            for name, inner in value.items():
                here = f"{path}.{_shown(name)}".lstrip(".")
                if name in shapes:
                    yield from _unknown(inner, shapes[name], here)
                else:
                    yield Wrong(here, OURS.get(here, "unknown field"))
        case (inspect.VarTupleType() | inspect.ListType()) as array, list():
            for n, inner in enumerate(value):
                yield from _unknown(inner, array.item_type, f"{path}[{n}]")
        case inspect.UnionType(types=types), _:
            for one in types:
                yield from _unknown(value, one, path)


def _shown(name: str) -> str:
    """A field's name as it came, but printable and not endless."""
    return name[:64].encode("ascii", "backslashreplace").decode()
