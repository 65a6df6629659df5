"""Helpers for the tests of the layer, with steps of their own that send parcels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from shared.idempotency import Attempt, Effect, Event, Image, NotDone, Outcome, Step, StepError, Write, no_guard, step
from shared.idempotency.records import Claim, StoredResult
from tests.harness.layer_world import ROWS_TABLE, World

KEY = "op#1"
FINGERPRINT = "v1:a"
TTL_S = 30 * 86400

Item = dict[str, Any]


class ParcelWanted(Event, frozen=True, omit_defaults=True, kw_only=True):
    """Somebody wants a parcel of this weight."""

    type: ClassVar[str] = "parcel.wanted"
    source: ClassVar[str] = "tests"

    parcel_id: str
    weight: int = 1
    note: Annotated[str, Meta(max_length=100)] | None = None

    @property
    def subject(self) -> str:
        return self.parcel_id


class ParcelSent(ParcelWanted, frozen=True, omit_defaults=True, kw_only=True):
    """It is on its way."""

    type: ClassVar[str] = "parcel.sent"


Function = Callable[[ParcelWanted, Attempt], Outcome]


def external(function: Function) -> Step[ParcelWanted]:
    """Make a step with an external effect and without a guard."""

    @step(
        "parcel.send", event=ParcelWanted, key=lambda wanted: wanted.parcel_id, effect=Effect.EXTERNAL, guard=no_guard
    )
    def send(event: ParcelWanted, attempt: Attempt, _: None) -> Outcome:
        return function(event, attempt)

    return send


def internal(function: Function) -> Step[ParcelWanted]:
    """A step without one."""
    return step("parcel.note", event=ParcelWanted, key=lambda event: event.parcel_id, effect=Effect.NONE)(function)


def does(end: Outcome | Exception) -> Function:
    """Make a step's function that ends so."""

    def function(_: ParcelWanted, __: Attempt) -> Outcome:
        if isinstance(end, Exception):
            raise end
        return end

    return function


def wanted(parcel_id: str = "p1", **data: Any) -> ParcelWanted:
    return ParcelWanted(parcel_id=parcel_id, **data)


def deadline(world: World, seconds: float = 20) -> int:
    return world.clock.now_ms() + int(seconds * 1000)


def claim(
    world: World, owner: str = "me", *, fingerprint: str = FINGERPRINT, lease_s: float = 30, seconds: float = 20
) -> Claim | StoredResult:
    return world.store.claim(
        KEY,
        fingerprint,
        owner=owner,
        lease_until_ms=deadline(world, lease_s),
        correlation_id="c-1",
        deadline_ms=deadline(world, seconds),
    )


def acquire(world: World, owner: str = "me") -> Claim:
    """Claim what is known to be free."""
    claimed = claim(world, owner)
    assert isinstance(claimed, Claim)
    return claimed


def commit(
    world: World,
    claimed: Claim,
    writes: Sequence[Write] = (),
    *,
    data: str = '"mine"',
    outbox: str | None = None,
    seconds: float = 20,
) -> bool:
    return world.store.commit(claimed, data, outbox, writes, deadline(world, seconds))


def once(
    world: World,
    owner: str = "me",
    writes: Sequence[Write] = (),
    *,
    fingerprint: str = FINGERPRINT,
    data: str = '"mine"',
    outbox: str | None = None,
    seconds: float = 20,
) -> StoredResult | bool:
    return world.store.once(
        KEY,
        fingerprint,
        owner=owner,
        data=data,
        outbox=outbox,
        writes=writes,
        correlation_id="c-1",
        deadline_ms=deadline(world, seconds),
    )


def release(world: World, claimed: Claim, *, forget: bool = False, seconds: float = 20) -> None:
    world.store.release(claimed, forget=forget, deadline_ms=deadline(world, seconds))


