"""Steps: functions from an event to an outcome. Writes and events are returned, never performed."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from shared.idempotency.clock import Clock
from shared.idempotency.errors import NotDone
from shared.idempotency.events import Event
from shared.idempotency.store import Write

E = TypeVar("E", bound=Event)


class Effect(enum.Enum):
    """What a step does to the world outside the table."""

    NONE = "none"  # one transaction, no claim: never half-done
    EXTERNAL = "external"  # claim, effect, commit


class Outcome(msgspec.Struct, frozen=True):
    """What a step came to: the core stores the result, does the writes and emits the events, together or not at all."""

    result: Any
    writes: Sequence[Write] = ()
    publish: Sequence[Event] = ()
    duplicate: bool = False  # the step found its work done already, by the row: nothing happened now


class Attempt(msgspec.Struct, frozen=True):
    """One try at a step, as the step sees it."""

    key: str  # the record's key; the same for every try, so it is a good key for the effect too
    number: int  # 1 for the first claim under the key
    uncertain: bool  # an earlier try may have had its effect: ask the other side before doing it again
    correlation_id: str
    deadline_ms: int  # epoch milliseconds at which the worker is stopped
    clock: Clock
    noted: Any = None  # the result of an earlier try whose effect happened and whose commit failed: do not repeat it

    @property
    def now_ms(self) -> int:
        """Epoch milliseconds, now: what a step writes after its effect is not dated before it."""
        return self.clock.now_ms()

    def require(self, seconds: float) -> None:
        """Ask right before an effect whether there is still time for it. Raises NotDone."""
        left_s = (self.deadline_ms - self.now_ms) / 1000
        if left_s < seconds:
            raise NotDone(f"{left_s:.1f} s left, {seconds:.1f} s needed")


class Step(msgspec.Struct, Generic[E], frozen=True):
    """A step of a pipeline. `operation` is a constant: it is part of every record's key, for ever."""

    operation: str
    kinds: Mapping[str, type[Event]]  # event type → struct
    key: Callable[[E], str]
    effect: Effect
    function: Callable[[E, Attempt], Outcome]

    def __call__(self, event: E, attempt: Attempt) -> Outcome:
        """Just the function: what tests call."""
        return self.function(event, attempt)

    def record_key(self, event: E) -> str:
        """`<operation>#<business key>`."""
        return f"{self.operation}#{self.key(event)}"


def step(
    operation: str, *, event: type[E] | tuple[type[E], ...], key: Callable[[E], str], effect: Effect
) -> Callable[[Callable[[E, Attempt], Outcome]], Step[E]]:
    """Make a function a step; `event` is the struct, or the structs, that it takes."""
    kinds = event if isinstance(event, tuple) else (event,)

    def decorate(function: Callable[[E, Attempt], Outcome]) -> Step[E]:
        return Step(operation, {kind.type: kind for kind in kinds}, key, effect, function)

    return decorate
