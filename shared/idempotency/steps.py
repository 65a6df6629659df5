"""Steps: functions from an event to an outcome. Writes and events are returned, never performed."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from .errors import NotDone, Permanent, StepError, as_not_done
from .events import Event
from .records import Image
from .runtime import Clock

E = TypeVar("E", bound=Event)
F = TypeVar("F")


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


class Done(msgspec.Struct, frozen=True):
    """A guard's answer: the work was done before. The engine stores this outcome and does not call the step."""

    outcome: Outcome


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


def no_guard(event: Event, attempt: Attempt) -> None:
    """The guard of a step that cannot know whether its work is done. Once its record is gone, it repeats the effect.

    The function's `QueueConsumer` states why: `cdk synth` lists every step without a guard.
    """


class Step(msgspec.Struct, Generic[E], frozen=True):
    """A step of a pipeline. `operation` is part of every record's key, so it must never change."""

    operation: str
    kinds: Mapping[str, type[Event]]  # structs by event type
    key: Callable[[E], str]
    effect: Effect
    function: Callable[..., Outcome]
    guard: Callable[[E, Attempt], Any] | None = None  # of a step with an external effect

    def __call__(self, event: E, attempt: Attempt) -> Outcome | Done:
        """Run the guard and, unless the work is done, the function.

        Raises the errors of the function. Of the guard's errors, it raises Permanent and NotDone. Every other error of
        the guard becomes NotDone, because a guard only reads.
        """
        if self.guard is None:
            return self.function(event, attempt)
        try:
            with as_not_done(f"guard of {self.operation}"):
                facts = self.guard(event, attempt)
        except (Permanent, NotDone):
            raise
        except Exception as error:
            raise NotDone(f"guard of {self.operation}: {type(error).__name__}") from error
        return facts if isinstance(facts, Done) else self.function(event, attempt, facts)

    def record_key(self, event: E) -> str:
        """Return `<operation>#<business key>`."""
        return f"{self.operation}#{self.key(event)}"


@overload
def step(
    operation: str, *, event: type[E] | tuple[type[E], ...], key: Callable[[E], str], effect: Literal[Effect.NONE]
) -> Callable[[Callable[[E, Attempt], Outcome]], Step[E]]: ...


@overload
def step(
    operation: str,
    *,
    event: type[E] | tuple[type[E], ...],
    key: Callable[[E], str],
    effect: Literal[Effect.EXTERNAL],
    guard: Callable[[E, Attempt], Done | F],
) -> Callable[[Callable[[E, Attempt, F], Outcome]], Step[E]]: ...


def step(
    operation: str,
    *,
    event: type[E] | tuple[type[E], ...],
    key: Callable[[E], str],
    effect: Effect,
    guard: Callable[[E, Attempt], Any] | None = None,
) -> Callable[[Callable[..., Outcome]], Step[E]]:
    """Make a function a step. `event` is the struct, or the structs, that the step accepts.

    A step with an external effect has a guard, which runs after the claim. The guard reads something that outlives the
    idempotency record, such as the order row. It returns Done if the work is done, and otherwise the facts that it
    read: the function gets them as its third argument. Use `no_guard` if no guard is possible.

    Raises TypeError if an external step has no guard, or another step has one.
    """
    if (guard is None) is (effect is Effect.EXTERNAL):
        needed = "needs guard=, or guard=no_guard" if guard is None else "runs in one transaction and takes no guard"
        raise TypeError(f"step {operation} with Effect.{effect.name} {needed}")
    kinds = event if isinstance(event, tuple) else (event,)

    def decorate(function: Callable[..., Outcome]) -> Step[E]:
        return Step(operation, {kind.type: kind for kind in kinds}, key, effect, function, guard)

    return decorate
