"""One thread takes snapshots while a page is open. Every page gets the changes since its last event.

There are no queues: a slow page skips states. Two states are stored, whatever the number of pages.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from lab.console.page_state import Plain, SuspicionTimer, changes, page_state
from lab.console.snapshot import Snapshot

EVERY_S = 1.0  # between two snapshots
JOIN_S = 2.0
PING_S = 10.0  # the page reports a lost connection after a longer silence


class EventStream:
    """`read` is called by the thread of this object only. Call `start` before a page connects."""

    def __init__(self, read: Callable[[], Snapshot], every_s: float = EVERY_S, ping_s: float = PING_S) -> None:
        self._read = read
        self._every_s = every_s
        self._ping_s = ping_s
        self._suspicions = SuspicionTimer()
        self._lock = threading.Condition()
        self._watchers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._ended = False
        self._hurry = threading.Event()
        self.snapshot: Snapshot | None = None
        self.shown: Plain | None = None
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="console-look", daemon=True)

    def start(self) -> None:
        """Start the thread, once."""
        self._thread.start()

    def release(self) -> None:
        """End all streams, for good."""
        with self._lock:
            self._ended = True
            self._lock.notify_all()
        self._tell()
        self._hurry.set()

    def stop(self) -> None:
        """End the thread and all streams. A snapshot that hangs is not awaited: it only reads."""
        self.release()
        self._thread.join(JOIN_S)

    def refresh_soon(self) -> None:
        """Take the next snapshot now."""
        self._hurry.set()

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """Yield kind and data of events: `change`, `trouble` (empty if it is over) or `ping`."""
        news, before, trouble = asyncio.Event(), None, ""
        with self._lock:
            self._watchers[news] = asyncio.get_running_loop()
            self._lock.notify_all()
        self._hurry.set()
        try:
            while not self._ended:
                if self.trouble != trouble:
                    trouble = self.trouble
                    yield "trouble", trouble
                now = self.shown
                change = changes(before, now) if now is not None else None
                if change is not None:
                    before = now
                    yield "change", change
                try:
                    await asyncio.wait_for(news.wait(), self._ping_s)
                except TimeoutError:
                    yield "ping", ""
                news.clear()
        finally:
            with self._lock:
                del self._watchers[news]

    def _run(self) -> None:
        while self._has_watchers():
            self._hurry.clear()
            try:
                snapshot = self._read()
                shown = page_state(snapshot, time.time_ns() // 1_000_000, self._suspicions)
            except Exception as error:  # the page shows it, and the next snapshot may succeed
                self.trouble = f"{type(error).__name__}: {error}"
            else:
                self.snapshot, self.shown, self.trouble = snapshot, shown, ""
            self._tell()
            self._hurry.wait(self._every_s)

    def _has_watchers(self) -> bool:
        with self._lock:
            self._lock.wait_for(lambda: self._watchers or self._ended)
            return not self._ended

    def _tell(self) -> None:
        with self._lock:
            for news, loop in self._watchers.items():
                loop.call_soon_threadsafe(news.set)
