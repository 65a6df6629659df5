"""A cancelled transaction is read by its reasons, by their position, the record first; never as done."""

import json
from typing import Any

import pytest

from shared.idempotency import Conflict, EffectWithoutState, KeyReused, NotDone, NotWritten, StoreError, Superseded
from shared.idempotency.records import StoredResult
from tests.harness.interceptor import Fault, cancelled, refused
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import (
    acquire,
    commit,
    completed,
    once,
    put_record,
    put_row,
    record,
    row,
    spelled,
    write,
)

FAILED = "ConditionalCheckFailed"


def cancelled_with(*reasons: dict[str, Any]) -> Fault:
    return refused("TransactionCanceledException", CancellationReasons=list(reasons))


def failed(**item: Any) -> dict[str, Any]:
    return {"Code": FAILED, "Item": spelled(item)}


NONE = {"Code": "None"}
CONFLICT = {"Code": "TransactionConflict"}


@pytest.mark.parametrize(
    "others",
    [[NONE, NONE], [CONFLICT, NONE], [failed(facts="theirs"), CONFLICT], [{"Code": "ValidationError"}, NONE]],
    ids=["alone", "beside a conflict", "beside a refused row", "beside a bad write"],
)
def test_the_record_has_the_first_word(world: World, others: list[dict[str, Any]]) -> None:
    world.wire.plan("TransactWriteItems", cancelled_with(failed(owner="me"), *others))
    assert once(world, "me", [write("a"), write("b")]) is False

    theirs = failed(owner="other", validation="v1:a", status="COMPLETED", data="7")
    world.wire.plan("TransactWriteItems", cancelled_with(theirs, *others))
    assert once(world, "me", [write("a"), write("b")]) == StoredResult(7)

    world.wire.plan("TransactWriteItems", cancelled_with(theirs, *others))
    with pytest.raises(Superseded):
        commit(world, acquire(world), [write("a"), write("b")])

    assert row(world, "a") is None


def test_a_really_refused_record_beside_a_really_refused_row_is_judged_by_the_record(world: World) -> None:
    put_record(world, **completed(validation="v1:other"))
    put_row(world)

    with pytest.raises(KeyReused):
        once(world, "me", [write()])


@pytest.mark.parametrize("passing", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
@pytest.mark.parametrize("order", [0, 1])
def test_a_refused_row_beside_a_passing_trouble_is_asked_again_first(world: World, passing: str, order: int) -> None:
    reasons = [failed(facts="mine"), {"Code": passing}]
    world.wire.plan("TransactWriteItems", cancelled_with(NONE, *reasons[:: -1 if order else 1]))

    assert once(world, "me", [write("a"), write("b")]) is False

    first, second = world.wire.bodies("TransactWriteItems")
    assert first == second
    assert (row(world, "a"), row(world, "b")) == ("mine", "mine")


def test_each_write_judges_the_item_at_its_own_position(world: World) -> None:
    put_row(world, "a")
    put_row(world, "c", "theirs")

    with pytest.raises(NotDone, match="c holds"):
        once(world, "me", [write("a"), write("b"), write("c")])

    assert row(world, "b") is None
    assert record(world) == {}


def test_only_the_writes_whose_facts_hold_are_left_out_of_the_second_transaction(world: World) -> None:
    put_row(world, "b")
    put_row(world, "d")

    assert once(world, "me", [write(name) for name in "abcd"]) is True

    assert [row(world, name) for name in "abcd"] == ["mine"] * 4
    assert record(world)["status"] == "COMPLETED"


def test_a_refusal_without_an_item_is_judged_as_no_item(world: World) -> None:
    world.wire.plan("TransactWriteItems", cancelled("None", FAILED))

    with pytest.raises(NotDone, match=r"row holds \{\}"):
        once(world, "me", [write()])


@pytest.mark.parametrize(
    "codes", [[FAILED], [FAILED, FAILED, FAILED], ["None"], []], ids=["too few", "too many", "one none", "none"]
)
def test_a_wrong_number_of_reasons_is_not_read_by_position(world: World, codes: list[str]) -> None:
    world.wire.plan("TransactWriteItems", cancelled(*codes))

    assert once(world, "me", [write()]) is False

    assert world.wire.count("TransactWriteItems") == 2
    assert record(world)["status"] == "COMPLETED"


@pytest.mark.parametrize("reasons", [["None", "ValidationError"], ["None", "AccessDenied"], ["None", "None"]])
def test_a_reason_that_no_resend_can_help_is_told_at_once_as_not_written(world: World, reasons: list[str]) -> None:
    world.wire.plan("TransactWriteItems", cancelled(*reasons))

    with pytest.raises(NotWritten):
        once(world, "me", [write()])

    assert world.wire.count("TransactWriteItems") == 1
    assert record(world) == {}


def test_a_row_refused_beside_a_bad_write_is_not_taken_for_done(world: World) -> None:
    world.wire.plan("TransactWriteItems", cancelled_with(NONE, failed(facts="mine"), {"Code": "ValidationError"}))

    with pytest.raises(NotWritten):
        once(world, "me", [write("a"), write("b")])


@pytest.mark.parametrize(
    ("code", "known"),
    [("TransactionConflict", Conflict), ("ThrottlingError", NotWritten)],
    ids=["conflict", "throttle"],
)
def test_trouble_that_does_not_pass_is_never_read_as_done(world: World, code: str, known: type[StoreError]) -> None:
    claimed = acquire(world)
    before = record(world)
    world.wire.always("TransactWriteItems", cancelled("None", code))

    with pytest.raises(StoreError) as error:
        commit(world, claimed, [write()])

    assert type(error.value) is known
    assert record(world) == before


def test_a_second_transaction_is_another_request_and_has_another_token(world: World) -> None:
    put_row(world)
    owner = "0123456789abcdef" * 2  # as long as the engine makes them

    once(world, owner, [write(), write("b")])

    first, second = (_token(body) for body in world.wire.bodies("TransactWriteItems"))
    assert first == owner
    assert first != second
    assert len(second) <= 36  # DynamoDB takes no longer one


def test_a_refused_row_after_an_effect_is_no_error_of_the_steps_own(world: World) -> None:
    put_row(world, facts="theirs")

    with pytest.raises(EffectWithoutState):
        commit(world, acquire(world), [write()])


def _token(body: bytes) -> str:
    return str(json.loads(body)["ClientRequestToken"])
