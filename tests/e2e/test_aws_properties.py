"""What the guarantees need from DynamoDB and SQS, asked of the local AWS: docs/aws-properties.md."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tools.local.ministack import MiniStack, free_port

WRITERS = 16
ROUNDS = 10
REFUSALS = {"ConditionalCheckFailedException", "TransactionCanceledException"}


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """Make clients of an AWS that holds nothing. No client sends a request again by itself."""
    ministack = MiniStack(tmp_path_factory.mktemp("properties"), free_port())
    ministack.start()
    settings: dict[str, Any] = {
        "region_name": "eu-west-1",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_session_token": ministack.token,
        "endpoint_url": ministack.endpoint,
        "config": Config(retries={"total_max_attempts": 1, "mode": "standard"}, max_pool_connections=WRITERS),
    }
    try:
        yield lambda service: boto3.client(service, **settings)  # type: ignore[call-overload]
    finally:
        ministack.stop()


@pytest.fixture(scope="module")
def dynamodb(aws: Callable[[str], Any]) -> Any:
    client = aws("dynamodb")
    client.create_table(
        TableName="records",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


@pytest.fixture
def queue(aws: Callable[[str], Any], request: pytest.FixtureRequest) -> "Queue":
    return Queue(aws("sqs"), request.node.name[-60:].replace("[", "-").replace("]", ""))


class Queue:
    """A queue and its DLQ. A message moves to the DLQ after two receives."""

    def __init__(self, client: Any, name: str) -> None:
        self.client = client
        self.dlq = client.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
        arn = client.get_queue_attributes(QueueUrl=self.dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "2"})
        self.url = client.create_queue(QueueName=name, Attributes={"RedrivePolicy": redrive})["QueueUrl"]

    def receive(self, url: str = "") -> list[dict[str, Any]]:
        """Return what is visible now. It is hidden for ten minutes."""
        found: list[dict[str, Any]] = self.client.receive_message(
            QueueUrl=url or self.url, MaxNumberOfMessages=10, VisibilityTimeout=600, AttributeNames=["All"]
        ).get("Messages", [])
        return found

    def show(self, message: dict[str, Any]) -> None:
        """Make a message visible at once."""
        self.client.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )


def race(write: Callable[[int], object]) -> int:
    """Let all writers write at once. Returns how many were not refused."""
    together = Barrier(WRITERS)

    def one(writer: int) -> bool:
        together.wait()
        try:
            write(writer)
        except ClientError as error:
            if error.response["Error"]["Code"] not in REFUSALS:
                raise
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        return sum(pool.map(one, range(WRITERS)))


def new(key: str, writer: int) -> dict[str, Any]:
    """A put of an item that must not exist."""
    item = {"id": {"S": key}, "writer": {"N": str(writer)}}
    return {"TableName": "records", "Item": item, "ConditionExpression": "attribute_not_exists(id)"}


def test_one_of_many_conditional_writes_wins(dynamodb: Any) -> None:
    for n in range(ROUNDS):

        def write(writer: int, key: str = f"single-{n}") -> None:
            dynamodb.put_item(**new(key, writer))

        assert race(write) == 1


def test_one_of_many_transactions_wins_and_a_strongly_consistent_read_sees_all_of_it(dynamodb: Any) -> None:
    for n in range(ROUNDS):
        keys = [f"first-{n}", f"second-{n}"]

        def write(writer: int, keys: list[str] = keys) -> None:
            dynamodb.transact_write_items(TransactItems=[{"Put": new(key, writer)} for key in keys])

        assert race(write) == 1
        found = [
            dynamodb.get_item(TableName="records", Key={"id": {"S": key}}, ConsistentRead=True)["Item"] for key in keys
        ]
        assert found[0]["writer"] == found[1]["writer"]


def test_a_received_message_is_hidden_until_it_is_shown_and_gone_once_it_is_deleted(queue: Queue) -> None:
    sent = queue.client.send_message(QueueUrl=queue.url, MessageBody="once")["MessageId"]
    (first,) = queue.receive()
    assert queue.receive() == []
    queue.show(first)
    (second,) = queue.receive()

    assert [each["MessageId"] for each in (first, second)] == [sent, sent]
    assert [each["Attributes"]["ApproximateReceiveCount"] for each in (first, second)] == ["1", "2"]
    assert first["ReceiptHandle"] != second["ReceiptHandle"]
    with pytest.raises(ClientError, match="ReceiptHandleIsInvalid"):
        queue.show(first)  # AWS may accept it

    queue.client.delete_message(QueueUrl=queue.url, ReceiptHandle=second["ReceiptHandle"])
    assert queue.receive() == []
    assert queue.receive(queue.dlq) == []


def test_a_message_moves_to_the_dlq_when_it_was_received_too_often(queue: Queue) -> None:
    queue.client.send_message(QueueUrl=queue.url, MessageBody="poison")
    for _ in range(2):
        (message,) = queue.receive()
        queue.show(message)

    assert queue.receive() == []
    (parked,) = queue.receive(queue.dlq)
    assert parked["Body"] == "poison"


def test_each_entry_of_a_batch_has_its_own_result(queue: Queue) -> None:
    entries = [{"Id": "0", "MessageBody": "fine"}, {"Id": "1", "MessageBody": "not a character: \x01"}]

    answer = queue.client.send_message_batch(QueueUrl=queue.url, Entries=entries)

    assert [entry["Id"] for entry in answer["Successful"]] == ["0"]
    assert [entry["Id"] for entry in answer["Failed"]] == ["1"]
    assert [message["Body"] for message in queue.receive()] == ["fine"]