def spelled(plain: Mapping[str, Any]) -> Item:
    """Plain values in DynamoDB's spelling; None is left out."""
    kinds = {bool: "BOOL", int: "N", str: "S"}
    return {
        name: {kinds[type(value)]: str(value) if type(value) is int else value}
        for name, value in plain.items()
        if value is not None
    }


def plain(item: Image | None) -> Item:
    """The other way; nothing for no item."""
    readers: dict[str, Callable[[Any], Any]] = {"N": int, "S": str, "BOOL": bool}
    return {name: readers[kind](content) for name, value in (item or {}).items() for kind, content in value.items()}


def put_record(world: World, key: str = KEY, **attributes: Any) -> Item:
    """A record of another owner, in progress with a running lease unless told otherwise; None leaves one out."""
    now = world.clock.now_ms()
    record = {
        "id": key,
        "status": "INPROGRESS",
        "owner": "other",
        "validation": FINGERPRINT,
        "expiration": now // 1000 + TTL_S,
        "in_progress_expiration": now + 30_000,
        "attempt": 1,
        "uncertain": False,
        "unsettled": True,
    }
    item = spelled(record | attributes)
    world.dynamodb.put_item(TableName="idempotency", Item=item)
    return item


def completed(**attributes: Any) -> Item:
    """Attributes of a completed record, for put_record."""
    return {"status": "COMPLETED", "unsettled": False, "data": '"theirs"', "outbox": "[]"} | attributes


def record(world: World, key: str = KEY) -> Item:
    """The record in plain values; empty where there is none."""
    return plain(world.record(key))


def write(row: str = "row", facts: str = "mine") -> Write:
    """A business write: a row that must be new. Refused by the same facts it is done, by others it is not."""

    def judge(image: Image | None) -> StepError | None:
        return None if image and image["facts"]["S"] == facts else NotDone(f"{row} holds {plain(image)}")

    item = spelled({"row_id": row, "facts": facts})
    put = {"TableName": ROWS_TABLE, "Item": item, "ConditionExpression": "attribute_not_exists(row_id)"}
    return Write({"Put": put}, judge)


def put_row(world: World, row: str = "row", facts: str = "mine") -> None:
    world.dynamodb.put_item(TableName=ROWS_TABLE, Item=spelled({"row_id": row, "facts": facts}))


def row(world: World, name: str = "row") -> str | None:
    """The facts that a row holds."""
    return plain(world.item(ROWS_TABLE, {"row_id": {"S": name}})).get("facts")


Ready = Callable[[float], object]  # a call that only needs to be told how many seconds it has


@dataclass(frozen=True)
class Call:
    """One of the store's calls."""

    name: str
    operation: str  # as DynamoDB calls it
    prepare: Callable[[World], Ready]

    def __str__(self) -> str:
        return self.name


def _claim(world: World) -> Ready:
    return lambda seconds: claim(world, seconds=seconds)


def _commit(*writes: Write) -> Callable[[World], Ready]:
    def prepare(world: World) -> Ready:
        claimed = acquire(world)
        return lambda seconds: commit(world, claimed, writes, outbox="[]", seconds=seconds)

    return prepare


def _release(world: World) -> Ready:
    claimed = acquire(world)
    return lambda seconds: release(world, claimed, seconds=seconds)


def _note(world: World) -> Ready:
    claimed = acquire(world)
    return lambda seconds: world.store.save_result(claimed, FINGERPRINT, '"mine"', deadline_ms=deadline(world, seconds))


def _once(world: World) -> Ready:
    return lambda seconds: once(world, "me", [write()], seconds=seconds)


CALLS = [
    Call("claim", "UpdateItem", _claim),
    Call("commit alone", "UpdateItem", _commit()),
    Call("commit with writes", "TransactWriteItems", _commit(write())),
    Call("release", "UpdateItem", _release),
    Call("note", "UpdateItem", _note),
    Call("once", "TransactWriteItems", _once),
]
TRANSACTIONS = [call for call in CALLS if call.operation == "TransactWriteItems"]
