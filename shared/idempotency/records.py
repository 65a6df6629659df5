"""The idempotency record: its attributes, and what one that stands in the way means.

Names follow Powertools' table, so that people and tools who know it read ours at once:
https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/
Of ours: `owner`, `attempt`, `uncertain`, `unsettled`, `effect`, `outbox`, `correlation_id`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from shared.idempotency.errors import Busy, Damaged, KeyReused

INPROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"

Image: TypeAlias = Mapping[str, Any]  # an item as DynamoDB spells it: {"id": {"S": "…"}, …}

# Results are small structs. With event and outbox this keeps a record far below DynamoDB's 400 KB an item,
# which counts bytes of UTF-8.
RESULT_LIMIT_BYTES = 128 * 1024


class Claim(msgspec.Struct, frozen=True):
    """The right to do an effect, until the lease ends or another owner takes over."""

    key: str
    owner: str
    attempt: int  # counts the claims under this key
    uncertain: bool  # an earlier try ended without commit or release: its effect may have happened
    noted: str | None = None  # the result of an earlier try, as JSON, where its effect happened and its commit failed


class Duplicate(msgspec.Struct, frozen=True):
    """The request was done before: its result, as it was stored."""

    result: Any


def text(image: Image, name: str) -> str | None:
    """A string attribute, None where it is absent or of another type."""
    value = image.get(name, {}).get("S")
    return value if isinstance(value, str) else None


def number(image: Image, name: str) -> int | None:
    """A whole number, None where it is absent or of another type."""
    try:
        return int(image[name]["N"])
    except (KeyError, ValueError):
        return None


def flag(image: Image, name: str) -> bool:
    """A truth value, False where it is absent."""
    return image.get(name, {}).get("BOOL") is True


def claim_of(image: Image, key: str) -> Claim:
    """The claim that a record in progress grants its owner."""
    noted = noted_in(image, text(image, "validation") or "")
    return Claim(key, text(image, "owner") or "", number(image, "attempt") or 1, flag(image, "uncertain"), noted)


def effect_of(fingerprint: str, data: str) -> str:
    """A result as it is noted. With its request's fingerprint, since the note outlives an expired record."""
    return f"{fingerprint} {data}"


def noted_in(image: Image, fingerprint: str) -> str | None:
    """The result that was noted for this request."""
    noted_for, _, data = (text(image, "effect") or "").partition(" ")
    return data if data and noted_for == fingerprint else None


def judge(image: Image, *, key: str, fingerprint: str, now_ms: int) -> Duplicate:
    """What a record means that is not expired, not ours and not free to take. The fingerprint comes first.

    Raises KeyReused, Busy or Damaged.
    """
    found = text(image, "validation")
    if found is None:
        raise Damaged(f"{key} has no fingerprint")
    if found != fingerprint:
        raise KeyReused(f"{key} is taken by another request")
    status = text(image, "status")
    if status == COMPLETED:
        return Duplicate(decode_result(image, key))
    until_ms = number(image, "in_progress_expiration")
    if status != INPROGRESS or until_ms is None:
        raise Damaged(f"{key} has status {status} and lease {until_ms}")
    raise Busy(max(until_ms, now_ms))


def decode_result(image: Image, key: str) -> Any:
    """The stored result. Raises Damaged where there is none, or none that can be read."""
    data = text(image, "data")
    if data is None:
        raise Damaged(f"{key} is completed without a result")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{key} holds a result that is not JSON") from error


def encode_result(result: Any, key: str) -> str:
    """A result as JSON; one that can not be stored becomes a reference, since an effect must leave a record."""
    try:
        data = msgspec.json.encode(result)
        msgspec.json.decode(data)  # what can not be read again would be a damaged record
    except Exception as error:  # whatever it is: the effect has happened
        return _reference(key, type(error).__name__)
    if len(data) > RESULT_LIMIT_BYTES:
        return _reference(key, "too large")
    return data.decode()


def _reference(key: str, why: str) -> str:
    return msgspec.json.encode({"result_not_stored": why, "key": key}).decode()
