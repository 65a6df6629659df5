"""Results: replayed exactly, and an effect never stays without a record."""

from typing import Any

import msgspec
import pytest

from shared.idempotency import (
    Outcome,
)
from tests.harness.layer_world import World
from tests.unit.idempotency.script import SEND, Script, run, run_once


@pytest.mark.parametrize("result", [{}, [], 0, "", None, False, "é", [[{}]]])
@pytest.mark.parametrize("go", [run, run_once])
def test_a_falsy_result_is_replayed_exactly(world: World, go: Any, result: Any) -> None:
    script = Script(Outcome(result))
    go(world, script)

    again = go(world, script)

    assert again.replayed
    assert again.result == result
    assert type(again.result) is type(result)


class Odd:
    """Nothing that JSON knows."""


UNFIT = {
    "an object": Odd(),
    "a dict with odd keys": {(1, 2): 3},
    "a lone surrogate": "\ud800",
    "too long": "x" * 200_000,
    "too many bytes": "\N{GRINNING FACE}" * 120_000,
    "JSON of its own that is none": msgspec.Raw(b"{"),
    "a number that no reader takes": 10**5000,
}


@pytest.mark.parametrize("result", UNFIT.values(), ids=UNFIT.keys())
@pytest.mark.parametrize("go", [run, run_once])
def test_a_result_that_can_not_be_stored_leaves_a_reference_and_no_second_effect(
    world: World, go: Any, result: object
) -> None:
    script = Script(Outcome(result))
    assert go(world, script).replayed is False

    again = go(world, script)

    assert again.replayed
    assert again.result["key"] in (SEND, "parcel.note#p1")
    assert again.result["result_not_stored"]
    assert len(script.attempts) == 1 or go is run_once


def test_the_largest_result_that_is_stored_fits_an_item_whatever_its_script(world: World) -> None:
    run(world, Script(Outcome("\N{GRINNING FACE}" * 32_000)))

    item = world.record(SEND)
    assert item is not None
    assert sum(len(name) + len(str(*value.values()).encode()) for name, value in item.items()) < 400 * 1024 / 2
    assert run(world, Script()).result == "\N{GRINNING FACE}" * 32_000
