"""Plan which messages meet which fault, from a seed. The plan is the same in every variant and in any order."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of faults at a call."""

    DIE_BEFORE = "die_before"  # the worker dies before the request is sent
    DIE_AFTER = "die_after"  # the worker dies when the answer has arrived
    ANSWER_LOST = "answer_lost"  # the request is executed, and the client sees a timeout
    THROTTLED = "throttled"  # the request is refused and not executed
    SLOW = "slow"  # the request is executed after the client's timeout
    ERROR_BEFORE = "error_before"  # a 5xx, not executed
    ERROR_AFTER = "error_after"  # executed, and a 5xx
    STALLED = "stalled"  # the worker stalls past its lease, its message is delivered again, and it continues


@dataclass(frozen=True)
class Fault:
    """`call` is the number of the call of a message, from 1. None is the call with the outside effect."""

    kind: Kind
    call: int | None = None


@dataclass(frozen=True)
class Operation:
    """A step of the pipeline, in any variant. Faults happen at one of the first `calls` calls."""

    calls: int
    effect: bool = False  # it charges or emails: half of its faults happen at that call

    @property
    def kinds(self) -> Sequence[Kind]:
        """Possible faults, weighted by repetition. Only a step with a lease can stall past it."""
        return _DEATHS + _TROUBLES + ((Kind.STALLED,) if self.effect else ())


_DEATHS = (Kind.DIE_BEFORE, Kind.DIE_BEFORE, Kind.DIE_AFTER, Kind.DIE_AFTER, Kind.DIE_AFTER)
_TROUBLES = (Kind.ANSWER_LOST, Kind.THROTTLED, Kind.SLOW, Kind.ERROR_BEFORE, Kind.ERROR_AFTER)

# The largest number of calls among the variants. A message with fewer calls meets fewer faults.
OPERATIONS = {
    "order": Operation(calls=3),
    "payment": Operation(calls=6, effect=True),
    "email": Operation(calls=5, effect=True),
    # A record of the stream meets its fault at the request that sends its event, in the middle of a batch.
    "relay": Operation(calls=1),
}


def plan(seed: int, percent: float, operation: str, order: str, receive: int) -> Fault | None:
    """The fault that one receive of an order's message meets in an operation, if any.

    `percent` of first receives meet a fault, and half as many of later receives, so that every order ends.
    """
    drawn = hashlib.sha256(f"{seed}/{operation}/{order}/{receive}".encode()).digest()
    chance, kind, place, call = (int.from_bytes(drawn[at : at + 8]) / 2**64 for at in (0, 8, 16, 24))
    if chance * 100 >= (percent if receive == 1 else percent / 2):
        return None
    here = OPERATIONS[operation]
    at_effect = here.effect and place < 0.5
    return Fault(_pick(here.kinds, kind), None if at_effect else 1 + int(call * here.calls))


def _pick(kinds: Sequence[Kind], drawn: float) -> Kind:
    return kinds[int(drawn * len(kinds))]
