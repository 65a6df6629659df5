"""One thread looks while somebody watches; every page is told what changed since it was last told something.

No queues: a slow page skips what it was too slow for. So what is kept is two moments, however many watch.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from lab.console.look import Sight
from lab.console.view import Patience, Plain, changes, snapshot

EVERY_S = 1.0  # between two looks
JOIN_S = 2.0
PING_S = 10.0  # a page that hears nothing for longer takes itself for disconnected


class Feed:
    """`look` is called by its thread only. Start it before anybody watches."""

    def __init__(self, look: Callable[[], Sight], every_s: float = EVERY_S, ping_s: float = PING_S) -> None:
        self._look = look
        self._every_s = every_s
        self._ping_s = ping_s
        self._patience = Patience()
        self._lock = threading.Condition()
        self._watchers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._ended = False
        self._hurry = threading.Event()
        self.sight: Sight | None = None
        self.shown: Plain | None = None
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="console-look", daemon=True)

    def start(self) -> None:
        """Once."""
        self._thread.start()

    def release(self) -> None:
        """Let all who watch go; for good."""
        with self._lock:
            self._ended = True
            self._lock.notify_all()
        self._tell()
        self._hurry.set()

    def stop(self) -> None:
        """End the thread and all that watch. A look that hangs is not waited for: it only reads."""
        self.release()
        self._thread.join(JOIN_S)

    def look_soon(self) -> None:
        """Something was done: do not wait for the next look."""
        self._hurry.set()

    async def changes(self) -> AsyncGenerator[tuple[str, Any], None]:
        """Kind and data of what a page is told: `change`, `trouble` (empty: it is over) or `ping`."""
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
                told = changes(before, now) if now is not None else None
                if told is not None:
                    before = now
                    yield "change", told
                try:
                    await asyncio.wait_for(news.wait(), self._ping_s)
                except TimeoutError:
                    yield "ping", ""
                news.clear()
        finally:
            with self._lock:
                del self._watchers[news]

    def _run(self) -> None:
        while self._somebody_watches():
            self._hurry.clear()
            try:
                sight = self._look()
                shown = snapshot(sight, time.time_ns() // 1_000_000, self._patience)
            except Exception as error:  # whatever it is, the page says so, and the next look may succeed
                self.trouble = f"{type(error).__name__}: {error}"
            else:
                self.sight, self.shown, self.trouble = sight, shown, ""
            self._tell()
            self._hurry.wait(self._every_s)

    def _somebody_watches(self) -> bool:
        with self._lock:
            self._lock.wait_for(lambda: self._watchers or self._ended)
            return not self._ended

    def _tell(self) -> None:
        with self._lock:
            for news, loop in self._watchers.items():
                loop.call_soon_threadsafe(news.set)
