"""An exact DynamoDB in memory: conditions, old images, transactions that are all or nothing, client request tokens.

One caller at a time (the explorer's baton sees to that). Checked against moto and MiniStack by test_model.py.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from tests.schedules import expressions
from tests.schedules.expressions import Invalid, Item, Names, Unmodelled

TOKEN_LIFE_MS = 10 * 60 * 1000
ITEM_LIMIT_BYTES = 400 * 1024

Key: TypeAlias = tuple[str, ...]


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, code: str, message: str = "", **more: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.body = {"Message": message or code, **more}


@dataclass(frozen=True)
class Change:
    """One item, before and after; None where there is none."""

    table: str
    key: Key
    old: Item | None
    new: Item | None
    digest: bytes = b""  # of the new one


@dataclass(frozen=True)
class Schema:
    """A table's key attributes, all strings; an index's are any."""

    key: tuple[str, ...]
    indexes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Tables:
    """All tables. `applied` is told of each request that changed something."""

    schemas: Mapping[str, Schema]
    now_ms: Callable[[], int]
    applied: Callable[[list[Change]], None] = lambda _: None
    items: dict[str, dict[Key, Item]] = field(default_factory=dict)
    # token → when it was used, for what
    tokens: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    # table → item → its mark, and the sum of all marks: two tables with equal sums have equal items
    marks: dict[str, dict[Key, int]] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    tokens_sum: int = 0

    def __post_init__(self) -> None:
        self.items = {table: {} for table in self.schemas}
        self.marks = {table: {} for table in self.schemas}
        self.sums = dict.fromkeys(self.schemas, 0)

    def save(self) -> Any:
        """Return a copy of everything, for `restore`. No write changes an item in place."""
        items, marks = (
            {table: dict(content) for table, content in every.items()} for every in (self.items, self.marks)
        )
        return items, marks, dict(self.sums), dict(self.tokens), self.tokens_sum

    def restore(self, saved: Any) -> None:
        """Return to what was saved."""
        items, marks, sums, tokens, self.tokens_sum = saved
        self.items, self.marks = (
            {table: dict(content) for table, content in every.items()} for every in (items, marks)
        )
        self.sums, self.tokens = dict(sums), dict(tokens)

    def place(self, table: str, key: Key, item: Item | None, spelled: bytes = b"") -> None:
        """Put an item under its key, or remove it. `spelled`: the digest of the item."""
        marks = self.marks[table]
        if item is None:
            self.items[table].pop(key, None)
            mark = 0
        else:
            self.items[table][key] = item
            mark = _mark(key, spelled or digest(spell(item)))
        self.sums[table] ^= marks.pop(key, 0) ^ mark
        if mark:
            marks[key] = mark

    def use_token(self, token: str, wanted: bytes) -> None:
        """Note that a transaction was made now under a token."""
        if token in self.tokens:
            self.tokens_sum ^= _mark(token, *self.tokens[token])
        self.tokens[token] = (self.now_ms(), wanted)
        self.tokens_sum ^= _mark(token, *self.tokens[token])

    def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request. Raises Refused."""
        handler = _OPERATIONS.get(operation)
        if handler is None:
            raise Unmodelled(f"DynamoDB {operation}")
        try:
            return handler(self, request)
        except Invalid as error:
            raise Refused("ValidationException", str(error)) from error

    # Single items

    def get_item(self, request: dict[str, Any]) -> dict[str, Any]:
        _known(request, "TableName", "Key", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames")
        item = self._table(request).get(self._key(request["TableName"], request["Key"], exact=True))
        _check_placeholders(request)
        if item is None:
            return {}
        return {"Item": _project(request, item)}

    def write_item(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        wants = request.get("ReturnValues", "NONE")
        change = self._prepare(kind, request)
        if isinstance(change, Refused):
            raise change
        self._apply([change])
        if wants == "ALL_OLD":
            return {"Attributes": dict(change.old)} if change.old else {}
        if wants == "ALL_NEW" and kind == "Update" and change.new:
            return {"Attributes": dict(change.new)}
        if wants != "NONE":
            raise Unmodelled(f"ReturnValues {wants} of {kind}")
        return {}

    def transact(self, request: dict[str, Any]) -> dict[str, Any]:
        _known(request, "TransactItems", "ClientRequestToken")
        token = request.get("ClientRequestToken")
        if token is not None and not 1 <= len(token) <= 36:
            raise Invalid("ClientRequestToken must have 1 to 36 characters")
        wanted = digest(msgspec.json.encode(request["TransactItems"], order="sorted"))
        if token in self.tokens and self.now_ms() - self.tokens[token][0] < TOKEN_LIFE_MS:
            if self.tokens[token][1] != wanted:
                raise Refused("IdempotentParameterMismatchException", "the token was used for another request")
            return {}
        if not 1 <= len(request["TransactItems"]) <= 100:
            raise Invalid("1 to 100 items")
        entries = [next(iter(entry.items())) for entry in request["TransactItems"]]
        keys = [(body["TableName"], self._key_of(kind, body)) for kind, body in entries]
        if len(set(keys)) != len(keys):
            raise Invalid("Transaction request cannot include multiple operations on one item")
        changes = [self._prepare(kind, body) for kind, body in entries]
        if any(isinstance(change, Refused) for change in changes):
            codes = [_reason(change) for change in changes]
            named = ", ".join(reason["Code"] for reason in codes)
            raise Refused(
                "TransactionCanceledException",
                f"Transaction cancelled, please refer cancellation reasons for specific reasons [{named}]",
                CancellationReasons=codes,
            )
        self._apply([change for change in changes if isinstance(change, Change)])
        if token is not None:
            self.use_token(token, wanted)
        return {}

    # Many items

    def query(self, request: dict[str, Any]) -> dict[str, Any]:
        schema = self.schemas[request["TableName"]]
        key = schema.indexes[request["IndexName"]] if "IndexName" in request else schema.key
        names = _names(request)
        wanted = expressions.condition(request["KeyConditionExpression"]).run
        found = [item for item in self._table(request).values() if all(name in item for name in key)]
        found = [item for item in found if wanted(item, names)]
        found.sort(key=lambda item: [expressions._ordered(item[name]) for name in (*key, *schema.key)])
        if request.get("ScanIndexForward") is False:
            found.reverse()
        return self._page(request, found, (*key, *(name for name in schema.key if name not in key)))

    def scan(self, request: dict[str, Any]) -> dict[str, Any]:
        schema = self.schemas[request["TableName"]]
        return self._page(request, list(self._table(request).values()), schema.key)

    def _page(self, request: dict[str, Any], found: list[Item], key: tuple[str, ...]) -> dict[str, Any]:
        _known(
            request,
            *("TableName", "IndexName", "KeyConditionExpression", "FilterExpression", "ProjectionExpression"),
            *("ExpressionAttributeNames", "ExpressionAttributeValues", "ScanIndexForward", "ConsistentRead", "Limit"),
            "ExclusiveStartKey",
        )
        _check_placeholders(request)
        start = request.get("ExclusiveStartKey")
        if start:
            keys = [{name: item[name] for name in key} for item in found]
            if start not in keys:
                raise Unmodelled("a page that starts after an item that is gone")
            found = found[keys.index(start) + 1 :]
        limit = request.get("Limit", len(found) + 1)
        more = {"LastEvaluatedKey": {name: found[limit - 1][name] for name in key}} if len(found) >= limit else {}
        found = found[:limit]
        if "FilterExpression" in request:
            keep = expressions.condition(request["FilterExpression"]).run
            kept = [item for item in found if keep(item, _names(request))]
        else:
            kept = found
        return {
            "Items": [_project(request, item) for item in kept],
            "Count": len(kept),
            "ScannedCount": len(found),
            **more,
        }

    # Inside

    def _prepare(self, kind: str, request: dict[str, Any]) -> Change | Refused:
        """The change that a write means, or its refusal by condition. Raises Invalid."""
        _known(request, *_WRITES[kind])
        _check_placeholders(request)
        table, key = request["TableName"], self._key_of(kind, request)
        old = self._table(request).get(key)
        names = _names(request)
        if "ConditionExpression" in request:
            holds = expressions.condition(request["ConditionExpression"]).run(old or {}, names)
            if not holds:
                wanted = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old
                more = {"Item": dict(old)} if wanted and old else {}
                return Refused("ConditionalCheckFailedException", "The conditional request failed", **more)
        match kind:
            case "Put":
                new: Item | None = _canonical(request["Item"])
            case "Update":
                base = dict(old) if old else dict(request["Key"])
                run = expressions.update(request["UpdateExpression"]).run if "UpdateExpression" in request else None
                changed = run(base, names) if run else base
                if any(changed.get(name) != base[name] for name in self.schemas[table].key):
                    raise Invalid("an attribute of the key can not be updated")
                new = _canonical(changed)
            case "Delete":
                new = None
            case _:
                new = old  # ConditionCheck
        spelled = spell(new) if new is not None else b""
        if len(spelled) > ITEM_LIMIT_BYTES:
            raise Invalid("Item size has exceeded the maximum allowed size")
        return Change(table, key, old, new, digest(spelled))

    def _apply(self, changes: list[Change]) -> None:
        for change in changes:
            self.place(change.table, change.key, change.new, change.digest)
        real = [change for change in changes if change.old is not change.new]
        if real:
            self.applied(real)

    def _table(self, request: dict[str, Any]) -> dict[Key, Item]:
        if request["TableName"] not in self.items:
            raise Refused("ResourceNotFoundException", "Requested resource not found")
        return self.items[request["TableName"]]

    def _key_of(self, kind: str, request: dict[str, Any]) -> Key:
        self._table(request)
        return self._key(request["TableName"], request["Item" if kind == "Put" else "Key"], exact=kind != "Put")

    def _key(self, table: str, attributes: Item, *, exact: bool) -> Key:
        wanted = self.schemas[table].key
        if exact and set(attributes) != set(wanted):
            raise Invalid("The provided key element does not match the schema")
        values = [attributes.get(name, {}).get("S") for name in wanted]
        if any(not isinstance(value, str) or not value for value in values):
            raise Invalid("One or more parameter values were invalid: a key is missing, empty or of another type")
        return tuple(str(value) for value in values)


_COMMON = ("TableName", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
_SINGLE = ("ReturnValues", "ReturnValuesOnConditionCheckFailure")
_WRITES = {
    "Put": (*_COMMON, *_SINGLE, "Item"),
    "Update": (*_COMMON, *_SINGLE, "Key", "UpdateExpression"),
    "Delete": (*_COMMON, *_SINGLE, "Key"),
    "ConditionCheck": (*_COMMON, *_SINGLE, "Key"),
}
_OPERATIONS: dict[str, Callable[[Tables, dict[str, Any]], dict[str, Any]]] = {
    "GetItem": Tables.get_item,
    "PutItem": lambda tables, request: tables.write_item("Put", request),
    "UpdateItem": lambda tables, request: tables.write_item("Update", request),
    "DeleteItem": lambda tables, request: tables.write_item("Delete", request),
    "TransactWriteItems": Tables.transact,
    "Query": Tables.query,
    "Scan": Tables.scan,
}
_EXPRESSIONS: dict[str, Callable[[str], expressions.Parsed]] = {
    "ConditionExpression": expressions.condition,
    "KeyConditionExpression": expressions.condition,
    "FilterExpression": expressions.condition,
    "UpdateExpression": expressions.update,
    "ProjectionExpression": expressions.projection,
}


def _known(request: dict[str, Any], *names: str) -> None:
    if unknown := set(request) - set(names):
        raise Unmodelled(f"parameters {sorted(unknown)}")


def _names(request: dict[str, Any]) -> Names:
    return Names(request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {}))


def _check_placeholders(request: dict[str, Any]) -> None:
    """DynamoDB refuses a placeholder that no expression uses, and one that nothing defines."""
    used = {use for name, parse in _EXPRESSIONS.items() if name in request for use in parse(request[name]).uses}
    given = {*request.get("ExpressionAttributeNames", {}), *request.get("ExpressionAttributeValues", {})}
    if used != given:
        raise Invalid(f"placeholders unused or undefined: {sorted(used ^ given)}")


def _project(request: dict[str, Any], item: Item) -> dict[str, Any]:
    if "ProjectionExpression" not in request:
        return dict(item)
    projected: dict[str, Any] = expressions.projection(request["ProjectionExpression"]).run(item, _names(request))
    return projected


def _reason(change: Change | Refused) -> dict[str, Any]:
    if isinstance(change, Change):
        return {"Code": "None"}
    return {"Code": "ConditionalCheckFailed", **change.body}


def _canonical(item: Item) -> Item:
    """Numbers as DynamoDB keeps them."""
    return {name: _canonical_value(value) for name, value in item.items()}


def _canonical_value(value: dict[str, Any]) -> dict[str, Any]:
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return {"N": expressions.number(content)}
        case "M":
            return {"M": {name: _canonical_value(inner) for name, inner in content.items()}}
        case "L":
            return {"L": [_canonical_value(inner) for inner in content]}
        case "S" | "BOOL" | "NULL":
            return value
        case _:
            raise Unmodelled(f"attribute type {kind}")


def spell(item: Item) -> bytes:
    """An item as text; its length is about what DynamoDB counts, names and values in UTF-8."""
    return msgspec.json.encode(item, order="sorted")


def _mark(*content: object) -> int:
    return int.from_bytes(digest(repr(content).encode()))


def digest(content: bytes) -> bytes:
    """Short, and the same for the same content only."""
    return hashlib.blake2b(content, digest_size=16).digest()
