"""The idempotency record: its attributes, and what an existing record means for a new request.

Attribute names follow the table of Powertools, so that people and tools that know it can read this one:
https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/
This layer adds `owner`, `attempt`, `uncertain`, `unsettled`, `effect`, `outbox` and `correlation_id`.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from .errors import Busy, Damaged, KeyReused

INPROGRESS = "INPROGRESS"
COMPLETED = "COMPLETED"

Image: TypeAlias = Mapping[str, Any]  # an item in DynamoDB's JSON: {"id": {"S": "…"}, …}

# Results are small structs. With event and outbox this limit keeps a record far below DynamoDB's 400 KB an item,
# which counts bytes of UTF-8.
RESULT_LIMIT_BYTES = 128 * 1024


class Claim(msgspec.Struct, frozen=True):
    """The right to perform an effect, until the lease expires or another owner takes over."""

    key: str
    owner: str
    attempt: int  # the number of claims under this key so far
    uncertain: bool  # an earlier attempt ended without commit or release: its effect may have happened
    saved_result: str | None = None  # JSON of an earlier attempt whose effect happened and whose commit failed


class StoredResult(msgspec.Struct, frozen=True):
    """The request was done before. This is the result that was stored then."""

    result: Any


def text(image: Image, name: str) -> str | None:
    """Return a string attribute, or None if it is absent or of another type."""
    value = image.get(name, {}).get("S")
    return value if isinstance(value, str) else None


def number(image: Image, name: str) -> int | None:
    """Return a whole number, or None if the attribute is absent or of another type."""
    try:
        return int(image[name]["N"])
    except (KeyError, ValueError):
        return None


def flag(image: Image, name: str) -> bool:
    """Return a truth value, or False if the attribute is absent."""
    return image.get(name, {}).get("BOOL") is True


def claim_of(image: Image, key: str) -> Claim:
    """Return the claim that a record in progress grants to its owner."""
    saved_result = saved_result_of(image, text(image, "validation") or "")
    return Claim(key, text(image, "owner") or "", number(image, "attempt") or 1, flag(image, "uncertain"), saved_result)


def saved_result_attribute(fingerprint: str, data: str) -> str:
    """Return the text of attribute `effect`. It names its request, because it outlives an expired record."""
    return f"{fingerprint} {data}"


def saved_result_of(image: Image, fingerprint: str) -> str | None:
    """Return the result that was saved for this request, as JSON."""
    saved_for, _, data = (text(image, "effect") or "").partition(" ")
    return data if data and saved_for == fingerprint else None


def resolve_existing_record(image: Image, *, key: str, fingerprint: str, now_ms: int) -> StoredResult:
    """Return the stored result of a record that has another owner and cannot be claimed.

    The fingerprint is compared before anything else, unless the record is expired: then only its lease, by a worker
    whose clock is ahead, keeps the key from being claimed. Raises KeyReused, Busy or Damaged.
    """
    expires_s, until_ms = number(image, "expiration"), number(image, "in_progress_expiration")
    if expires_s is not None and expires_s <= now_ms // 1000 and until_ms is not None and until_ms > now_ms:
        raise Busy(until_ms)
    found = text(image, "validation")
    if found is None:
        raise Damaged(f"{key} has no fingerprint")
    if found != fingerprint:
        raise KeyReused(f"{key} is taken by another request")
    status = text(image, "status")
    if status == COMPLETED:
        return StoredResult(decode_result(image, key))
    if status != INPROGRESS or until_ms is None:
        raise Damaged(f"{key} has status {status} and lease {until_ms}")
    raise Busy(max(until_ms, now_ms))


def decode_result(image: Image, key: str) -> Any:
    """Return the stored result. Raises Damaged if there is no result or it is not JSON."""
    data = text(image, "data")
    if data is None:
        raise Damaged(f"{key} is completed without a result")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Damaged(f"{key} holds a result that is not JSON") from error


def encode_result(result: Any, key: str) -> str:
    """Encode a result as JSON. A result that cannot be stored becomes a reference: an effect must leave a record."""
    try:
        data = msgspec.json.encode(result)
        msgspec.json.decode(data)  # a result that cannot be decoded would be a damaged record
    except Exception as error:  # any error: the effect has happened
        return _reference(key, type(error).__name__)
    if len(data) > RESULT_LIMIT_BYTES:
        return _reference(key, "too large")
    return data.decode()


def _reference(key: str, why: str) -> str:
    return msgspec.json.encode({"result_not_stored": why, "key": key}).decode()
