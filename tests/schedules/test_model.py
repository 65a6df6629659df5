"""The store model answers as moto and MiniStack do, and as AWS documents where those two are known to be wrong."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.models import botocore_stubber

from demo.local.ministack import MiniStack, free_port
from tests.schedules.drawn import TABLES, Draw
from tests.schedules.model import Model, read

CLIENT = {
    "region_name": "eu-west-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
    "config": Config(retries={"total_max_attempts": 1, "mode": "standard"}),
}


class Clock:
    """Time by hand, epoch milliseconds."""

    def __init__(self) -> None:
        self.ms = 0

    def now(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def model(clock: Clock) -> Any:
    """A client that speaks to the model."""
    ids = iter(range(10**6))
    it = Model(clock.now, lambda: "", lambda: str(next(ids)), lambda _: None, lambda *_: None)
    client: Any = boto3.client("dynamodb", **CLIENT)  # type: ignore[call-overload]

    def answer(event_name: str, request: Any, **_: Any) -> Any:
        return it.answer(read(event_name, request))

    # botocore asks every handler of the event: moto's own would apply the request as well.
    client.meta.events.unregister("before-send", botocore_stubber)
    client.meta.events.register_first("before-send", answer)
    return client


@pytest.fixture
def moto() -> Iterator[Any]:
    with mock_aws():
        client: Any = boto3.client("dynamodb", **CLIENT)  # type: ignore[call-overload]
        create_tables(client)
        yield client


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory: Path = tmp_path_factory.mktemp("ministack")
    stack = MiniStack(directory, free_port())
    stack.start()
    try:
        client: Any = boto3.client("dynamodb", endpoint_url=stack.endpoint, **CLIENT)  # type: ignore[call-overload]
        create_tables(client)
        yield client
    finally:
        stack.stop()


def create_tables(client: Any) -> None:
    for table, key in TABLES.items():
        client.create_table(
            TableName=table,
            KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )


def empty(client: Any) -> None:
    for table, key in TABLES.items():
        for item in client.scan(TableName=table)["Items"]:
            client.delete_item(TableName=table, Key={key: item[key]})


def answer(client: Any, operation: str, request: dict[str, Any]) -> object:
    """What a caller can tell an answer by: attributes, or the error's code, the item in the way, the reasons."""
    method = "".join("_" + letter.lower() if letter.isupper() else letter for letter in operation).lstrip("_")
    try:
        said = getattr(client, method)(**request)
    except ClientError as error:
        response: dict[str, Any] = dict(error.response)
        reasons = [(reason.get("Code"), reason.get("Item")) for reason in response.get("CancellationReasons", [])]
        return response["Error"]["Code"], response.get("Item"), reasons
    return said.get("Item"), said.get("Attributes") or None


def contents(client: Any) -> object:
    return {
        table: sorted(json.dumps(item, sort_keys=True) for item in client.scan(TableName=table)["Items"])
        for table in TABLES
    }


def compare(model: Any, witness: Any, seed: int, requests: int) -> int:
    """Both answer the same requests; how many of them were refused."""
    draw = Draw(seed)
    refused = 0
    for number in range(requests):
        operation, request = draw.request()
        ours, theirs = answer(model, operation, request), answer(witness, operation, request)
        assert ours == theirs, f"seed {seed}, request {number}: {operation} {json.dumps(request)}"
        refused += isinstance(ours, tuple) and len(ours) == 3
    assert contents(model) == contents(witness)
    return refused


@pytest.mark.parametrize("seed", range(6))
def test_the_model_and_moto_answer_random_requests_alike(model: Any, moto: Any, seed: int) -> None:
    refused = compare(model, moto, seed, 150)

    assert 15 < refused < 135, "both outcomes must be common, or nothing is compared"


@pytest.mark.parametrize("seed", range(100, 104))
def test_the_model_and_ministack_answer_random_requests_alike(model: Any, ministack: Any, seed: int) -> None:
    empty(ministack)

    refused = compare(model, ministack, seed, 150)

    assert 15 < refused < 135, "both outcomes must be common, or nothing is compared"
