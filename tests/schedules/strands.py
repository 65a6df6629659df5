"""Threads of which one runs at a time: each hands the baton back when it is about to send a request.

A strand is a thread of a worker process; a process is one invocation of a handler. Strands are greenlets: a switch
between them costs a microsecond, is exact, and leaves nothing to the machine's scheduler.
https://greenlet.readthedocs.io/
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import greenlet  # type: ignore[import-untyped]

from tests.harness.interceptor import Killed
from tests.schedules.dynamodb import digest


class Strand:
    """A thread, as far as production code can tell; it runs only between `resume` and its next `park`."""

    def __init__(self, process: "Process", name: str, function: Callable[[], object]) -> None:
        self.process = process
        self.name = name
        self.parked_at: Any = None  # what it wants to send next
        self.ended = False
        self.ids = 0  # how many ids it has made: they are deterministic, and its own
        self.inside = False  # in the provider's code, whose requests are not ours to interrupt
        self.past = b""  # a digest of all that it has seen: it decides what the strand does next
        self._fiber = _Fiber(self, function)

    def resume(self, order: Any = None) -> None:
        """Let it run until it parks or ends. `order` is what its `park` returns."""
        self._fiber.parent = greenlet.getcurrent()
        self._fiber.switch(order)

    def park(self, wants: Any) -> Any:
        """Called by the strand itself: hand the baton back, and wait for an order."""
        self.parked_at = wants
        parent = self._fiber.parent
        assert parent is not None
        order = parent.switch()
        self.parked_at = None
        return order

    def run(self, function: Callable[[], object]) -> None:
        """All of its life."""
        try:
            if not self.process.dead:
                function()
        except Killed:
            self.process.dead = True
        except BaseException as error:  # the explorer reports it
            self.process.crashed = error
        finally:
            self.ended = True

    def saw(self, *seen: object) -> None:
        """Add to its past."""
        self.past = digest(self.past + repr(seen).encode())

    def new_id(self) -> str:
        """An id that depends on this strand's own past only."""
        self.ids += 1
        return f"{self.name}{self.ids}"


@dataclass
class Process:
    """One invocation: its strands live and die together."""

    name: str
    deadline_ms: int
    strands: list[Strand] = field(default_factory=list)
    dead: bool = False
    returned: bool = False
    result: Any = None
    crashed: BaseException | None = None
    stalled: bool = False
    skew_ms: int = 0  # how far its clock is off
    provider: Any = None  # what it caches: its payment provider's client

    def start(self, handler: Callable[[], Any]) -> None:
        """Run the handler up to its first request."""

        def body() -> None:
            self.result = handler()
            self.returned = True

        self.spawn(body).resume()

    def spawn(self, function: Callable[[], object]) -> Strand:
        """Another thread of this process."""
        strand = Strand(self, self.name + ("" if not self.strands else str(len(self.strands))), function)
        self.strands.append(strand)
        return strand

    @property
    def parked(self) -> list[Strand]:
        """Strands that wait for the baton."""
        return [strand for strand in self.strands if strand.parked_at is not None]

    @property
    def over(self) -> bool:
        """It has returned, raised or died."""
        return self.dead or self.returned or self.crashed is not None

    def end(self) -> None:
        """The process is gone: every strand is unwound, and sends nothing on its way."""
        self.dead = True
        for strand in self.strands:
            while strand.parked_at is not None:
                strand.resume(Killed())


JOIN = object()  # what a strand parks at that waits for others of its process


class _Fiber(greenlet.greenlet):  # type: ignore[misc]
    """The strand's own stack; its parent is whoever handed it the baton."""

    def __init__(self, strand: Strand, function: Callable[[], object]) -> None:
        super().__init__(lambda _: strand.run(function))
        self.strand = strand


def current() -> Strand:
    """The strand that runs now."""
    strand: Strand = greenlet.getcurrent().strand
    return strand


def maybe_current() -> Strand | None:
    """The strand that runs now; None in the explorer itself."""
    return getattr(greenlet.getcurrent(), "strand", None)


class Pool:
    """Stands for ThreadPoolExecutor, whose threads become strands. A pool of one runs in its caller: the same order."""

    def __init__(self, max_workers: int) -> None:
        self._owner = current()
        self._inline = max_workers == 1
        self._started: list[Strand] = []

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
            strand = self._owner.process.spawn(body)
            self._started.append(strand)
            strand.resume()
        return future

    def shutdown(self, wait: bool = True) -> None:
        while wait and not all(strand.ended for strand in self._started):
            order = self._owner.park(JOIN)
            if isinstance(order, BaseException):
                raise order

    def __enter__(self) -> "Pool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
