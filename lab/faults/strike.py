"""What each kind of fault does to a request."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from lab.faults.hooks import Exchange
from lab.faults.plan import Kind


def die() -> NoReturn:
    """End this process as the kernel ends one: no handler runs, nothing is flushed, nobody is told."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("the process is gone")


@dataclass(frozen=True)
class Machine:
    """What a fault needs of the machine; tests bring another. Times in seconds."""

    die: Callable[[], NoReturn] = die
    sleep: Callable[[float], None] = time.sleep
    elapsed: Callable[[], float] = time.monotonic


THIS = Machine()

THROTTLED = 429, "ThrottlingException"
FAILED = 500, "InternalServerError"


def strike(kind: Kind, exchange: Exchange, machine: Machine, *, slow_s: float, stall_s: float) -> Any:
    """Carry the request out as the fault has it; answers or raises what the caller's library would.

    `slow_s`, `stall_s`: how long a slow call is late, and a stalled one.
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
            _ = exchange.send().content  # read, so that the connection serves again
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
