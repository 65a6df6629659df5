"""The effect happened and the commit failed: the next try is told the result, so that it need not do it again."""

from typing import Any

import pytest

from shared.idempotency import Attempt, EffectWithoutState, NotWritten, Outcome, RequestInDoubt, StoreError
from shared.idempotency.engine import StepResult
from tests.harness.interceptor import Fault, Killed, answer_lost, killed_before, refused
from tests.harness.layer_world import ROWS_TABLE, World
from tests.unit.idempotency.core_helpers import ParcelWanted, external, put_row, wanted, write

KEY = "parcel.send#p1"
DENIED = refused("AccessDeniedException")


class Sender:
    """A step that sends a parcel, unless it is told that it was sent."""

    def __init__(self) -> None:
        self.sent = 0
        self.told: list[Any] = []

    def run(self, world: World, **data: Any) -> StepResult:
        return world.engine.run(
            external(self._send), wanted(**data), world.clock.now_ms() + 20_000, correlation_id="c-1"
        )

    def _send(self, _: ParcelWanted, attempt: Attempt) -> Outcome:
        self.told.append(attempt.saved_result)
        if attempt.saved_result is None:
            self.sent += 1
        return Outcome(attempt.saved_result or {"number": self.sent}, writes=[write()])


def lapse(world: World) -> None:
    world.clock.advance(23)


@pytest.mark.parametrize("fault", [DENIED, refused("ThrottlingException")], ids=["denied", "throttled to the end"])
def test_an_effect_whose_commit_fails_is_not_repeated_however_often_it_fails(world: World, fault: Fault) -> None:
    sender = Sender()
    world.wire.always("TransactWriteItems", fault)
    for _ in range(3):
        with pytest.raises(NotWritten):
            sender.run(world)
        lapse(world)
    world.wire.always("TransactWriteItems", None)

    assert sender.run(world).result == {"number": 1}

    assert sender.sent == 1
    assert sender.told == [None, {"number": 1}, {"number": 1}, {"number": 1}]
    record = world.record(KEY)
    assert record is not None
    assert record["status"] == {"S": "COMPLETED"}
    assert "effect" not in record


def test_a_claim_whose_answer_was_lost_still_knows_the_note(world: World) -> None:
    sender = Sender()
    world.wire.plan("TransactWriteItems", DENIED)
    with pytest.raises(NotWritten):
        sender.run(world)
    lapse(world)
    world.wire.plan("UpdateItem", answer_lost)

    sender.run(world)

    assert sender.sent == 1


def test_a_commit_of_unknown_outcome_that_was_not_applied_leaves_its_note(world: World) -> None:
    sender = Sender()
    world.wire.always("TransactWriteItems", refused("InternalServerError", 500))
    with pytest.raises(RequestInDoubt):
        sender.run(world)
    world.wire.always("TransactWriteItems", None)
    lapse(world)

    sender.run(world)

    assert sender.sent == 1


def test_an_effect_that_the_row_refused_is_not_repeated_when_the_row_was_set_right(world: World) -> None:
    sender = Sender()
    put_row(world, facts="theirs")
    with pytest.raises(EffectWithoutState):
        sender.run(world)
    lapse(world)
    world.dynamodb.delete_item(TableName=ROWS_TABLE, Key={"row_id": {"S": "row"}})

    assert sender.run(world).result == {"number": 1}

    assert sender.sent == 1


def test_a_commit_that_was_applied_after_all_keeps_no_note(world: World) -> None:
    sender = Sender()
    world.wire.always("TransactWriteItems", answer_lost)
    with pytest.raises(RequestInDoubt) as error:
        sender.run(world)
    world.wire.always("TransactWriteItems", None)

    assert "result not saved: Superseded" in error.value.__notes__[0]
    assert sender.run(world) == StepResult({"number": 1}, replayed=True)
    record = world.record(KEY)
    assert record is not None
    assert "effect" not in record


def test_without_a_note_the_next_try_is_uncertain_as_ever(world: World) -> None:
    sender = Sender()
    world.wire.plan("TransactWriteItems", DENIED)
    world.wire.plan("UpdateItem", lambda _, apply: apply(), DENIED)
    with pytest.raises(StoreError):
        sender.run(world)
    lapse(world)

    assert sender.run(world).uncertain

    assert sender.sent == 2


def test_a_note_is_of_its_own_request_alone(world: World) -> None:
    sender = Sender()
    world.wire.plan("TransactWriteItems", DENIED, killed_before)
    with pytest.raises(NotWritten):
        sender.run(world, weight=1)
    world.clock.advance(40 * 86400)  # the record has expired: another request may take the key
    with pytest.raises(Killed):  # before its commit
        sender.run(world, weight=2)
    lapse(world)

    sender.run(world, weight=2)

    assert sender.told == [None, None, None]


def test_a_note_that_stands_is_not_written_again(world: World) -> None:
    sender = Sender()
    world.wire.always("TransactWriteItems", DENIED)
    for requests in (2, 1):  # claim and note, then the claim alone
        before = world.wire.count("UpdateItem")
        with pytest.raises(NotWritten):
            sender.run(world)
        assert world.wire.count("UpdateItem") - before == requests
        lapse(world)
