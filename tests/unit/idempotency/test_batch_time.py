"""When time runs out, and when a failed message comes back."""

import pytest

from shared.idempotency import Attempt, NotDone, Outcome, Unknown, fingerprint, sqs_handler
from shared.idempotency.sqs import current_consumer, delay_bounds, receives_to_ride_out
from tests.harness.interceptor import Fault, answer_lost, meanwhile, never_sent, refused
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    ParcelWanted,
    completed,
    does,
    external,
    internal,
    put_record,
    put_row,
    record,
    write,
)
from tests.unit.idempotency.messages import deliver, sqs_record, waits, wanted

BASE_S, CAP_S = 2, 900  # the world's back-off
RESERVE_S = 9.25
LEASE_S = 30 + 2  # of a worker with 30 s, and the skew
DONE = Outcome("done")


def test_what_there_is_no_time_for_is_not_started_and_the_finished_replays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCURRENCY", "1")
    effects: list[str] = []

    def slow(event: ParcelWanted, _: Attempt) -> Outcome:
        effects.append(event.parcel_id)
        world.clock.advance(9)
        return DONE

    records = [sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(5)]

    # 30, 21 and 12 seconds before the reserve are enough for a step that needs 10; 3 are not.
    assert deliver(world, external(slow), *records, seconds=30 + RESERVE_S) == ["m3", "m4"]
    assert effects == ["p0", "p1", "p2"]
    assert record(world, "parcel.send#p3") == {}

    assert deliver(world, external(slow), *records) == []
    assert effects == ["p0", "p1", "p2", "p3", "p4"]


@pytest.mark.parametrize(("seconds", "failed"), [(19.25, []), (19.249, ["m1"]), (0, ["m1"]), (-5, ["m1"])])
def test_a_step_is_started_with_exactly_the_time_it_needs_and_not_with_less(
    world: World, seconds: float, failed: list[str]
) -> None:
    step = external(lambda _, __: DONE)

    assert deliver(world, step, sqs_record("m1", wanted("p")), seconds=seconds) == failed

    assert (record(world, "parcel.send#p") == {}) is bool(failed)


@pytest.mark.parametrize("receive", [1, 2, 5, 9, 30])
def test_a_failed_message_waits_by_its_receive_count_within_bounds(world: World, receive: int) -> None:
    records = [sqs_record(f"m{n}", wanted(f"p{n}"), receive_count=receive) for n in range(8)]

    deliver(world, internal(does(NotDone("no"))), *records)

    low, high = delay_bounds(receive, BASE_S, CAP_S)
    assert len(waits(world)) == 8
    assert all(low <= wait <= high for wait in waits(world).values())


def test_jitter_spreads_those_who_failed_together(world: World) -> None:
    records = [sqs_record(f"m{n}", wanted(f"p{n}"), receive_count=9) for n in range(8)]

    deliver(world, internal(does(NotDone("no"))), *records)

    assert len(set(waits(world).values())) > 1


def test_only_the_failed_are_made_to_wait(world: World) -> None:
    def half(event: ParcelWanted, _: Attempt) -> Outcome:
        if event.parcel_id == "p1":
            raise NotDone("no")
        return DONE

    deliver(world, external(half), *[sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(3)])

    assert waits(world).keys() == {"m1"}


def test_more_than_ten_are_told_in_requests_of_ten(world: World) -> None:
    records = [sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(23)]

    assert len(deliver(world, internal(does(NotDone("no"))), *records)) == 23

    assert world.wire.count("ChangeMessageVisibilityBatch") == 3
    assert len(waits(world)) == 23


def test_a_busy_duplicate_comes_back_when_the_lease_is_over(world: World) -> None:
    put_record(world, "parcel.send#p", validation=_fingerprint(), in_progress_expiration=world.clock.now_ms() + 20_001)

    copies = [sqs_record(f"m{n}", wanted("p"), receive_count=1) for n in range(12)]
    assert len(deliver(world, external(lambda _, __: DONE), *copies)) == 12

    assert set(waits(world).values()) <= set(range(21, 21 + BASE_S + 1))
    assert len(set(waits(world).values())) > 1, "all at once"
    assert world.messages("dlq") == []


