"""What DynamoDB refuses and moto lets pass. Checked on every request that the tests of core and orders send.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moto

Body = dict[str, Any]

# AWS's list of reserved words, as moto carries it.
RESERVED = set((Path(moto.__file__).parent / "dynamodb/parsing/reserved_keywords.txt").read_text().upper().split())
KEYWORDS = {"SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "IN", "BETWEEN"}
TOKEN = re.compile(r"[#:]?[A-Za-z_][A-Za-z0-9_]*")
ITEM_LIMIT = 400 * 1024  # bytes
TOKEN_LIMIT = 36  # characters of a client request token


def broken(operation: str, raw: bytes) -> Iterator[str]:
    """The rules that a request breaks, each in words."""
    if operation == "TransactWriteItems":
        yield from _broken_transaction(json.loads(raw))
    elif operation in ("UpdateItem", "PutItem", "DeleteItem", "GetItem", "Query"):
        yield from _broken_request(operation, json.loads(raw))


def _broken_transaction(body: Body) -> Iterator[str]:
    if not 1 <= len(body["ClientRequestToken"]) <= TOKEN_LIMIT:
        yield f"a token of {len(body['ClientRequestToken'])} characters"
    targets = []
    for entry in body["TransactItems"]:
        ((kind, inner),) = entry.items()
        yield from _broken_request(f"{kind}Item", inner)
        keys = ("id", "order_id", "row_id")
        targets.append((inner["TableName"], str(inner.get("Key") or {k: inner["Item"].get(k) for k in keys})))
    if len(set(targets)) < len(targets):
        yield f"two writes to one item: {targets}"
    if len(targets) > 100:
        yield f"{len(targets)} writes in one transaction"


def _broken_request(operation: str, body: Body) -> Iterator[str]:
    expressions = [text for name, text in body.items() if name.endswith("Expression")]
    tokens = {token for text in expressions for token in TOKEN.findall(text)}
    names, values = body.get("ExpressionAttributeNames", {}), body.get("ExpressionAttributeValues", {})
    if reserved := {token for token in tokens - KEYWORDS if token.upper() in RESERVED}:
        yield f"reserved words: {sorted(reserved)}"
    if undefined := {token for token in tokens if token[0] in "#:"} - names.keys() - values.keys():
        yield f"not defined: {sorted(undefined)}"
    if unused := (names.keys() | values.keys()) - tokens:
        yield f"defined and not used: {sorted(unused)}"
    paths = _paths(body.get("UpdateExpression", ""))
    if len(set(paths)) < len(paths):
        yield f"a path is changed twice: {sorted(paths)}"
    if "ReturnValuesOnConditionCheckFailure" in body and "ConditionExpression" not in body:
        yield "an old image is asked for without a condition"
    if operation in ("GetItem", "Query") and "ConditionExpression" in body:
        yield "a read with a condition"
    content: Body = body.get("Item") or values
    if sum(_size(name, value) for name, value in content.items()) > ITEM_LIMIT:
        yield "an item of more than 400 KB"
    if any(not key for value in body.get("Key", {}).values() for key in value.values()):
        yield "an empty key"


def _paths(update: str) -> list[str]:
    sets, _, removes = update.partition("REMOVE")
    return TOKEN.findall(removes) + re.findall(r"([#\w]+) = ", sets)


def _size(name: str, value: Any) -> int:
    return len(name.encode()) + len(json.dumps(value, ensure_ascii=False).encode())
