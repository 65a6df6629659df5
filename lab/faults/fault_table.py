"""The table of faults: the faults that were injected, and those that are armed for the next invocation.

A function writes to it before a fault is applied, so that a death is recorded too. The demo reads it.
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
class InjectedFault:
    """A fault that was applied. `message` is the message id: copies of an order may meet the same fault."""

    variant: str
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
        """The id. A message meets one fault for each receive, a record of a stream one in total."""
        return "#".join((self.variant, self.function, self.order, str(self.receive), self.message))


@dataclass(frozen=True)
class FaultTable:
    """Access to the table, which all variants share. Raises botocore's errors."""

    client: "DynamoDBClient"
    table: str

    def arm(self, variant: str, function: str, fault: Fault) -> None:
        """Arm a fault: the next invocation of the function with an order meets it instead of a planned fault.

        Replaces an armed fault that was not applied yet. Raises ValueError if the fault cannot happen there.
        """
        if fault.kind not in OPERATIONS[function].kinds or (fault.call is None and not OPERATIONS[function].effect):
            raise ValueError(f"{fault} cannot happen in {function}")
        self.client.put_item(TableName=self.table, Item=_armed(variant, function, fault))

    def take(self, variant: str, function: str) -> Fault | None:
        """Take the armed fault. Only one of several workers gets it."""
        key = {"id": {"S": _armed_id(variant, function)}}
        old = self.client.delete_item(TableName=self.table, Key=key, ReturnValues="ALL_OLD").get("Attributes")
        if old is None:
            return None
        return Fault(Kind(old["kind"]["S"]), int(old["call"]["N"]) if "call" in old else None)

    def put_back(self, variant: str, function: str, fault: Fault) -> None:
        """Arm a fault again that was taken and not applied, unless another fault is armed now."""
        self._put_new(_armed(variant, function, fault))

    def record(self, injected: InjectedFault) -> bool:
        """Record a fault before it is applied. Returns False if it was applied before."""
        item: dict[str, Any] = {
            **{name: {"S": getattr(injected, name)} for name in ("id", "variant", "function", "order", "message")},
            **{name: {"N": str(getattr(injected, name))} for name in ("receive", "call", "at_ms", "pid")},
            "kind": {"S": injected.kind.value},
        }
        return self._put_new(item)

    def injected(self, variant: str | None = None) -> Iterator[InjectedFault]:
        """All applied faults, in any order, or those of one variant."""
        for page in self.client.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True):
            for item in page["Items"]:
                if not item["id"]["S"].startswith(f"{_ARMED}#") and variant in (None, item["variant"]["S"]):
                    yield _parse(item)

    def _put_new(self, item: dict[str, Any]) -> bool:
        try:
            self.client.put_item(TableName=self.table, Item=item, ConditionExpression=_ABSENT)
        except self.client.exceptions.ConditionalCheckFailedException:
            return False
        return True


def _armed(variant: str, function: str, fault: Fault) -> dict[str, Any]:
    call = {} if fault.call is None else {"call": {"N": str(fault.call)}}
    return {"id": {"S": _armed_id(variant, function)}, "kind": {"S": fault.kind.value}, **call}


def _armed_id(variant: str, function: str) -> str:
    return f"{_ARMED}#{variant}#{function}"


def _parse(item: Mapping[str, Any]) -> InjectedFault:
    texts: dict[str, Any] = {name: item[name]["S"] for name in ("variant", "function", "order", "message")}
    numbers: dict[str, Any] = {name: int(item[name]["N"]) for name in ("receive", "call", "at_ms", "pid")}
    return InjectedFault(**texts, **numbers, kind=Kind(item["kind"]["S"]))
