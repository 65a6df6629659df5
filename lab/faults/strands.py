"""Whose request it is: the messages of one invocation, told apart by their order ids."""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.faults.plan import Fault

RECEIVED_BEFORE = "received_before"  # a message's attribute: its receives before it was put back from a DLQ


@dataclass
class Strand:
    """All that an invocation does about one order. `fault` is that of its `message`'s `receive`; `calls`: so far."""

    order: str
    receive: int
    message: str
    fault: Fault | None
    names: set[str]
    receipt: str | None = None  # of the message
    calls: int = 0
    struck: bool = False

    def is_named_in(self, text: str) -> bool:
        """Whole words only: ord_1 is not named by ord_12."""
        return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in self.names)

    def meets(self, effect: bool) -> bool:
        """Whether its fault may strike at this call: the stated one, or a later one if another fault was first."""
        if self.fault is None or self.struck:
            return False
        return effect if self.fault.call is None else self.calls >= self.fault.call


Draw = Callable[[str, int], Fault | None]  # of an order and a receive


def strands_of(event: Mapping[str, Any], draw: Draw) -> list[Strand]:
    """The strands of a batch of SQS messages or stream records; copies of one order are one, with the first's fault.

    A stream does not count how often it has delivered a record: each is its first.
    """
    strands: dict[str, Strand] = {}
    for record in event.get("Records", ()):
        order = _order_in(record)
        if order is None:
            continue
        receive = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)) + _before(record)
        message = record.get("messageId") or record["eventID"]
        strand = Strand(order, receive, message, draw(order, receive), {order}, record.get("receiptHandle"))
        known = strands.get(order)
        if known and (known.fault or not strand.fault):
            strand, known = known, strand
        if known:
            strand.names |= known.names
        if "messageId" in record:
            strand.names.add(message)  # which some handlers take for the key
        strands[order] = strand
    return list(strands.values())


def _before(record: Mapping[str, Any]) -> int:
    """A replay starts SQS's count anew, and would meet the same faults for ever."""
    return int(record.get("messageAttributes", {}).get(RECEIVED_BEFORE, {}).get("stringValue", 0))


def _order_in(record: Mapping[str, Any]) -> str | None:
    if "dynamodb" in record:  # an idempotency record, `<operation>#<order id>`
        key: str = record["dynamodb"]["Keys"]["id"]["S"]
        return key.partition("#")[2] or None
    try:
        order = json.loads(record["body"])["data"]["order_id"]
    except (ValueError, KeyError, TypeError):
        return None  # garbage: the handler's affair
    return order if isinstance(order, str) and order else None


class Attribution:
    """Finds a request's strands: those that it names; if none, those that the same thread's request before named.

    The confirmation of a payment names the intent only, but comes from the thread that has just created or read it.
    """

    def __init__(self, strands: Sequence[Strand]) -> None:
        self.strands = strands
        self._last: dict[int, list[Strand]] = {}
        self._counting = threading.Lock()

    def due(self, text: str, effect: bool) -> list[Strand]:
        """Count a request that is about to be sent; the strands whose fault may strike now."""
        with self._counting:
            thread = threading.get_ident()
            named = [strand for strand in self.strands if strand.is_named_in(text)]
            self._last[thread] = strands = named or self._last.get(thread, [])
            for strand in strands:
                strand.calls += 1
            return [strand for strand in strands if strand.meets(effect)]
