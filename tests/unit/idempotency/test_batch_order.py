"""What runs side by side, what one after the other, and that nothing is left running."""

import threading
from collections.abc import Callable

import pytest

from shared.idempotency import Attempt, NotDone, Outcome, Permanent
from tests.harness.interceptor import Killed
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import ParcelWanted, external, internal, record
from tests.unit.idempotency.messages import deliver, sqs_record, wanted

WAIT_S = 10  # only ever reached by a test that hangs
DONE = Outcome("done")


def test_different_keys_run_side_by_side(world: World) -> None:
    together = threading.Barrier(4, timeout=WAIT_S)

    def meet(_: ParcelWanted, __: Attempt) -> Outcome:
        together.wait()
        return DONE

    assert deliver(world, external(meet), *[sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(4)]) == []


def test_no_more_steps_run_at_a_time_than_the_function_has_room_for(world: World) -> None:
    """CONCURRENCY is 4."""
    together = threading.Barrier(4, timeout=WAIT_S)
    lock = threading.Lock()
    running: list[int] = [0]
    most: list[int] = []

    def count(_: ParcelWanted, __: Attempt) -> Outcome:
        with lock:
            running[0] += 1
            most.append(running[0])
        together.wait()
        with lock:
            running[0] -= 1
        return DONE

    assert deliver(world, external(count), *[sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(8)]) == []

    assert max(most) == 4


class Watch:
    """Notes who runs and that no two of one key, or group, run at once."""

    def __init__(self, verdict: Callable[[str], Outcome]) -> None:
        self.verdict = verdict
        self.order: list[str] = []
        self._lock = threading.Lock()
        self._inside: set[str] = set()

    def __call__(self, _: ParcelWanted, attempt: Attempt) -> Outcome:
        mark = attempt.correlation_id[0]
        with self._lock:
            assert mark not in self._inside
            self._inside.add(mark)
            self.order.append(attempt.correlation_id)
        try:
            return self.verdict(attempt.correlation_id)
        finally:
            with self._lock:
                self._inside.remove(mark)


def fails(_: str) -> Outcome:
    raise NotDone("so the next one of the key runs too")


def test_records_of_one_key_run_one_after_the_other(world: World) -> None:
    """A standard queue promises no order, so each record is read as soon as a thread is free."""
    watch = Watch(fails)
    records = [
        sqs_record(f"{key}{n}", wanted(key), correlation_id=f"{key}{n}") for n in range(4) for key in ("a", "b", "c")
    ]

    failed = deliver(world, external(watch), *records)

    assert sorted(failed) == sorted(watch.order) == sorted(record["messageId"] for record in records)


def test_one_key_that_takes_long_does_not_hold_up_another(world: World) -> None:
    last_of_b = threading.Event()

    def long(event: ParcelWanted, _: Attempt) -> Outcome:
        if event.parcel_id == "a":
            assert last_of_b.wait(WAIT_S)
        elif event.parcel_id == "b9":
            last_of_b.set()
        return DONE

    records = [sqs_record("a", wanted("a")), *[sqs_record(f"b{n}", wanted(f"b{n}")) for n in range(10)]]

    assert deliver(world, external(long), *records) == []


def test_duplicates_within_one_batch_have_one_effect(world: World) -> None:
    effects: list[str] = []

    def effect(event: ParcelWanted, _: Attempt) -> Outcome:
        effects.append(event.parcel_id)
        return DONE

    assert deliver(world, external(effect), *[sqs_record(f"m{n}", wanted("p")) for n in range(5)]) == []

    assert effects == ["p"]


def test_copies_of_one_key_leave_the_other_threads_to_other_keys(world: World) -> None:
    """CONCURRENCY is 4: a thread that waited for a key would hold up the record behind the copies."""
    other = threading.Event()

    def wait(event: ParcelWanted, _: Attempt) -> Outcome:
        if event.parcel_id == "a":
            assert other.wait(WAIT_S)
        else:
            other.set()
        return DONE

    records = [*[sqs_record(f"a{n}", wanted("a")) for n in range(8)], sqs_record("b", wanted("b"))]

    assert deliver(world, external(wait), *records) == []


