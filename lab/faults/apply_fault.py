"""Apply a fault to a request."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from lab.faults.hooks import Exchange
from lab.faults.plan import Kind


def die() -> NoReturn:
    """Kill this process: no handler runs and nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process is gone")


@dataclass(frozen=True)
class Machine:
    """Functions of the machine that a fault uses. Tests replace them. Times in seconds."""

    die: Callable[[], NoReturn] = die
    sleep: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic


THIS = Machine()

THROTTLED = 429, "ThrottlingException"
FAILED = 500, "InternalServerError"


def apply_fault(kind: Kind, exchange: Exchange, machine: Machine, *, slow_s: float, stall_s: float) -> Any:
    """Apply a fault to a request. Returns or raises what the caller's library would.

    `slow_s` and `stall_s` are the delays of a slow and of a stalled call.
    """
    match kind:
        case Kind.DIE_BEFORE:
            machine.die()
        case Kind.DIE_AFTER:
            try:
                exchange.send()
            finally:
                machine.die()
        case Kind.ANSWER_LOST:
            _ = exchange.send().content  # read the body, so that the connection can be reused
            raise exchange.timeout()
        case Kind.ERROR_AFTER:
            _ = exchange.send().content
            return exchange.answer(*FAILED)
        case Kind.ERROR_BEFORE:
            return exchange.answer(*FAILED)
        case Kind.THROTTLED:
            return exchange.answer(*THROTTLED)
        case Kind.SLOW:
            machine.sleep(slow_s)
        case Kind.STALLED:
            machine.sleep(stall_s)
    return exchange.send()
