"""The world itself: what a fault says happened on the wire is what happened."""

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from tests.harness.interceptor import Fault, answer_lost, cancelled, never_sent, refused
from tests.harness.moto_world import World


def put(world: World) -> None:
    put = {"TableName": "idempotency", "Item": {"id": {"S": "1"}}}
    world.dynamodb.transact_write_items(TransactItems=[{"Put": put}])


def test_a_message_that_is_sent_once_is_there_once(world: World) -> None:
    world.sqs.send_message(QueueUrl=world.queues["orders"], MessageBody="one")

    assert [message["Body"] for message in world.messages("orders")] == ["one"]


@pytest.mark.parametrize("fault", [refused("ThrottlingException"), cancelled("TransactionConflict"), never_sent])
def test_a_request_that_was_refused_or_never_sent_is_not_applied(world: World, fault: Fault) -> None:
    world.wire.plan("TransactWriteItems", fault)

    with pytest.raises((ClientError, ConnectTimeoutError)):
        put(world)

    assert world.record("1") is None


def test_a_request_whose_answer_is_lost_is_applied(world: World) -> None:
    world.wire.plan("TransactWriteItems", answer_lost)

    with pytest.raises(ReadTimeoutError):
        put(world)

    assert world.record("1")
