"""A body that is nested deeper than the parser follows is refused."""

import pytest

from shared.idempotency import Outcome, Permanent
from tests.harness.decoding import decode
from tests.harness.layer_world import World
from tests.unit.idempotency.core_helpers import ParcelWanted, external, record
from tests.unit.idempotency.messages import deliver, sqs_record, wanted

DEEP = "[" * 30_000 + "]" * 30_000


def message(data: str) -> str:
    return f'{{"specversion": "1.0", "id": "p1/x", "source": "s", "type": "parcel.wanted", "data": {data}}}'


@pytest.mark.parametrize("data", [DEEP, f'{{"unknown": {DEEP}}}', f'{{"parcel_id": {DEEP}}}'])
def test_a_body_that_is_nested_too_deep_cannot_be_parsed(data: str) -> None:
    with pytest.raises(Permanent, match="unparsable"):
        decode(message(data), {ParcelWanted.type: ParcelWanted})


def test_a_body_that_is_nested_too_deep_is_parked_and_its_neighbour_is_done(world: World) -> None:
    step = external(lambda _, __: Outcome("done"))

    assert deliver(world, step, sqs_record("m1", message(DEEP)), sqs_record("m2", wanted("p1"))) == []

    assert record(world, "parcel.send#p1")["status"] == "COMPLETED"
    (parked,) = world.messages("dlq")
    assert parked["MessageAttributes"]["reason"]["StringValue"] == "unparsable"
