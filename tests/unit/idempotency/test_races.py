"""One table, many operations and many threads at once."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from shared.idempotency import Attempt, Busy, Outcome, StepError
from shared.idempotency.engine import StepResult
from shared.idempotency.records import Claim
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    ParcelWanted,
    claim,
    commit,
    deadline,
    external,
    internal,
    once,
    put_record,
    record,
    row,
    wanted,
    write,
)

RACERS = 16


def race(run: Callable[[int], object], racers: int = RACERS) -> list[object]:
    """All at once; answers what each came to, an error included."""
    ready = threading.Barrier(racers, timeout=10)

    def one(n: int) -> object:
        ready.wait()
        try:
            return run(n)
        except StepError as error:
            return error

    with ThreadPoolExecutor(racers) as pool:
        return list(pool.map(one, range(racers)))


def test_of_sixteen_who_claim_at_once_one_has_it_and_the_others_know_until_when(world: World) -> None:
    ends = race(lambda n: claim(world, f"racer {n}"))

    (winner,) = [end for end in ends if isinstance(end, Claim)]
    assert record(world)["owner"] == winner.owner
    assert Counter(type(end) for end in ends) == {Claim: 1, Busy: RACERS - 1}


def test_of_sixteen_who_take_over_at_once_one_has_it(world: World) -> None:
    put_record(world, in_progress_expiration=1)

    ends = race(lambda n: claim(world, f"racer {n}"))

    (winner,) = [end for end in ends if isinstance(end, Claim)]
    assert (winner.attempt, winner.uncertain) == (2, True)
    assert record(world)["attempt"] == 2


def test_of_sixteen_who_do_it_once_one_does_and_the_others_have_its_result(world: World) -> None:
    ends = race(lambda n: once(world, f"racer {n}", [write(facts=f"racer {n}")], data=f'"racer {n}"'))

    assert ends.count(False) == 1
    assert {end.result for end in ends if end is not False} == {row(world)}  # type: ignore[attr-defined]


def test_one_owner_who_commits_from_many_threads_is_always_told_that_it_is_done(world: World) -> None:
    claimed = claim(world)
    assert isinstance(claimed, Claim)

    assert race(lambda _: commit(world, claimed, [write()])) == [False] * RACERS


def test_many_operations_on_many_keys_share_a_table_and_never_a_result(world: World) -> None:
    def echo(event: ParcelWanted, _: Attempt) -> Outcome:
        return Outcome(event.parcel_id)

    steps = [external(echo), internal(echo)]
    until = deadline(world)

    def run(n: int) -> object:
        return world.engine.run(steps[n % 2], wanted(f"p{n // 4}"), until, correlation_id="c-1")

    ends = race(run)

    for n, end in enumerate(ends):
        assert isinstance(end, Busy) or (isinstance(end, StepResult) and end.result == f"p{n // 4}")
    for parcel in range(RACERS // 4):
        for operation in ("parcel.send", "parcel.note"):
            assert record(world, f"{operation}#p{parcel}")["data"] == f'"p{parcel}"'
