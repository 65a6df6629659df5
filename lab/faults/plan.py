"""Which messages meet a fault, and which: drawn from a seed. Same seed, same plan, in every lane and any order."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What happens at a call."""

    DIE_BEFORE = "die_before"  # killed before the request is sent
    DIE_AFTER = "die_after"  # killed when its answer is there
    ANSWER_LOST = "answer_lost"  # carried out, and the client sees a timeout
    THROTTLED = "throttled"  # refused, not carried out
    SLOW = "slow"  # as late as the client's patience, then carried out
    ERROR_BEFORE = "error_before"  # a 5xx, not carried out
    ERROR_AFTER = "error_after"  # carried out, and a 5xx
    STALLED = "stalled"  # stands still past its lease; its message is delivered again; goes on as a zombie


@dataclass(frozen=True)
class Fault:
    """`call`: at which of a message's calls, counted from 1; None: at the one with the outside effect."""

    kind: Kind
    call: int | None = None


@dataclass(frozen=True)
class Operation:
    """One step of the pipeline, whoever wrote it. `calls`: faults strike up to this one."""

    calls: int
    effect: bool = False  # it charges or mails: half of its faults strike just there

    @property
    def kinds(self) -> Sequence[Kind]:
        """What may happen to it, each as often as it stands here. Only what has a lease can stall past one."""
        return _DEATHS + _TROUBLES + ((Kind.STALLED,) if self.effect else ())


_DEATHS = (Kind.DIE_BEFORE, Kind.DIE_BEFORE, Kind.DIE_AFTER, Kind.DIE_AFTER, Kind.DIE_AFTER)
_TROUBLES = (Kind.ANSWER_LOST, Kind.THROTTLED, Kind.SLOW, Kind.ERROR_BEFORE, Kind.ERROR_AFTER)

# Calls of the longer ones among the lanes: a message that makes fewer meets fewer faults, and only what was met counts.
OPERATIONS = {
    "order": Operation(calls=3),
    "payment": Operation(calls=6, effect=True),
    "email": Operation(calls=5, effect=True),
    # A record of the stream meets one at the request that carries its event on, in the middle of the relay's batch.
    "relay": Operation(calls=1),
}


def plan(seed: int, percent: float, operation: str, order: str, receive: int) -> Fault | None:
    """The fault that this receive of an order's message meets in an operation, if any.

    `percent` of all first receives meet one, and half as many of each later one, so that all come to an end.
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
