"""Runs of the production handlers, each of which is run once for each sequence of answers.

A handler that gets the same event and the same answers at the same times sends the same requests: everything else is
under the explorer's control. So a run is recorded request by request, and a schedule that repeats the answers uses the
record. If a schedule continues a recorded run in a new way, the handler is run again with the recorded answers up to
that point, and must send the recorded requests. Otherwise Diverged is raised.
"""

import copy
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.harness.interceptor import FakeClock
from tests.schedules.dynamodb import digest
from tests.schedules.expressions import Unmodelled
from tests.schedules.facts import Facts
from tests.schedules.green_threads import JOIN, LiveProcess
from tests.schedules.model import Answer

LIVE = 64  # handlers that wait for an answer, ready to continue
MOMENTS = 100_000  # recorded at a time: then the record begins anew, so that the memory suffices

Handler: TypeAlias = Callable[[dict[str, Any], Any], Any]
Effect: TypeAlias = Callable[[Facts], None]
Input: TypeAlias = tuple[
    str, Answer | None, int
]  # thread, its answer or None for no answer, time in epoch milliseconds


class Diverged(AssertionError):
    """A schedule cannot be repeated: something is not under the explorer's control."""


class Environment(Protocol):
    """What a handler needs around it."""

    @property
    def clock(self) -> FakeClock:
        """The clock of the schedule."""

    def handler(self, function: str) -> Handler:
        """Return the production handler of a function."""

    def enter(self, function: str, effects: list[Effect]) -> None:
        """Set the environment of a function before a thread of its process continues. Observations go to `effects`."""


@dataclass(frozen=True)
class Deadline:
    """Lambda's context. Lambda's clock ends the worker, not the clock of the worker."""

    clock: FakeClock
    deadline_ms: int
    aws_request_id: str = "request"
    function_name: str = "function"

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the deadline."""
        return self.deadline_ms - self.clock.ms


@dataclass(frozen=True)
class Start:
    """Everything that decides the first request. Times in milliseconds. `skew_ms`: the error of the worker's clock."""

    function: str
    name: str
    start_ms: int
    deadline_ms: int
    skew_ms: int
    warm: bool
    event: dict[str, Any] = field(compare=False)
    event_digest: bytes = b""


@dataclass(eq=False, slots=True)
class Moment:
    """A handler at rest: it waits for answers, or has ended."""

    start: Start
    before: "Moment | None"
    input: Input | None  # what led here from the moment before
    waits: tuple[tuple[str, Any, bool], ...]  # thread, the request that it waits for, whether it has ended
    effects: tuple[Effect, ...]  # what was observed on the way here
    slept_ms: int  # on the way here
    returned: bool
    result: Any
    crashed: BaseException | None
    after: dict[Input, "Moment"] = field(default_factory=dict)
    live: LiveProcess | None = None