def test_a_busy_duplicate_of_many_receives_waits_by_its_count_so_that_copies_do_not_burn_each_others(
    world: World,
) -> None:
    put_record(world, "parcel.send#p", validation=_fingerprint(), in_progress_expiration=world.clock.now_ms() + 20_001)

    deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p"), receive_count=12))

    low, high = delay_bounds(12, BASE_S, CAP_S)
    assert low <= waits(world)["m1"] <= high


def test_a_busy_duplicate_costs_one_receive_a_lease_and_does_not_reach_the_dlq_while_the_owner_lives(
    world: World,
) -> None:
    """One owner is busy for one lease at most; whoever takes over for one more. The least count is far above."""
    receives = 0
    for owner in ("first", "second", "third"):
        lease_end = world.clock.now_ms() + LEASE_S * 1000
        put_record(world, "parcel.send#p", owner=owner, validation=_fingerprint(), in_progress_expiration=lease_end)
        receives += 1
        message = sqs_record("m1", wanted("p"), receive_count=receives)
        assert deliver(world, external(lambda _, __: DONE), message) == ["m1"]
        world.clock.advance(waits(world)["m1"])
        assert world.clock.now_ms() >= lease_end
    put_record(world, "parcel.send#p", validation=_fingerprint(), **completed())

    assert deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p"), receive_count=4)) == []
    assert receives < min(receives_to_ride_out(7200, 2, 900), receives_to_ride_out(60, 1, 4)) / 2


@pytest.mark.parametrize("error", [Unknown("?"), ValueError("surprise")])
@pytest.mark.parametrize("receive", [1, 30])
def test_what_is_unknown_waits_at_least_for_the_end_of_its_own_lease(
    world: World, error: Exception, receive: int
) -> None:
    deliver(world, external(does(error)), sqs_record("m1", wanted("p"), receive_count=receive))

    low, _ = delay_bounds(receive, BASE_S, CAP_S)
    assert max(LEASE_S, low) <= waits(world)["m1"] <= max(LEASE_S + BASE_S, CAP_S)
    world.clock.advance(waits(world)["m1"])
    assert deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p"))) == []


def test_a_claim_whose_answers_were_all_lost_is_waited_for_too(world: World) -> None:
    world.wire.always("UpdateItem", answer_lost)

    assert deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p"))) == ["m1"]

    left_s = (record(world, "parcel.send#p")["in_progress_expiration"] - world.clock.now_ms()) / 1000
    assert waits(world)["m1"] >= left_s


def test_a_commit_that_failed_waits_for_the_end_of_its_lease_and_burns_no_receive(world: World) -> None:
    marks = external(lambda _, __: Outcome("done", writes=[write()]))
    world.wire.always("TransactWriteItems", refused("AccessDenied"))
    deliver(world, marks, sqs_record("m1", wanted("p")))
    world.wire.always("TransactWriteItems", None)

    assert LEASE_S <= waits(world)["m1"] <= LEASE_S + BASE_S
    world.clock.advance(waits(world)["m1"])
    assert deliver(world, marks, sqs_record("m1", wanted("p"), receive_count=2)) == []


def test_a_claim_that_could_not_be_released_is_waited_for(world: World) -> None:
    def fails(_: ParcelWanted, __: Attempt) -> Outcome:
        world.wire.plan("UpdateItem", refused("AccessDenied"))
        raise NotDone("no")

    deliver(world, external(fails), sqs_record("m1", wanted("p")))

    assert LEASE_S <= waits(world)["m1"] <= LEASE_S + BASE_S


