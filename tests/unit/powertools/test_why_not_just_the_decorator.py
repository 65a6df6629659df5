"""What the idempotency decorator of Powertools (3.37) does: each row of docs/why-not-powertools.md is a test here.

The tests describe a library that this repository uses for logs and metrics. If a test fails after an upgrade, delete
its row from the page.
"""

from typing import Any

import boto3
import pytest
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError

from tests.harness.interceptor import Killed, answer_lost, killed_before
from tests.harness.moto_world import World


class LapsedLease:
    """A worker that is so late that its lease is over as soon as it is taken."""

    def get_remaining_time_in_millis(self) -> int:
        return -1_000


class LongLease:
    """A worker with all its time before it."""

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def layer_of(client: Any) -> DynamoDBPersistenceLayer:
    return DynamoDBPersistenceLayer(table_name="idempotency", boto3_client=client)


def charge_with(layer: DynamoDBPersistenceLayer, lease: object, body: Any) -> Any:
    """The decorator as its documentation shows it, around a charge."""
    config = IdempotencyConfig(lambda_context=lease)  # type: ignore[arg-type]

    @idempotent_function(data_keyword_argument="order", persistence_store=layer, config=config, key_prefix="charge")  # type: ignore[untyped-decorator]
    def charge(order: dict[str, Any]) -> Any:
        return body(order)

    return charge


def only_record(world: World) -> dict[str, Any] | None:
    items: list[dict[str, Any]] = world.dynamodb.scan(TableName="idempotency")["Items"]
    return items[0] if items else None


def test_a_stalled_worker_overwrites_the_result_of_the_one_that_took_over(world: World) -> None:
    layer = layer_of(world.dynamodb)
    second = charge_with(layer, LongLease(), lambda _: {"charge": "second"})

    def stalled(order: dict[str, Any]) -> dict[str, str]:
        assert second(order=order) == {"charge": "second"}
        return {"charge": "first"}

    charge_with(layer, LapsedLease(), stalled)(order={"id": 1})

    assert second(order={"id": 1}) == {"charge": "first"}


def test_a_stalled_worker_that_fails_deletes_the_record_of_the_one_that_took_over_and_a_third_effect_follows(
    world: World,
) -> None:
    layer = layer_of(world.dynamodb)
    effects: list[str] = []
    second = charge_with(layer, LongLease(), lambda _: effects.append("second"))

    def stalled(order: dict[str, Any]) -> None:
        effects.append("first")
        second(order=order)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        charge_with(layer, LapsedLease(), stalled)(order={"id": 1})
    assert only_record(world) is None

    charge_with(layer, LongLease(), lambda _: effects.append("third"))(order={"id": 1})

    assert effects == ["first", "second", "third"]


def test_its_own_claim_whose_answer_was_lost_is_reported_as_somebody_elses(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    retrying = boto3.client("dynamodb")  # botocore's own retries, as a layer without a client of ours has them
    world.wire.put_on(retrying)
    world.wire.plan("PutItem", answer_lost)
    effects: list[object] = []

    with pytest.raises(IdempotencyAlreadyInProgressError):
        charge_with(layer_of(retrying), LongLease(), effects.append)(order={"id": 1})

    assert effects == []


def test_one_layer_shared_by_two_functions_completes_one_under_the_key_of_the_other(world: World) -> None:
    layer = layer_of(world.dynamodb)
    config = IdempotencyConfig(lambda_context=LongLease())  # type: ignore[arg-type]

    @idempotent_function(data_keyword_argument="order", persistence_store=layer, config=config)  # type: ignore[untyped-decorator]
    def mail(order: dict[str, Any]) -> dict[str, Any]:
        return {"mailed": order["id"]}

    @idempotent_function(data_keyword_argument="order", persistence_store=layer, config=config)  # type: ignore[untyped-decorator]
    def charge(order: dict[str, Any]) -> dict[str, Any]:
        mail(order=order)
        return {"charged": order["id"]}

    charge(order={"id": 1})

    assert mail(order={"id": 1}) == {"charged": 1}
    with pytest.raises(IdempotencyAlreadyInProgressError):
        charge(order={"id": 1})


@pytest.mark.parametrize("result", [{}, [], 0, "", False])
def test_a_falsy_result_is_replayed_as_none(world: World, result: object) -> None:
    charge = charge_with(layer_of(world.dynamodb), LongLease(), lambda _: result)

    assert charge(order={"id": 1}) == result
    assert charge(order={"id": 1}) is None


def test_completion_is_not_atomic_with_the_business_write_so_a_death_between_them_runs_it_again(world: World) -> None:
    layer = layer_of(world.dynamodb)
    runs: list[object] = []

    def place(order: dict[str, Any]) -> None:
        runs.append(order)
        world.dynamodb.put_item(TableName="orders", Item={"order_id": {"S": str(order["id"])}})

    world.wire.plan("UpdateItem", killed_before)
    with pytest.raises(Killed):
        charge_with(layer, LapsedLease(), place)(order={"id": 1})
    assert world.row("1") is not None

    charge_with(layer, LongLease(), place)(order={"id": 1})

    assert len(runs) == 2
