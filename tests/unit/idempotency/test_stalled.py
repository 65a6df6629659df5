"""A stalls past its lease, B takes over: whatever the two come to, and in whatever order, B's word stands."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from shared.idempotency import Attempt, Busy, NotDone, Outcome, Permanent, Superseded, Unknown
from shared.idempotency.engine import StepResult
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import KEY, ParcelWanted, deadline, external, record, row, wanted, write

SEND = "parcel.send#p1"
WAIT_S = 10  # only ever reached by a test that hangs

End = Callable[[str], Outcome]


def succeeds(name: str) -> Outcome:
    return Outcome(name, writes=[write(facts=name)])


def succeeds_alone(name: str) -> Outcome:
    return Outcome(name)


def is_not_done(_: str) -> Outcome:
    raise NotDone("no")


def is_unknown(_: str) -> Outcome:
    raise Unknown("?")


def is_refused(_: str) -> Outcome:
    raise Permanent("bad")


@dataclass
class Worker:
    """A worker on a thread, whose effect begins and ends when the test says so."""

    world: World
    name: str
    end: End
    effects: list[str]
    begun: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)
    came_to: Any = None

    def start(self) -> None:
        """Claim, begin the effect, and stay in it."""
        deadline_ms = deadline(self.world)
        self.thread = threading.Thread(target=self._run, args=[deadline_ms], daemon=True)
        self.thread.start()
        assert self.begun.wait(WAIT_S)

    def finish(self) -> Any:
        """Let the effect end; answers what the engine says or raises."""
        self.may_end.set()
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()
        return self.came_to

    def _run(self, deadline_ms: int) -> None:
        try:
            self.came_to = self.world.engine.run(external(self._effect), wanted(), deadline_ms, correlation_id="c-1")
        except Exception as error:
            self.came_to = error

    def _effect(self, _: ParcelWanted, attempt: Attempt) -> Outcome:
        self.effects.append(f"{self.name} {'uncertain' if attempt.uncertain else 'certain'}")
        self.begun.set()
        assert self.may_end.wait(WAIT_S)
        return self.end(self.name)


@pytest.mark.parametrize("first", ["a ends first", "b ends first"])
@pytest.mark.parametrize("b_end", [succeeds, is_not_done, is_unknown], ids=lambda end: f"b {end.__name__}")
@pytest.mark.parametrize(
    "a_end", [succeeds, succeeds_alone, is_not_done, is_unknown, is_refused], ids=lambda end: f"a {end.__name__}"
)
def test_the_word_of_the_one_who_took_over_stands(world: World, a_end: End, b_end: End, first: str) -> None:
    effects: list[str] = []
    a, b = Worker(world, "a", a_end, effects), Worker(world, "b", b_end, effects)
    a.start()
    world.clock.advance(23)  # 20 s to A's deadline, 2 s of skew
    b.start()

    if first == "b ends first":
        b.finish()
    before = world.record(SEND)
    a.finish()
    assert world.record(SEND) == before, "a zombie wrote to the record"
    b.finish()

    stands = record(world, SEND)
    assert stands["attempt"] == 2
    assert stands["uncertain"] is True
    # All but the unknown tries to write, and is told that another has the last word.
    assert isinstance(a.came_to, Unknown if a_end is is_unknown else Superseded)
    if b_end is succeeds:
        assert row(world) == "b"
        assert b.came_to == StepResult("b", replayed=False, attempt=2, uncertain=True)
        assert (stands["status"], stands["data"]) == ("COMPLETED", '"b"')
    else:
        assert row(world) is None
        assert stands["status"] == "INPROGRESS"
        assert "data" not in stands
    assert effects == ["a certain", "b uncertain"]
    _no_third_effect_starts_unasked(world, b_end, effects)


def _no_third_effect_starts_unasked(world: World, b_end: End, effects: list[str]) -> None:
    third = Worker(world, "c", succeeds, effects)
    if b_end is is_not_done:  # B gave it back: the next may try, and knows that A may have done it
        third.start()
        assert effects[2:] == ["c uncertain"]
        third.finish()
        return
    third._run(deadline(world))
    if b_end is is_unknown:
        assert isinstance(third.came_to, Busy)
    else:
        assert third.came_to == StepResult("b", replayed=True)
    assert len(effects) == 2


def test_who_took_over_and_died_is_taken_over_in_turn_and_neither_zombie_is_heard(world: World) -> None:
    effects: list[str] = []
    workers = [Worker(world, name, succeeds, effects) for name in "abc"]
    for worker in workers:
        worker.start()
        world.clock.advance(23)

    assert isinstance(workers[0].finish(), Superseded)
    assert workers[2].finish() == StepResult("c", replayed=False, attempt=3, uncertain=True)
    assert isinstance(workers[1].finish(), Superseded)

    assert row(world) == "c"
    assert record(world, SEND)["data"] == '"c"'
    assert KEY not in effects