def test_a_step_that_claims_nothing_waits_for_no_lease(world: World) -> None:
    world.wire.always("TransactWriteItems", refused("AccessDenied"))
    deliver(world, internal(lambda _, __: DONE), sqs_record("m1", wanted("p")))
    world.wire.always("TransactWriteItems", answer_lost)
    deliver(world, internal(lambda _, __: DONE), sqs_record("m2", wanted("q")))

    _, high = delay_bounds(1, BASE_S, CAP_S)
    assert len(waits(world)) == 2
    assert max(waits(world).values()) <= high


def test_after_a_refused_state_result_parking_and_visibility_have_their_time(world: World) -> None:
    hangs = meanwhile(lambda: world.clock.advance(3), never_sent)
    put_row(world, facts="theirs")

    def slow(_: ParcelWanted, attempt: Attempt) -> Outcome:
        world.clock.ms = attempt.deadline_ms
        for operation in ("UpdateItem", "SendMessage", "ChangeMessageVisibilityBatch"):
            world.wire.always(operation, hangs)
        world.wire.always("TransactWriteItems", meanwhile(lambda: world.clock.advance(3)))
        return Outcome("done", writes=[write()])

    context = world.context(30)
    answer = sqs_handler(external(slow))({"Records": [sqs_record("m1", wanted("p"))]}, context)

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
    assert world.wire.count("UpdateItem") == 2  # the claim and the result
    assert world.wire.count("SendMessage") == world.wire.count("ChangeMessageVisibilityBatch") == 1
    assert context.get_remaining_time_in_millis() == 250


def test_a_step_that_overran_its_deadline_gets_no_back_off_but_an_answer(world: World) -> None:
    def overruns(_: ParcelWanted, __: Attempt) -> Outcome:
        world.clock.advance(27.5)
        raise Unknown("?")

    assert deliver(world, external(overruns), sqs_record("m1", wanted("p"))) == ["m1"]

    assert world.wire.count("ChangeMessageVisibilityBatch") == 0


FAILURES: dict[str, Fault] = {
    "denied": refused("AccessDenied", 403),
    "no answer": answer_lost,
    "no connection": never_sent,
    "broken": refused("InternalError", 500),
}


@pytest.mark.parametrize("fault", FAILURES.values(), ids=FAILURES.keys())
def test_the_verdict_stands_where_its_back_off_can_not_be_set(world: World, fault: Fault) -> None:
    world.wire.plan("ChangeMessageVisibilityBatch", fault)

    assert deliver(world, external(does(NotDone("no"))), sqs_record("m1", wanted("p"))) == ["m1"]


def test_one_request_of_back_offs_that_fails_does_not_keep_the_next_from_being_sent(world: World) -> None:
    world.wire.plan("ChangeMessageVisibilityBatch", never_sent)
    records = [sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(12)]

    assert len(deliver(world, internal(does(NotDone("no"))), *records)) == 12

    assert world.wire.count("ChangeMessageVisibilityBatch") == 2


def test_no_wait_is_longer_than_sqs_takes(world: World) -> None:
    far = world.clock.now_ms() + 20 * 3600 * 1000
    put_record(world, "parcel.send#p", validation=_fingerprint(), in_progress_expiration=far)

    deliver(world, external(lambda _, __: DONE), sqs_record("m1", wanted("p")))

    assert 10 * 3600 < waits(world)["m1"] < 12 * 3600


def test_a_worker_is_made_of_the_functions_own_environment(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKOFF_BASE_S", "7")
    monkeypatch.setenv("LEASE_SKEW_S", "5")
    monkeypatch.delenv("DLQ_URL")

    with pytest.raises(KeyError, match="DLQ_URL"):
        current_consumer()
    monkeypatch.setenv("DLQ_URL", world.queues["dlq"])
    consumer = current_consumer()

    assert (consumer.backoff_base_s, consumer.backoff_cap_s) == (7, 900)
    assert (consumer.engine.step_needs_s, consumer.engine.reserve_s) == (10.0, RESERVE_S)
    assert consumer.engine.lease_end(1_000) == 6_000
    assert consumer.engine.store.ttl_s == 30 * 86400
    assert consumer.engine.store.request_s == 3.0


def _fingerprint() -> str:
    return fingerprint(wanted("p"))
