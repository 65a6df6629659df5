"""Waiting for something to come true, with a deadline: never a fixed sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(look: Callable[[], T | None], *, deadline_s: float, what: str, every_s: float = 0.1) -> T:
    """Call `look` until it gives something true, and return that.

    Raises TimeoutError after `deadline_s` seconds, saying what was waited for and what `look` gave last.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {deadline_s:.0f} s for {what}; last seen: {seen!r}")
        time.sleep(every_s)
