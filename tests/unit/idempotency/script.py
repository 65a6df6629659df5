"""A step whose ends are written down beforehand, and the engine that runs it."""

from collections.abc import Callable
from typing import Any

from shared.idempotency import (
    Attempt,
    Outcome,
)
from shared.idempotency.engine import StepResult
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    ParcelWanted,
    deadline,
    external,
    internal,
    wanted,
)

SEND = "parcel.send#p1"


class Script:
    """A step's function that comes to these ends, one a call and the last for ever; it keeps what it was told."""

    def __init__(self, *ends: Outcome | BaseException, before: Callable[[], object] = lambda: None) -> None:
        self.ends = list(ends)
        self.before = before
        self.attempts: list[Attempt] = []

    def __call__(self, _: ParcelWanted, attempt: Attempt) -> Outcome:
        self.attempts.append(attempt)
        self.before()
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(end, BaseException):
            raise end
        return end


DONE = Outcome("done")


def run(world: World, script: Script, *, seconds: float = 20, **data: Any) -> StepResult:
    return world.engine.run(external(script), wanted(**data), deadline(world, seconds), correlation_id="c-1")


def run_once(world: World, script: Script, **data: Any) -> StepResult:
    return world.engine.run(internal(script), wanted(**data), deadline(world), correlation_id="c-1")


def lapse(world: World) -> None:
    world.clock.advance(60)
