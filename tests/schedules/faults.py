"""What can go wrong with one request. Each fault has a one-character code for schedule strings."""

import enum

from tests.schedules.model import Call


class Fault(enum.Enum):
    """The value is the code."""

    NONE = ""
    DIES_BEFORE = "!"  # the worker dies before the request is sent
    DIES_AFTER = "+"  # the worker dies after the request was applied
    ANSWER_LOST = "?"  # applied, the worker learns nothing; the code may send it again
    THROTTLED = "%"  # refused, nothing applied
    CONFLICT = "&"  # DynamoDB: another transaction held the item, nothing applied
    HALF = "/"  # a batch of which the first entry is refused; the provider dies with the key in flight
    STALLS = "~"  # the worker freezes before the request until its lease is over, then it may go on


_READS = {"GetItem", "Query", "GetSecretValue"}


def possible(call: Call) -> tuple[Fault, ...]:
    """What can go wrong with this request. A death after a read is one before it: nothing was applied."""
    if call.operation in _READS or call.operation.startswith("GET "):
        return Fault.DIES_BEFORE, Fault.ANSWER_LOST, Fault.THROTTLED, Fault.STALLS
    every = (Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.ANSWER_LOST, Fault.THROTTLED, Fault.STALLS)
    if call.service == "dynamodb":
        return *every, Fault.CONFLICT
    if call.service == "provider" or call.operation == "SendMessageBatch":
        return *every, Fault.HALF
    return every
