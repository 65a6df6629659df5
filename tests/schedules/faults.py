"""The faults of one request. Each has a code of one character for schedule strings."""

import enum

from tests.schedules.model import Call


class Fault(enum.Enum):
    """The value is the code."""

    NONE = ""
    DIES_BEFORE = "!"  # the worker dies before the request is sent
    DIES_AFTER = "+"  # the worker dies after the request was applied
    ANSWER_LOST = "?"  # applied; the worker gets no answer and may send the request again
    THROTTLED = "%"  # refused, nothing applied
    CONFLICT = "&"  # DynamoDB: another transaction held the item, nothing applied
    HALF = "/"  # a batch whose first entry is refused; or the provider dies with the key in flight
    STALLS = "~"  # the worker stalls before the request until its lease is over, then it may continue
    # A late request is applied at a later move of the explorer, or never.
    LATE = "@"  # no answer, so that the worker may send the request again; the request is late
    DIES_LATE = "^"  # the worker dies, and its request is late
    COPIED = "="  # DynamoDB: applied and answered, and a copy of the request is late


MAKE_LATE = frozenset({Fault.LATE, Fault.DIES_LATE, Fault.COPIED})


_READS = {"GetItem", "Query", "GetSecretValue"}


def possible(call: Call) -> tuple[Fault, ...]:
    """Return the possible faults of a request.

    A read applies nothing, so a death after it equals a death before it, and a late read equals a lost answer.
    """
    if call.operation in _READS or call.operation.startswith("GET "):
        return Fault.DIES_BEFORE, Fault.ANSWER_LOST, Fault.THROTTLED, Fault.STALLS
    every = (
        *(Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.ANSWER_LOST, Fault.THROTTLED, Fault.STALLS),
        *(Fault.LATE, Fault.DIES_LATE),
    )
    if call.service == "dynamodb":
        return *every, Fault.CONFLICT, Fault.COPIED
    if call.service == "provider" or call.operation == "SendMessageBatch":
        return *every, Fault.HALF
    return every
