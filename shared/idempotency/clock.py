"""The one place of the pipeline that reads time. Tests hand in another clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Time as the core sees it."""

    def now_ms(self) -> int:
        """Epoch milliseconds."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def iso(now_ms: int) -> str:
    """RFC 3339 text of a time in epoch milliseconds, UTC, to the millisecond."""
    seconds, ms = divmod(now_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03d}Z"


SYSTEM: Clock = SystemClock()
