"""The table of faults: what was injected, by who suffered it, and what is armed to come next.

Written by the function before a fault strikes, so that a death is known too; read by whoever runs the demo.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.faults.plan import OPERATIONS, Fault, Kind

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ABSENT = "attribute_not_exists(id)"
_ARMED = "armed"


@dataclass(frozen=True)
class Injected:
    """A fault that struck. `message`: its id, since copies of one order's message may suffer alike."""

    lane: str
    function: str
    order: str
    receive: int
    call: int
    message: str
    kind: Kind
    at_ms: int
    pid: int

    @property
    def id(self) -> str:
        """One fault for each time that a message is received, and for each record of a stream."""
        return "#".join((self.lane, self.function, self.order, str(self.receive), self.message))


@dataclass(frozen=True)
class Faults:
    """One table for all lanes. Raises botocore's errors."""

    client: "DynamoDBClient"
    table: str

    def arm(self, lane: str, function: str, fault: Fault) -> None:
        """Let the lane's next invocation that has an order meet this fault, instead of what was planned for it.

        Replaces what was armed before and did not strike. Raises ValueError for a fault that can not come there.
        """
        if fault.kind not in OPERATIONS[function].kinds or (fault.call is None and not OPERATIONS[function].effect):
            raise ValueError(f"{fault} can not strike in {function}")
        self.client.put_item(TableName=self.table, Item=_armed(lane, function, fault))

    def take(self, lane: str, function: str) -> Fault | None:
        """Take what is armed: of workers that ask at once, one gets it."""
        key = {"id": {"S": _armed_id(lane, function)}}
        old = self.client.delete_item(TableName=self.table, Key=key, ReturnValues="ALL_OLD").get("Attributes")
        if old is None:
            return None
        return Fault(Kind(old["kind"]["S"]), int(old["call"]["N"]) if "call" in old else None)

    def put_back(self, lane: str, function: str, fault: Fault) -> None:
        """What was taken and had no occasion to strike; not if something else was armed meanwhile."""
        self._put_new(_armed(lane, function, fault))

    def note(self, injected: Injected) -> bool:
        """Note a fault that is about to strike. False if it has struck before: once is enough."""
        item: dict[str, Any] = {
            **{name: {"S": getattr(injected, name)} for name in ("id", "lane", "function", "order", "message")},
            **{name: {"N": str(getattr(injected, name))} for name in ("receive", "call", "at_ms", "pid")},
            "kind": {"S": injected.kind.value},
        }
        return self._put_new(item)

    def injected(self, lane: str | None = None) -> Iterator[Injected]:
        """All faults that struck, in any order; of one lane, if it is named."""
        for page in self.client.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True):
            for item in page["Items"]:
                if not item["id"]["S"].startswith(f"{_ARMED}#") and lane in (None, item["lane"]["S"]):
                    yield _read(item)

    def _put_new(self, item: dict[str, Any]) -> bool:
        try:
            self.client.put_item(TableName=self.table, Item=item, ConditionExpression=_ABSENT)
        except self.client.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _armed(lane: str, function: str, fault: Fault) -> dict[str, Any]:
    call = {} if fault.call is None else {"call": {"N": str(fault.call)}}
    return {"id": {"S": _armed_id(lane, function)}, "kind": {"S": fault.kind.value}, **call}


def _armed_id(lane: str, function: str) -> str:
    return f"{_ARMED}#{lane}#{function}"


def _read(item: Mapping[str, Any]) -> Injected:
    texts: dict[str, Any] = {name: item[name]["S"] for name in ("lane", "function", "order", "message")}
    numbers: dict[str, Any] = {name: int(item[name]["N"]) for name in ("receive", "call", "at_ms", "pid")}
    return Injected(**texts, **numbers, kind=Kind(item["kind"]["S"]))
