"""The guard of an external step: it finds work that was done before, also without an idempotency record."""

import pytest
from botocore.exceptions import ReadTimeoutError

from shared.idempotency import (
    Attempt,
    Done,
    Effect,
    KeyReused,
    NotDone,
    Outcome,
    Permanent,
    StepError,
    StepResult,
    Unknown,
    fingerprint,
    no_guard,
    step,
)
from tests.harness.interceptor import refused
from tests.harness.layer_world import ROWS_TABLE, World
from tests.unit.idempotency.core_helpers import (
    Function,
    ParcelSent,
    ParcelWanted,
    deadline,
    put_record,
    record,
    row,
    spelled,
    wanted,
    write,
)

KEY = "parcel.guarded#p1"


class Parcels:
    """A guarded step. The row that it writes outlives its record. `error`: what the guard raises."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[str | None] = []
        self.error: Exception | None = None
        step_of = step("parcel.guarded", event=ParcelWanted, key=_id, effect=Effect.EXTERNAL, guard=self._guard)
        self._step = step_of(self._send)

    def run(self) -> StepResult:
        return self.world.engine.run(self._step, wanted(), deadline(self.world), correlation_id="c-1")

    def _guard(self, event: ParcelWanted, _: Attempt) -> Done | str:
        if self.error:
            raise self.error
        self.world.dynamodb.get_item(TableName=ROWS_TABLE, Key=spelled({"row_id": "row"}))
        if row(self.world):
            return Done(Outcome("found", publish=[ParcelSent(parcel_id=event.parcel_id)]))
        return "facts"

    def _send(self, _: ParcelWanted, attempt: Attempt, facts: str) -> Outcome:
        if attempt.saved_result is None:
            self.sent.append(facts)
        return Outcome(attempt.saved_result or "sent", writes=[write()])


def _id(event: ParcelWanted) -> str:
    return event.parcel_id


@pytest.fixture
def parcels(world: World) -> Parcels:
    return Parcels(world)


def test_the_step_gets_the_facts_that_its_guard_read(parcels: Parcels) -> None:
    assert parcels.run() == StepResult("sent", replayed=False)
    assert parcels.sent == ["facts"]


def test_an_effect_is_not_repeated_after_its_record_was_deleted(world: World, parcels: Parcels) -> None:
    parcels.run()
    world.dynamodb.delete_item(TableName="idempotency", Key=spelled({"id": KEY}))

    assert parcels.run() == StepResult("found", replayed=True)

    assert parcels.sent == ["facts"]
    assert (record(world, KEY)["status"], record(world, KEY)["data"]) == ("COMPLETED", '"found"')
    assert "parcel.sent" in record(world, KEY)["outbox"]


@pytest.mark.parametrize(
    "error",
    [
        NotDone("no row"),
        Unknown("?"),
        ZeroDivisionError("of the guard"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_guard_says_that_nothing_was_done(parcels: Parcels, error: Exception) -> None:
    parcels.error = error
    with pytest.raises(NotDone):
        parcels.run()
    parcels.error = None

    assert parcels.run() == StepResult("sent", replayed=False, attempt=2)


def test_a_refused_read_of_a_guard_names_the_code(world: World, parcels: Parcels) -> None:
    world.wire.plan("GetItem", refused("AccessDeniedException"))
    with pytest.raises(NotDone, match=r"guard of parcel\.guarded: AccessDeniedException"):
        parcels.run()


@pytest.mark.parametrize("error", [KeyReused("another"), Permanent("no_such_address")], ids=["reused", "permanent"])
def test_a_guard_can_park_a_message(parcels: Parcels, error: StepError) -> None:
    parcels.error = error
    with pytest.raises(type(error)):
        parcels.run()


def test_after_an_attempt_in_doubt_the_guard_runs_before_the_saved_result_is_used(
    world: World, parcels: Parcels
) -> None:
    world.wire.always("TransactWriteItems", refused("AccessDeniedException"))
    with pytest.raises(StepError):
        parcels.run()
    world.wire.always("TransactWriteItems", None)
    world.clock.advance(23)

    assert parcels.run().result == "sent"
    assert parcels.sent == ["facts"]


def test_an_attempt_in_doubt_stays_in_doubt_after_its_guard_failed(world: World, parcels: Parcels) -> None:
    put_record(
        world, KEY, validation=fingerprint(wanted()), unsettled=True, in_progress_expiration=world.clock.now_ms() - 1
    )
    parcels.error = NotDone("no row")
    with pytest.raises(NotDone):
        parcels.run()
    parcels.error = None

    assert parcels.run().uncertain


def _function(event: ParcelWanted, attempt: Attempt) -> Outcome:
    raise AssertionError((event, attempt))


@pytest.mark.parametrize(
    ("effect", "guard"), [(Effect.EXTERNAL, None), (Effect.NONE, no_guard)], ids=["external", "none"]
)
def test_a_step_declares_a_guard_exactly_if_it_has_an_external_effect(effect: Effect, guard: Function | None) -> None:
    with pytest.raises(TypeError, match=r"step parcel\.bad with Effect\."):
        step("parcel.bad", event=ParcelWanted, key=_id, effect=effect, guard=guard)  # type: ignore[call-overload]