def _fifo(world: World, verdict: Callable[[str], Outcome], names: list[str]) -> tuple[list[str], list[str]]:
    """Names say group and place; answers what ran and what came back."""
    watch = Watch(verdict)
    records = [sqs_record(name, wanted(name), correlation_id=name, group=name[0]) for name in names]
    return watch.order, deliver(world, external(watch), *records)


def test_a_fifo_group_stops_at_its_first_failure_and_the_others_go_on(world: World) -> None:
    def verdict(name: str) -> Outcome:
        if name == "a1":
            raise NotDone("no")
        return DONE

    ran, failed = _fifo(world, verdict, ["a0", "b0", "a1", "b1", "a2", "b2", "a3"])

    assert failed == ["a1", "a2", "a3"]
    assert [name for name in ran if name[0] == "a"] == ["a0", "a1"]
    assert [name for name in ran if name[0] == "b"] == ["b0", "b1", "b2"]
    assert record(world, "parcel.send#a2") == {}


def test_a_fifo_group_runs_in_order_one_at_a_time(world: World) -> None:
    ran, failed = _fifo(world, lambda _: DONE, [f"{group}{n}" for n in range(4) for group in "ab"])

    assert failed == []
    for group in "ab":
        assert [name for name in ran if name[0] == group] == [f"{group}{n}" for n in range(4)]


def test_a_fifo_group_that_stopped_does_not_stop_another_that_shares_a_key_with_it(world: World) -> None:
    """The two records run one after the other. Order is promised within a group only."""

    def verdict(name: str) -> Outcome:
        if name == "a0":
            raise NotDone("no")
        return DONE

    watch = Watch(verdict)
    records = [
        sqs_record(name, wanted(key), correlation_id=name, group=name[0])
        for name, key in [("a0", "shared"), ("b0", "shared"), ("a1", "own"), ("b1", "other")]
    ]

    assert deliver(world, external(watch), *records) == ["a0", "a1"]
    assert [name for name in watch.order if name[0] == "a"] == ["a0"]
    assert [name for name in watch.order if name[0] == "b"] == ["b0", "b1"]


def test_a_parked_record_of_a_fifo_group_does_not_stop_it(world: World) -> None:
    def verdict(name: str) -> Outcome:
        if name == "a0":
            raise Permanent("bad_card")
        return DONE

    ran, failed = _fifo(world, verdict, ["a0", "a1"])

    assert (ran, failed) == (["a0", "a1"], [])
    assert len(world.messages("dlq")) == 1


def test_a_standard_queues_records_with_a_group_are_not_held_back(world: World) -> None:
    """A group on a standard queue is for fair sharing, and promises no order."""
    records = [sqs_record(f"m{n}", wanted(f"p{n}"), group="g") for n in range(3)]
    for one in records:
        one["eventSourceARN"] = "arn:aws:sqs:eu-west-1:123456789012:source"
    together = threading.Barrier(3, timeout=WAIT_S)

    def meet(_: ParcelWanted, __: Attempt) -> Outcome:
        together.wait()
        return DONE

    assert deliver(world, external(meet), *records) == []


@pytest.mark.parametrize("go", [external, internal])
def test_the_runner_never_returns_while_a_step_is_in_flight(world: World, go: type) -> None:
    """Not even where another lane ends the worker."""
    begun, may_end = threading.Event(), threading.Event()
    ended: list[str] = []
    came_to: list[BaseException] = []

    def effect(event: ParcelWanted, _: Attempt) -> Outcome:
        if event.parcel_id == "dies":
            assert begun.wait(WAIT_S)
            raise Killed
        begun.set()
        assert may_end.wait(WAIT_S)
        ended.append(event.parcel_id)
        return DONE

    def invoke() -> None:
        try:
            deliver(world, go(effect), sqs_record("m1", wanted("dies")), sqs_record("m2", wanted("lives")))
        except BaseException as error:
            came_to.append(error)

    invocation = threading.Thread(target=invoke, daemon=True)
    invocation.start()
    assert begun.wait(WAIT_S)
    invocation.join(0.05)
    assert invocation.is_alive(), "the handler returned while a step was in flight"
    may_end.set()
    invocation.join(WAIT_S)

    assert not invocation.is_alive()
    assert ended == ["lives"]
    assert [type(error) for error in came_to] == [Killed]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]