class HandlerRuns:
    """The recorded runs, and the handlers that wait at the ends of the record."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._clock = environment.clock
        self._starts: dict[Hashable, Moment] = {}
        self._moments = 0
        self._waiting: deque[Moment] = deque()  # with a live process, the oldest first

    def start(self, start: Start) -> Moment:
        """Return the moment of the first request."""
        if start not in self._starts:
            if self._moments > MOMENTS:
                self._moments = 0
                self._starts.clear()
            self._starts[start] = self._start(start)
        return self._starts[start]

    def go_on(self, moment: Moment, name: str, answer: Answer | None) -> Moment:
        """Return the next moment after a thread got its answer. None: there was no answer in time."""
        entered: Input = (name, answer, self._clock.ms)
        found = moment.after.get(entered)
        if found is None:
            process, moment.live = moment.live or self._again(moment), None
            found = moment.after[entered] = self._go_on(moment, process, entered)
        return found

    def close(self) -> None:
        """End all handlers that wait."""
        for moment in self._waiting:
            if moment.live:
                moment.live.end()
                moment.live = None
        self._waiting.clear()

    def _start(self, start: Start) -> Moment:
        process = LiveProcess(start.name, start.skew_ms, start.warm)
        handler = self._environment.handler(start.function)
        context = Deadline(self._clock, start.deadline_ms)
        event = copy.deepcopy(start.event)
        return self._run(process, start, None, None, lambda: process.start(lambda: handler(event, context)))

    def _go_on(self, moment: Moment, process: LiveProcess, entered: Input) -> Moment:
        name, answer, _ = entered
        thread = next(thread for thread in process.threads if thread.name == name)
        return self._run(process, moment.start, moment, entered, lambda: thread.resume(answer))

    def _run(
        self, process: LiveProcess, start: Start, before: Moment | None, entered: Input | None, go: Callable[[], None]
    ) -> Moment:
        """Let the handler run to its next requests. Time goes on only in the schedule: see Moment.slept_ms."""
        effects: list[Effect] = []
        begun_ms = self._clock.ms
        self._environment.enter(start.function, effects)
        go()
        slept_ms, self._clock.ms = self._clock.ms - begun_ms, begun_ms
        waits = tuple((thread.name, thread.parked_at, thread.ended) for thread in process.threads)
        if isinstance(process.crashed, (AssertionError, Unmodelled)):
            raise process.crashed
        if process.crashed is not None:
            process.crashed.__traceback__ = process.crashed.__context__ = process.crashed.__cause__ = None
        moment = Moment(
            *(start, before, entered, waits, tuple(effects), slept_ms),
            *(process.returned, process.result, process.crashed),
        )
        self._moments += 1
        if process.over:
            process.end()
        else:
            moment.live = process
            self._waiting.append(moment)
            if len(self._waiting) > LIVE:
                oldest = self._waiting.popleft()
                if oldest.live:
                    oldest.live.end()
                    oldest.live = None
        return moment

    def _again(self, moment: Moment) -> LiveProcess:
        """Run the handler again up to a moment."""
        way = [moment]
        while way[-1].before is not None:
            way.append(way[-1].before)
        now_ms = self._clock.ms
        try:
            repeated: Moment | None = None
            while way:
                recorded = way.pop()
                if repeated is None or recorded.input is None:
                    self._clock.ms = recorded.start.start_ms
                    repeated = self._start(recorded.start)
                else:
                    self._clock.ms = recorded.input[2]
                    assert repeated.live
                    process, repeated.live = repeated.live, None
                    repeated = self._go_on(repeated, process, recorded.input)
                if repeated.waits != recorded.waits:
                    raise Diverged(f"{repeated.start.name} asks {repeated.waits}, and asked {recorded.waits}")
        finally:
            self._clock.ms = now_ms
        assert repeated
        assert repeated.live
        process, repeated.live = repeated.live, None
        return process


@dataclass(slots=True)
class Thread:
    """A thread of a worker, as the explorer sees it."""

    name: str
    parked_at: Any = None  # the request that it sends next, or JOIN
    ended: bool = False
    past: bytes = b""  # a digest of all that it has seen: it decides what the thread does next
    ids: int = 0  # of the ids that services made for it

    def saw(self, *seen: object) -> None:
        """Add an observation to the past of the thread."""
        self.past = digest(self.past + repr(seen).encode())

    def new_id(self) -> str:
        """Return an id that a service makes for a request of this thread."""
        self.ids += 1
        return f"{self.name}m{self.ids}"


@dataclass(slots=True)
class Process:
    """One invocation of a handler in one schedule: its threads live and die together."""

    name: str
    deadline_ms: int
    moment: Moment
    threads: list[Thread] = field(default_factory=list)
    dead: bool = False
    returned: bool = False
    result: Any = None
    crashed: BaseException | None = None
    stalled: bool = False

    def enter(self, moment: Moment, facts: Facts, clock: FakeClock) -> None:
        """Continue to a moment, with everything that happened on the way."""
        self.moment = moment
        clock.ms += moment.slept_ms
        for effect in moment.effects:
            effect(facts)
        self.threads += [Thread(name) for name, _, __ in moment.waits[len(self.threads) :]]
        for thread, (_, parked_at, ended) in zip(self.threads, moment.waits, strict=True):
            thread.parked_at, thread.ended = parked_at, ended
        if moment.returned:
            self.returned, self.result = True, moment.result
        self.crashed = self.crashed or moment.crashed

    def copy(self) -> "Process":
        """Return a copy that continues by itself."""
        threads = [Thread(it.name, it.parked_at, it.ended, it.past, it.ids) for it in self.threads]
        ended = self.dead, self.returned, self.result, self.crashed
        return Process(self.name, self.deadline_ms, self.moment, threads, *ended, self.stalled)

    @property
    def parked(self) -> list[Thread]:
        """The threads that have stopped and may go on."""
        return [thread for thread in self.threads if thread.parked_at is not None]

    @property
    def ready(self) -> list[Thread]:
        """The threads that can send a request, or have nothing left to wait for."""
        return [
            thread
            for thread in self.parked
            if thread.parked_at is not JOIN or all(other.ended for other in self.threads if other is not thread)
        ]

    @property
    def over(self) -> bool:
        """It has returned, raised or died."""
        return self.dead or self.returned or self.crashed is not None
