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

from tests.harness.tables import ORDERS_TABLE
from tests.schedules.dynamodb import Refused
from tests.schedules.expressions import Unmodelled
from tests.schedules.model import Model, read, response
from tests.schedules.random_requests import TABLES, RandomRequests
from tests.schedules.services import Queues
from tools.local.ministack import MiniStack, free_port

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
        call = read(event_name, request)
        return response(call, it.answer(call))

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


@pytest.fixture
def moto_orders() -> Iterator[Any]:
    """moto with the index of open orders."""
    with mock_aws():
        client: Any = boto3.client("dynamodb", **CLIENT)  # type: ignore[call-overload]
        client.create_table(**ORDERS_TABLE)
        yield client


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    directory: Path = tmp_path_factory.mktemp("ministack")
    stack = MiniStack(directory, free_port())
    stack.start()
    try:
        settings = CLIENT | {"endpoint_url": stack.endpoint, "aws_session_token": stack.token}
        client: Any = boto3.client("dynamodb", **settings)  # type: ignore[call-overload]
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


def compare(model: Any, other: Any, seed: int, requests: int) -> int:
    """Both answer the same requests; how many of them were refused."""
    draw = RandomRequests(seed)
    refused = 0
    for number in range(requests):
        operation, request = draw.request()
        ours, theirs = answer(model, operation, request), answer(other, operation, request)
        assert ours == theirs, f"seed {seed}, request {number}: {operation} {json.dumps(request)}"
        refused += isinstance(ours, tuple) and len(ours) == 3
    assert contents(model) == contents(other)
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


# What moto ignores and MiniStack honours: tokens, placeholders that no expression uses.


def put(key: str, text: str = "x") -> list[dict[str, Any]]:
    return [{"Put": {"TableName": "idempotency", "Item": {"id": {"S": key}, "s": {"S": text}}}}]


def test_a_transaction_sent_again_under_its_token_is_applied_once(model: Any, ministack: Any) -> None:
    items = [
        {
            "Update": {
                "TableName": "idempotency",
                "Key": {"id": {"S": "token"}},
                "UpdateExpression": "SET n = if_not_exists(n, :zero) + :one",
                "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}},
            }
        }
    ]
    for client in (model, ministack):
        for _ in range(3):
            client.transact_write_items(TransactItems=items, ClientRequestToken="same")

        item = client.get_item(TableName="idempotency", Key={"id": {"S": "token"}}, ConsistentRead=True)["Item"]
        assert item["n"] == {"N": "1"}


def test_a_token_used_for_another_request_is_a_mismatch(model: Any, ministack: Any) -> None:
    for client in (model, ministack):
        client.transact_write_items(TransactItems=put("mismatch"), ClientRequestToken="mine")

        said = answer(
            client, "TransactWriteItems", {"TransactItems": put("mismatch", "y"), "ClientRequestToken": "mine"}
        )

        assert said == ("IdempotentParameterMismatchException", None, [])


def test_moto_applies_a_transaction_each_time_and_lets_a_token_carry_another_request(moto: Any) -> None:
    """If this test fails, moto has learned about tokens: docs/aws-properties.md changes."""
    update = {
        "TableName": "idempotency",
        "Key": {"id": {"S": "token"}},
        "UpdateExpression": "SET n = if_not_exists(n, :zero) + :one",
        "ExpressionAttributeValues": {":zero": {"N": "0"}, ":one": {"N": "1"}},
    }
    for _ in range(3):
        moto.transact_write_items(TransactItems=[{"Update": update}], ClientRequestToken="same")
    moto.transact_write_items(TransactItems=put("other"), ClientRequestToken="same")

    items = {item["id"]["S"]: item for item in moto.scan(TableName="idempotency")["Items"]}
    assert items["token"]["n"] == {"N": "3"}
    assert "other" in items


def test_a_token_is_forgotten_after_ten_minutes(model: Any, clock: Clock) -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""
    model.transact_write_items(TransactItems=put("a"), ClientRequestToken="mine")
    clock.ms += 10 * 60 * 1000

    model.transact_write_items(TransactItems=put("a", "y"), ClientRequestToken="mine")

    assert model.get_item(TableName="idempotency", Key={"id": {"S": "a"}})["Item"]["s"] == {"S": "y"}


def test_a_cancelled_transaction_leaves_its_token_free(model: Any, ministack: Any) -> None:
    refused = [{"Put": {**put("free")[0]["Put"], "ConditionExpression": "attribute_exists(id)"}}]
    for client in (model, ministack):
        said = answer(client, "TransactWriteItems", {"TransactItems": refused, "ClientRequestToken": "free"})
        assert said == ("TransactionCanceledException", None, [("ConditionalCheckFailed", None)])

        client.transact_write_items(TransactItems=put("free"), ClientRequestToken="free")

        assert "Item" in client.get_item(TableName="idempotency", Key={"id": {"S": "free"}})


