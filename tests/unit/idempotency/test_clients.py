"""The clients have explicit timeouts, and never send a request twice by themselves."""

from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from shared.idempotency import client, request_s
from shared.idempotency.runtime import Service, make_client
from tests.harness.interceptor import Fault, answer_lost, never_sent, refused
from tests.harness.layer_world import SERVICES, World

MAIL: dict[str, Any] = {
    "FromEmailAddress": "sender@example.com",
    "Destination": {},
    "Content": {"Simple": {"Subject": {"Data": "s"}, "Body": {"Text": {"Data": "t"}}}},
}
REQUESTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dynamodb": ("get_item", "GetItem", {"TableName": "idempotency", "Key": {"id": {"S": "1"}}}),
    "sqs": ("send_message", "SendMessage", {"QueueUrl": "DLQ", "MessageBody": "x"}),
    "s3": ("put_object", "PutObject", {"Bucket": "bucket", "Key": "k"}),
    "sesv2": ("send_email", "SendEmail", MAIL),
    "secretsmanager": ("get_secret_value", "GetSecretValue", {"SecretId": "s"}),
}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    "fault",
    [never_sent, answer_lost, refused("ThrottlingException"), refused("InternalServerError", 503)],
    ids=["no connection", "no answer", "throttled", "unavailable"],
)
def test_a_client_sends_a_request_once(world: World, service: Service, fault: Fault) -> None:
    method, operation, request = REQUESTS[service]
    if "QueueUrl" in request:
        request = {**request, "QueueUrl": world.queues["dlq"]}
    world.wire.plan(operation, fault)

    with pytest.raises((ClientError, BotoCoreError)):
        getattr(client(service), method)(**request)

    assert world.wire.count(operation) == 1


@pytest.mark.parametrize("service", SERVICES)
def test_a_client_has_the_timeouts_of_the_environment(world: World, service: Service) -> None:
    config = client(service).meta.config

    assert (config.connect_timeout, config.read_timeout) == (1.0, 2.0)
    assert request_s() == world.store.request_s == 3.0


def test_parameters_are_validated_except_in_lambda(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParamValidationError):
        client("sqs").send_message(QueueUrl=world.queues["dlq"], MessageBody=1)

    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "payment")
    in_lambda = make_client("sqs")
    world.wire.put_on(in_lambda)
    world.wire.plan("SendMessage", refused("MissingParameter"))
    with pytest.raises(ClientError, match="MissingParameter"):
        in_lambda.send_message(QueueUrl=world.queues["dlq"], MessageBody=1)
