"""Steps: functions from an event to an outcome. Writes and events are returned, never performed."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from .errors import NotDone, StepError
from .events import Event
from .records import Image
from .runtime import Clock

E = TypeVar("E", bound=Event)


class Effect(enum.Enum):
    """What a step does outside DynamoDB."""

    NONE = "none"  # one transaction without a claim, so that the step is never half done
    EXTERNAL = "external"  # claim, effect, commit


class Write(msgspec.Struct, frozen=True):
    """One business write of a step. It is performed only together with the step's record.

    `request` is an entry of TransactWriteItems with its condition. If the condition fails, `on_conflict` gets the item
    that is there (None: no item). It returns None if the item already holds the same facts, and otherwise the error
    to raise.
    """

    request: dict[str, dict[str, Any]]
    on_conflict: Callable[[Image | None], StepError | None]


class Outcome(msgspec.Struct, frozen=True):
    """The result of a step. The engine stores it, performs the writes and emits the events in one transaction."""

    result: Any
    writes: Sequence[Write] = ()
    publish: Sequence[Event] = ()
    already_done: bool = False  # the step found its work done by an earlier attempt, and did nothing


class Attempt(msgspec.Struct, frozen=True):
    """One run of a step for one key."""

    key: str  # the record's key. It is the same for every attempt, so it suits the effect as an idempotency key
    number: int  # 1 for the first claim of the key
    uncertain: bool  # an earlier attempt may have had its effect: ask the other service before repeating the effect
    correlation_id: str
    deadline_ms: int  # epoch milliseconds at which the step's requests must have ended. The commit has its own time
    clock: Clock
    context: Mapping[str, str] = {}  # facts of the request that are not part of the event, such as the caller
    saved_result: Any = None  # of an earlier attempt that had its effect and could not commit: do not repeat the effect

    @property
    def now_ms(self) -> int:
        """Epoch milliseconds, read anew: a write after an effect must not be dated before the effect."""
        return self.clock.now_ms()

    def require(self, seconds: float) -> None:
        """Raise NotDone unless this many seconds remain for the step. Call it immediately before an effect."""
        left_s = (self.deadline_ms - self.now_ms) / 1000
        if left_s < seconds:
            raise NotDone(f"{left_s:.1f} s left, {seconds:.1f} s needed")


class Step(msgspec.Struct, Generic[E], frozen=True):
    """A step of a pipeline. `operation` is part of every record's key, so it must never change."""

    operation: str
    kinds: Mapping[str, type[Event]]  # structs by event type
    key: Callable[[E], str]
    effect: Effect
    function: Callable[[E, Attempt], Outcome]

    def __call__(self, event: E, attempt: Attempt) -> Outcome:
        """Call the function without the engine, as tests do."""
        return self.function(event, attempt)

    def record_key(self, event: E) -> str:
        """Return `<operation>#<business key>`."""
        return f"{self.operation}#{self.key(event)}"


def step(
    operation: str, *, event: type[E] | tuple[type[E], ...], key: Callable[[E], str], effect: Effect
) -> Callable[[Callable[[E, Attempt], Outcome]], Step[E]]:
    """Make a function a step. `event` is the struct, or the structs, that the step accepts."""
    kinds = event if isinstance(event, tuple) else (event,)

    def decorate(function: Callable[[E, Attempt], Outcome]) -> Step[E]:
        return Step(operation, {kind.type: kind for kind in kinds}, key, effect, function)

    return decorate