KEY = {"TableName": "idempotency", "Key": {"id": {"S": "a"}}}
SET = {"UpdateExpression": "SET s = :s", "ExpressionAttributeValues": {":s": {"S": "x"}}}
INVALID: dict[str, tuple[str, dict[str, Any]]] = {
    "a value that is not used": (
        "UpdateItem",
        {**KEY, **SET, "ExpressionAttributeValues": {":s": {"S": "x"}, ":unused": {"S": "x"}}},
    ),
    "a name that is not used": ("UpdateItem", {**KEY, **SET, "ExpressionAttributeNames": {"#unused": "x"}}),
    "a value that is not defined": ("UpdateItem", {**KEY, "UpdateExpression": "SET s = :undefined"}),
    "a copy of what is not there": ("UpdateItem", {**KEY, "UpdateExpression": "SET s = missing"}),
    "another key": ("UpdateItem", {**KEY, **SET, "UpdateExpression": "SET id = :s"}),
    "an empty key": ("GetItem", {"TableName": "idempotency", "Key": {"id": {"S": ""}}}),
    "a key of another table": ("GetItem", {"TableName": "idempotency", "Key": {"order_id": {"S": "a"}}}),
    "one item twice": ("TransactWriteItems", {"TransactItems": put("a") + put("a", "y")}),
    "an item over 400 KB": ("PutItem", {"TableName": "idempotency", "Item": put("a", "x" * 410_000)[0]["Put"]["Item"]}),
    "a token that is too long": ("TransactWriteItems", {"TransactItems": put("a"), "ClientRequestToken": "x" * 37}),
}


@pytest.mark.parametrize("what", INVALID)
def test_a_request_that_dynamodb_calls_invalid_is_refused(model: Any, what: str) -> None:
    operation, request = INVALID[what]

    assert answer(model, operation, request) == ("ValidationException", None, [])
    assert contents(model) == {"idempotency": [], "orders": []}


def test_numbers_come_back_in_their_one_spelling(model: Any) -> None:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html"""
    for text, spelled in (("1", "1"), ("7.0", "7"), ("0", "0"), ("-3", "-3"), ("1E+2", "100")):
        model.put_item(TableName="idempotency", Item={"id": {"S": "a"}, "n": {"N": text}})
        found = model.get_item(TableName="idempotency", Key={"id": {"S": "a"}})["Item"]["n"]["N"]
        assert found == spelled


def test_an_index_gives_its_items_page_by_page_in_order(model: Any, moto_orders: Any) -> None:
    for client in (model, moto_orders):
        for number, since in enumerate((30, 10, 20, 40, 50)):
            item = {"order_id": {"S": f"o{number}"}, "open_since": {"N": str(since)}, "open_shard": {"S": "open-1"}}
            client.put_item(TableName="orders", Item=item)
        client.put_item(TableName="orders", Item={"order_id": {"S": "closed"}})
        client.put_item(
            TableName="orders",
            Item={"order_id": {"S": "other"}, "open_since": {"N": "1"}, "open_shard": {"S": "open-2"}},
        )

    ours, theirs = (
        [
            [item["order_id"]["S"] for item in page["Items"]]
            for page in client.get_paginator("query").paginate(
                TableName="orders",
                IndexName="open-orders",
                KeyConditionExpression="open_shard = :shard AND open_since <= :before",
                ExpressionAttributeValues={":shard": {"S": "open-1"}, ":before": {"N": "40"}},
                ProjectionExpression="order_id",
                PaginationConfig={"PageSize": 2},
            )
        ]
        for client in (model, moto_orders)
    )

    assert [one for page in ours for one in page] == ["o1", "o2", "o0", "o3"]
    assert [page for page in ours if page] == [page for page in theirs if page]


def test_a_message_is_hidden_counted_and_deleted_by_its_newest_receipt_only(clock: Clock) -> None:
    queues = Queues(("q",), clock.now, lambda: "m", lambda *_: None)
    queues.put("q", {"MessageBody": "once"})

    def show(receipt: str) -> None:
        queues.call("ChangeMessageVisibility", {"QueueUrl": "q", "ReceiptHandle": receipt, "VisibilityTimeout": 0})

    (message,) = queues.receive("q", 600, 10)
    first = message.receipt
    assert queues.receive("q", 600, 10) == []
    show(first)
    (message,) = queues.receive("q", 600, 10)

    assert (message.receives, message.receipt != first) == (2, True)
    with pytest.raises(Refused, match="ReceiptHandleIsInvalid"):
        show(first)
    queues.delete("q", first)
    assert queues.waiting["q"] == [message]
    clock.ms += 600_000
    assert queues.receive("q", 600, 10) == [message]
    queues.delete("q", message.receipt)
    assert queues.waiting["q"] == []


def test_moto_accepts_an_old_receipt_as_aws_may() -> None:
    with mock_aws():
        sqs: Any = boto3.client("sqs", **CLIENT)  # type: ignore[call-overload]
        url = sqs.create_queue(QueueName="q")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="once")

        def receive() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = sqs.receive_message(QueueUrl=url, VisibilityTimeout=600).get("Messages", [])
            return found

        (first,) = receive()
        assert receive() == []
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)
        (second,) = receive()
        assert first["ReceiptHandle"] != second["ReceiptHandle"]

        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)

        assert len(receive()) == 1


def test_what_is_not_modelled_is_not_guessed(model: Any) -> None:
    for expression in ("size(s) > :n", "s BETWEEN :n AND :n", "a.b = :n", "contains(s, :n)"):
        with pytest.raises(Unmodelled):
            model.update_item(
                **KEY,
                UpdateExpression="SET s = :n",
                ConditionExpression=expression,
                ExpressionAttributeValues={":n": {"N": "1"}},
            )
