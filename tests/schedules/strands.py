"""Threads of which one runs at a time: each hands the baton back when it is about to send a request.

A strand is a thread of a worker process; a process is one invocation of a handler. Whoever holds the baton runs
alone, so neither the model nor the search needs a lock.
"""

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from tests.unit.world import Killed


class Strand:
    """A thread that runs only between `resume` and its next `park`."""

    def __init__(self, process: "Process", name: str, function: Callable[[], object]) -> None:
        self.process = process
        self.name = name
        self.parked_at: Any = None  # what it wants to send next
        self.ended = False
        self.ids = 0  # how many ids it has made: they are deterministic, and its own
        self.inside = False  # in the provider's code, whose requests are not ours to interrupt
        self.past = b""  # a digest of all that it has seen: it decides what the strand does next
        self._function = function
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._order: Any = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def resume(self, order: Any = None) -> None:
        """Let it run until it parks or ends. `order` is what its `park` returns."""
        self._order = order
        self._go.release()
        self._back.acquire()

    def park(self, wants: Any) -> Any:
        """Called by the strand itself: hand the baton back, and wait for an order."""
        self.parked_at = wants
        self._back.release()
        self._go.acquire()
        self.parked_at = None
        return self._order

    def _run(self) -> None:
        self._go.acquire()
        _local.strand = self
        try:
            if not self.process.dead:
                self._function()
        except Killed:
            self.process.dead = True
        except BaseException as error:  # the explorer reports it
            self.process.crashed = error
        finally:
            self.ended = True
            self._back.release()

    def saw(self, *seen: object) -> None:
        """Add to its past."""
        self.past = hashlib.blake2b(self.past + repr(seen).encode(), digest_size=16).digest()

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

_local = threading.local()


def current() -> Strand:
    """The strand that runs now."""
    strand: Strand = _local.strand
    return strand


def maybe_current() -> Strand | None:
    """The strand that runs now; None in the explorer's own thread."""
    return getattr(_local, "strand", None)


class Pool:
    """Stands for ThreadPoolExecutor, whose threads become strands. A pool of one runs in its caller, as in a queue of one."""

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
