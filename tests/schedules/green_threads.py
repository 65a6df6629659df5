"""Green threads: one runs at a time, and each stops before it sends a request.

A process is one invocation of a handler, and a green thread is a thread of that process. Green threads are greenlets: a
switch takes a microsecond and does not depend on the scheduler of the machine. https://greenlet.readthedocs.io/
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import greenlet  # type: ignore[import-untyped]

from tests.harness.interceptor import Killed


class GreenThread:
    """A thread of production code. It runs only between `resume` and its next `park`."""

    def __init__(self, process: "LiveProcess", name: str, function: Callable[[], object]) -> None:
        self.process = process
        self.name = name
        self.parked_at: Any = None  # what it wants to send next
        self.ended = False
        self.ids = 0  # how many ids it has made: they are deterministic, and its own
        self.inside = False  # what it sends is answered at once, and is no request of the schedule
        self._fiber = _Fiber(self, function)

    def resume(self, order: Any = None) -> None:
        """Run the thread until it parks or ends. Its `park` returns `order`."""
        self._fiber.parent = greenlet.getcurrent()
        self._fiber.switch(order)

    def park(self, wants: Any) -> Any:
        """Stop, and return the order of the next `resume`. Only the thread itself calls this."""
        self.parked_at = wants
        parent = self._fiber.parent
        assert parent is not None
        order = parent.switch()
        self.parked_at = None
        return order

    def ask(self, request: Any) -> Any:
        """Return the answer to a request of the thread. Raises Killed."""
        if self.process.dead:
            raise Killed
        answer = self.park(request)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def run(self, function: Callable[[], object]) -> None:
        """Run the function of the thread, from start to end."""
        try:
            if not self.process.dead:
                function()
        except Killed:
            self.process.dead = True
        except BaseException as error:  # the explorer reports it
            self.process.crashed = error
        finally:
            self.ended = True

    def new_id(self) -> str:
        """An id that depends on this thread's own past only."""
        self.ids += 1
        return f"{self.name}{self.ids}"


@dataclass
class LiveProcess:
    """One invocation that runs: its threads live and die together."""

    name: str
    skew_ms: int = 0  # how far its clock is off
    warm: bool = True  # it has already fetched the provider's API key
    threads: list[GreenThread] = field(default_factory=list)
    dead: bool = False
    returned: bool = False
    result: Any = None
    crashed: BaseException | None = None
    provider: Any = None  # what it caches: its payment provider's client

    def start(self, handler: Callable[[], Any]) -> None:
        """Run the handler up to its first request."""

        def body() -> None:
            self.result = handler()
            self.returned = True

        self.spawn(body).resume()

    def spawn(self, function: Callable[[], object]) -> GreenThread:
        """Another thread of this process."""
        thread = GreenThread(self, self.name + ("" if not self.threads else str(len(self.threads))), function)
        self.threads.append(thread)
        return thread

    @property
    def over(self) -> bool:
        """It has returned, raised or died."""
        return self.dead or self.returned or self.crashed is not None

    def end(self) -> None:
        """End the process: unwind every thread. No thread sends anything on its way out."""
        self.dead = True
        for thread in self.threads:
            while thread.parked_at is not None:
                thread.resume(Killed())


JOIN = object()  # what a thread parks at that waits for others of its process


class _Fiber(greenlet.greenlet):  # type: ignore[misc]
    """The stack of a thread. The parent is the greenlet that resumed the thread."""

    def __init__(self, thread: GreenThread, function: Callable[[], object]) -> None:
        super().__init__(lambda _: thread.run(function))
        self.thread = thread


def current() -> GreenThread:
    """The thread that runs now."""
    thread: GreenThread = greenlet.getcurrent().thread
    return thread


def maybe_current() -> GreenThread | None:
    """The thread that runs now; None in the explorer itself."""
    return getattr(greenlet.getcurrent(), "thread", None)


class Pool:
    """Replaces ThreadPoolExecutor by green threads. A pool of one runs its functions in the caller, in order."""

    def __init__(self, max_workers: int) -> None:
        self._owner = current()
        self._inline = max_workers == 1
        self._started: list[GreenThread] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()

        def body() -> None:
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)

        if self._inline:
            body()
        else:
            thread = self._owner.process.spawn(body)
            self._started.append(thread)
            thread.resume()
        return future

    def shutdown(self, wait: bool = True) -> None:
        while wait and not all(thread.ended for thread in self._started):
            self._owner.ask(JOIN)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
