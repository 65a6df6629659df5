"""Assign the requests of one invocation to orders, by the order ids in the requests."""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.faults.plan import Fault

RECEIVED_BEFORE = "received_before"  # message attribute: receives before the message returned from a DLQ


@dataclass
class OrderCalls:
    """The calls of an invocation for one order, so far. `fault` belongs to this receive of the message."""

    order: str
    receive: int
    message: str
    fault: Fault | None
    names: set[str]
    receipt: str | None = None  # of the message
    calls: int = 0
    applied: bool = False

    def is_named_in(self, text: str) -> bool:
        """Whether the text contains a name as a whole word: ord_12 does not contain ord_1."""
        return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for name in self.names)

    def meets(self, effect: bool) -> bool:
        """Whether the fault may be applied at this call: the planned one, or a later one after another fault."""
        if self.fault is None or self.applied:
            return False
        return effect if self.fault.call is None else self.calls >= self.fault.call


Draw = Callable[[str, int], Fault | None]  # from an order id and a receive count


def order_calls_of(event: Mapping[str, Any], draw: Draw) -> list[OrderCalls]:
    """The orders of a batch of SQS messages or stream records. Copies of an order are one, with the first fault.

    A stream record has no receive count: every delivery counts as the first.
    """
    all_calls: dict[str, OrderCalls] = {}
    for record in event.get("Records", ()):
        order = _order_in(record)
        if order is None:
            continue
        receive = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)) + _before(record)
        message = record.get("messageId") or record["eventID"]
        order_calls = OrderCalls(order, receive, message, draw(order, receive), {order}, record.get("receiptHandle"))
        known = all_calls.get(order)
        if known and (known.fault or not order_calls.fault):
            order_calls, known = known, order_calls
        if known:
            order_calls.names |= known.names
        if "messageId" in record:
            order_calls.names.add(message)  # some handlers use the message id as the key
        all_calls[order] = order_calls
    return list(all_calls.values())


def _before(record: Mapping[str, Any]) -> int:
    """Receives before a replay. SQS counts from 1 again, and the message would meet the same faults forever."""
    return int(record.get("messageAttributes", {}).get(RECEIVED_BEFORE, {}).get("stringValue", 0))


def _order_in(record: Mapping[str, Any]) -> str | None:
    if "dynamodb" in record:  # an idempotency record, `<operation>#<order id>`
        key: str = record["dynamodb"]["Keys"]["id"]["S"]
        return key.partition("#")[2] or None
    try:
        order = json.loads(record["body"])["data"]["order_id"]
    except (ValueError, KeyError, TypeError):
        return None  # not an order: the handler decides
    return order if isinstance(order, str) and order else None


class Attribution:
    """Finds the orders of a request: those that it names, or else those of the previous request of the same thread.

    The confirmation of a payment names only the intent. The same thread has created or read the intent just before.
    """

    def __init__(self, all_calls: Sequence[OrderCalls]) -> None:
        self.all_calls = all_calls
        self._last: dict[int, list[OrderCalls]] = {}
        self._counting = threading.Lock()

    def due(self, text: str, effect: bool) -> list[OrderCalls]:
        """Count a request before it is sent. Returns the orders whose fault may be applied now."""
        with self._counting:
            thread = threading.get_ident()
            named = [order_calls for order_calls in self.all_calls if order_calls.is_named_in(text)]
            self._last[thread] = all_calls = named or self._last.get(thread, [])
            for order_calls in all_calls:
                order_calls.calls += 1
            return [order_calls for order_calls in all_calls if order_calls.meets(effect)]
