"""Rows from an older copy: put back where they are missing, and never so that an order is charged again."""

from typing import Any

import pytest

from tests.harness.driver import Pipeline
from tests.harness.moto_world import World
from tests.unit.operate.conftest import audited
from tests.unit.operate.test_audit import change, charge, order_done, order_placed
from tools import tables
from tools.account import Stop
from tools.operate import commands
from tools.operate.commands import recover
from tools.operate.deployment import Deployment

COPY = "orders-copy"


@pytest.fixture(autouse=True)
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of the queues' mappings."""
    found = dict.fromkeys(("orders", "payments", "emails"), "Disabled")
    monkeypatch.setattr(commands, "mapping_state", lambda _, queue: found[queue])
    return found


def lost(world: World) -> None:
    """The rows as they are now are all that a copy has of them, and the table is empty."""
    world.dynamodb.create_table(
        TableName=COPY,
        KeySchema=[{"AttributeName": "order_id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "order_id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for row in world.dynamodb.scan(TableName="orders")["Items"]:
        world.dynamodb.put_item(TableName=COPY, Item=row)
    world.empty("orders", "order_id")


def row(world: World, order_id: str = "ord_1") -> dict[str, Any]:
    found = world.row(order_id)
    assert found is not None
    return found


def test_rows_are_put_back_as_they_were_and_a_second_time_nothing_is_done(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_done(pipeline)
    before = row(pipeline.world)
    lost(pipeline.world)

    assert recover(deployment, COPY) == {"put_back": 1, "known_to_be_charged": 0}
    assert row(pipeline.world) == before
    assert recover(deployment, COPY) == {"there_already": 1}
    assert audited(deployment).findings == []


def test_a_row_that_is_there_is_not_touched_though_the_copy_has_another(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_placed(pipeline)
    lost(pipeline.world)
    recover(deployment, COPY)
    change(pipeline.world, "orders", "ord_1", "SET sweeps = :n", n={"N": "7"})

    recover(deployment, COPY)

    assert row(pipeline.world)["sweeps"] == {"N": "7"}


def test_a_row_that_knows_no_charge_gets_the_intent_that_was_charged(
    pipeline: Pipeline, deployment: Deployment
) -> None:
    order_placed(pipeline)
    lost(pipeline.world)
    intent_id, _ = charge("ord_1")

    assert recover(deployment, COPY) == {"put_back": 1, "known_to_be_charged": 1}
    assert row(pipeline.world)["intent_id"] == {"S": intent_id}

    audited(deployment, repair=True)
    pipeline.run()
    pipeline.settled_once("ord_1", "paid")


def test_of_two_charges_the_first_stays_the_orders(
    pipeline: Pipeline, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SCAN_PAGE", 1)
    order_placed(pipeline)
    lost(pipeline.world)
    first, _ = charge("ord_1")
    pipeline.world.clock.advance(1)
    charge("ord_1")

    recover(deployment, COPY)

    assert row(pipeline.world)["intent_id"] == {"S": first}


def test_an_intent_that_stands_on_the_row_stays(pipeline: Pipeline, deployment: Deployment) -> None:
    order_placed(pipeline)
    change(pipeline.world, "orders", "ord_1", "SET intent_id = :intent", intent={"S": "pi_own"})
    lost(pipeline.world)
    charge("ord_1")

    assert recover(deployment, COPY)["known_to_be_charged"] == 0
    assert row(pipeline.world)["intent_id"] == {"S": "pi_own"}


def test_while_a_queue_is_not_paused_nothing_is_done(
    pipeline: Pipeline, deployment: Deployment, states: dict[str, str]
) -> None:
    order_placed(pipeline)
    lost(pipeline.world)
    states["payments"] = "Disabling"
    with pytest.raises(Stop, match="Pause payments first"):
        recover(deployment, COPY)
    assert pipeline.world.row("ord_1") is None


@pytest.mark.usefixtures("world")
def test_the_table_is_no_copy_of_itself(deployment: Deployment) -> None:
    with pytest.raises(Stop, match="is the orders table itself"):
        recover(deployment, "orders")
