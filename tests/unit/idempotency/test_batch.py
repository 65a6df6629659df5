"""A batch: every record is proven done, or reported, or parked and then done; none fails its neighbours."""

import pytest

from shared.idempotency import Attempt, KeyReused, NotDone, Outcome, Permanent, Unknown
from tests.harness.interceptor import refused
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import ParcelSent, ParcelWanted, external, internal, put_record, record
from tests.unit.idempotency.messages import deliver, sqs_record, waits, wanted


class Worker:
    """A step's function that does what the parcel's name says, and counts its effects."""

    def __init__(self) -> None:
        self.effects: list[str] = []

    def __call__(self, event: ParcelWanted, _: Attempt) -> Outcome:
        verdict = event.parcel_id.partition("-")[0]
        errors: dict[str, Exception] = {
            "notdone": NotDone("no"),
            "unknown": Unknown("?"),
            "refused": Permanent("bad_card"),
            "broken": ValueError("surprise"),
            "taken": KeyReused("other amount"),
        }
        if verdict in errors:
            raise errors[verdict]
        self.effects.append(event.parcel_id)
        return Outcome("done")


def test_one_is_parked_one_reported_and_eight_are_done(world: World) -> None:
    worker = Worker()
    good = [sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(8)]
    records = [*good[:3], sqs_record("bad", "{"), *good[3:6], sqs_record("fails", wanted("notdone")), *good[6:]]

    assert deliver(world, external(worker), *records) == ["fails"]

    assert sorted(worker.effects) == [f"p{n}" for n in range(8)]
    (parked,) = world.messages("dlq")
    assert parked["Body"] == "{"
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "unparsable"
    for n in range(8):
        assert record(world, f"parcel.send#p{n}")["status"] == "COMPLETED"


@pytest.mark.parametrize("go", [external, internal])
def test_a_whole_batch_delivered_again_changes_nothing(world: World, go: type) -> None:
    worker = Worker()
    records = [sqs_record(f"m{n}", wanted(f"p{n % 3}")) for n in range(6)]
    step = go(worker)

    assert deliver(world, step, *records) == []
    once = sorted(set(worker.effects))
    before = world.dynamodb.scan(TableName="idempotency")["Items"]
    assert deliver(world, step, *records) == []

    assert once == ["p0", "p1", "p2"]
    assert go is internal or len(worker.effects) == 3
    assert world.dynamodb.scan(TableName="idempotency")["Items"] == before


@pytest.mark.parametrize("verdict", ["notdone", "unknown", "broken"])
@pytest.mark.parametrize("go", [external, internal])
def test_what_is_not_done_is_reported_and_never_parked(world: World, go: type, verdict: str) -> None:
    step = go(Worker())

    assert deliver(world, step, sqs_record("m1", wanted(verdict)), sqs_record("m2", wanted("p"))) == ["m1"]

    assert world.messages("dlq") == []


@pytest.mark.parametrize(
    ("verdict", "reason"), [("refused", "bad_card"), ("taken", "key_reused")], ids=["refused", "taken"]
)
def test_what_no_retry_can_help_is_parked_and_then_done(world: World, verdict: str, reason: str) -> None:
    assert deliver(world, external(Worker()), sqs_record("m1", wanted(verdict))) == []

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == reason


def test_an_event_of_another_step_is_parked_as_schema_invalid(world: World) -> None:
    assert deliver(world, external(Worker()), sqs_record("m1", ParcelSent(parcel_id="p1"))) == []

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "schema_invalid"


def test_a_damaged_record_parks_its_message(world: World) -> None:
    put_record(world, "parcel.send#p1", validation=None)

    assert deliver(world, external(Worker()), sqs_record("m1", wanted("p1"))) == []

    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "damaged_record"


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_a_missing_permission_or_table_parks_nothing_and_is_finished_when_mended(world: World, code: str) -> None:
    worker = Worker()
    records = [sqs_record(f"m{n}", wanted(f"p{n}")) for n in range(4)]
    world.wire.always("UpdateItem", refused(code))
    assert deliver(world, external(worker), *records) == ["m0", "m1", "m2", "m3"]
    assert (worker.effects, world.messages("dlq")) == ([], [])
    world.wire.always("UpdateItem", None)

    assert deliver(world, external(worker), *records) == []

    assert sorted(worker.effects) == ["p0", "p1", "p2", "p3"]


def test_a_failed_record_that_can_not_be_named_raises_so_that_all_come_back(world: World) -> None:
    nameless = sqs_record("m1", wanted("notdone"))
    del nameless["messageId"]

    with pytest.raises(KeyError, match="messageId"):
        deliver(world, external(Worker()), nameless, sqs_record("m2", wanted("p2")))


def test_a_message_without_a_body_is_reported_at_the_least(world: World) -> None:
    empty = sqs_record("m1", "")
    del empty["body"]

    assert deliver(world, external(Worker()), empty, sqs_record("m2", wanted("p2"))) == ["m1"]


def test_an_empty_batch_is_done(world: World) -> None:
    assert deliver(world, external(Worker())) == []
    assert waits(world) == {}
