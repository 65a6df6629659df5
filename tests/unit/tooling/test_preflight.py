"""`make preflight`: what it finds in an account, asked through botocore's own clients with stubbed answers."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from stacks.settings import Settings, settings_from
from tools import account, preflight
from tools.preflight import Inputs, Level
from tools.ses import Identity

ACCOUNT, REGION = "123456789012", "eu-central-1"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:stripe-AbCdEf"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/partner"


def settings(stage: str = "sandbox", **context: str) -> Settings:
    values = {"stage": stage, "sender": "orders@shop.example", **context}
    if stage == "prod":
        values.setdefault("provider_secret_arn", SECRET)
    return settings_from(values.get)


class Account:
    """A session whose clients give stubbed answers. botocore checks each request and answer against its own models."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._clients: dict[str, Any] = {}
        self._stubs: dict[str, Stubber] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            made: Any = boto3.client(service, REGION, aws_access_key_id="a", aws_secret_access_key="b")  # type: ignore[call-overload]
            self._clients[service] = made
            self._stubs[service] = self._stack.enter_context(Stubber(made))
        return self._clients[service]

    def answers(self, service: str, operation: str, answer: dict[str, Any] | str) -> None:
        """Add an answer, or an error code."""
        self.client(service)
        if isinstance(answer, str):
            self._stubs[service].add_client_error(operation, answer)
        else:
            self._stubs[service].add_response(operation, answer)


@pytest.fixture
def aws() -> Iterator[Account]:
    with ExitStack() as stack:
        yield Account(stack)


def found(check: preflight.Check, aws: Account, of: Settings | None = None, **inputs: Any) -> list[tuple[Level, str]]:
    given = Inputs(aws, ACCOUNT, REGION, of or settings(), **inputs)
    return [(result.level, result.text) for result in preflight.run(given, [check])]


@pytest.mark.parametrize(
    ("region", "stage", "level"),
    [
        ("eu-central-1", "sandbox", Level.OK),
        ("ca-west-1", "sandbox", Level.STOP),  # no function URLs
        ("ca-west-1", "prod", Level.OK),
        ("eu-south-2", "prod", Level.STOP),  # no SES identities
    ],
)
def test_a_region_without_a_service_of_the_stage_stops_the_deploy(region: str, stage: str, level: Level) -> None:
    inputs = Inputs(None, ACCOUNT, region, settings(stage))
    assert [result.level for result in preflight.run(inputs, [preflight.region])] == [level]


@pytest.mark.parametrize(("answer", "level"), [({}, Level.OK), ("ParameterNotFound", Level.STOP)])
def test_an_account_without_bootstrap_gets_the_command(
    aws: Account, answer: dict[str, Any] | str, level: Level
) -> None:
    aws.answers("ssm", "get_parameter", answer)
    [(result, text)] = found(preflight.bootstrap, aws)
    assert result == level
    assert ("cdk bootstrap aws://123456789012/eu-central-1" in text) is (level is Level.STOP)


@pytest.mark.parametrize(("limit", "level"), [(1000, Level.OK), (10, Level.NOTE)])
def test_a_small_concurrency_limit_is_compared_with_the_need_of_the_stage(
    aws: Account, limit: int, level: Level
) -> None:
    aws.answers("lambda", "get_account_settings", {"AccountLimit": {"ConcurrentExecutions": limit}})
    [(result, text)] = found(preflight.concurrency, aws)
    assert result == level
    assert f"the limit is {limit}, the stage uses up to {preflight.executions(settings())}" in text


@pytest.mark.parametrize(
    ("stage", "production", "sending", "level"),
    [
        ("sandbox", True, True, Level.OK),
        ("sandbox", False, True, Level.NOTE),
        ("prod", False, True, Level.STOP),
        ("prod", True, False, Level.STOP),
    ],
)
def test_prod_needs_production_access_to_ses(
    aws: Account, stage: str, production: bool, sending: bool, level: Level
) -> None:
    aws.answers("sesv2", "get_account", {"ProductionAccessEnabled": production, "SendingEnabled": sending})
    assert [each for each, _ in found(preflight.email_account, aws, settings(stage))] == [level]


@pytest.mark.parametrize(
    ("identity", "text"),
    [
        (None, "The deploy creates one"),
        (Identity("orders@shop.example", verified=False), "follow the link"),
        (Identity("shop.example", verified=False), "publish the DNS records"),
    ],
)
def test_a_sender_that_cannot_send_yet_says_what_to_do(aws: Account, identity: Identity | None, text: str) -> None:
    [(level, found_text)] = found(preflight.sender, aws, identity=identity)
    assert level is Level.NOTE
    assert text in found_text


def test_a_free_email_address_is_a_bad_sender(aws: Account) -> None:
    identity = Identity("me@gmail.com", verified=True)
    [(level, text), ok] = found(preflight.sender, aws, replace(settings(), sender="me@gmail.com"), identity=identity)
    assert level is Level.NOTE
    assert "domain of your own" in text
    assert ok == (Level.OK, "SES has the verified identity me@gmail.com")


def secret(aws: Account, value: str, **description: str) -> None:
    aws.answers("secretsmanager", "describe_secret", {"ARN": SECRET, **description})
    aws.answers("secretsmanager", "get_secret_value", {"SecretString": value})


@pytest.mark.parametrize(
    ("stage", "value", "level"),
    [
        ("prod", "sk_live_123", Level.OK),
        ("prod", '{"STRIPE_KEY": "rk_live_123"}', Level.OK),
        ("prod", "sk_test_123", Level.STOP),
        ("prod", "x_123", Level.STOP),
        ("prod", "\u200bsk_live_123", Level.STOP),
        ("sandbox", "sk_test_123", Level.OK),
        ("sandbox", "rk_live_123", Level.STOP),
    ],
)
def test_the_key_has_the_mode_of_the_stage_and_is_not_printed(
    aws: Account, stage: str, value: str, level: Level
) -> None:
    secret(aws, value)
    [(result, text)] = found(preflight.provider_secret, aws, settings(stage, provider_secret_arn=SECRET))
    assert result == level
    assert "123" not in text


def test_a_secret_under_a_key_of_the_customer_needs_a_grant(aws: Account) -> None:
    secret(aws, "rk_live_1", KmsKeyId="arn:aws:kms:eu-central-1:123456789012:key/1")
    [(note, text), (ok, _)] = found(preflight.provider_secret, aws, settings("prod"))
    assert (note, ok) == (Level.NOTE, Level.OK)
    assert "kms:Decrypt" in text


def test_a_secret_that_does_not_exist_stops_the_deploy(aws: Account) -> None:
    aws.answers("secretsmanager", "describe_secret", "ResourceNotFoundException")
    [(level, text)] = found(preflight.provider_secret, aws, settings("prod"))
    assert level is Level.STOP
    assert "does not exist" in text


def test_a_secret_of_another_region_stops_the_deploy(aws: Account) -> None:
    arn = SECRET.replace(REGION, "us-east-1")
    [(level, text)] = found(preflight.provider_secret, aws, settings("prod", provider_secret_arn=arn))
    assert level is Level.STOP
    assert "us-east-1" in text


@pytest.mark.parametrize(
    ("answer", "level"),
    [
        ({"Role": {"Path": "/", "RoleName": "partner", "RoleId": "A" * 16, "Arn": ROLE, "CreateDate": 0}}, Level.OK),
        ("NoSuchEntity", Level.STOP),
    ],
)
def test_a_producer_that_does_not_exist_stops_the_deploy(
    aws: Account, answer: dict[str, Any] | str, level: Level
) -> None:
    aws.answers("iam", "get_role", answer)
    assert [each for each, _ in found(preflight.principals, aws, settings(producers=ROLE))] == [level]


def test_a_producer_of_another_account_cannot_be_checked(aws: Account) -> None:
    [(level, text)] = found(preflight.principals, aws, settings(producers=ROLE.replace(ACCOUNT, "111122223333")))
    assert level is Level.NOTE
    assert "cannot be checked" in text


@pytest.mark.parametrize(
    ("subscription", "level"),
    [("arn:aws:sns:eu-central-1:1:t:1", Level.OK), ("PendingConfirmation", Level.NOTE), (None, Level.NOTE)],
)
def test_a_subscription_that_nobody_confirmed_is_a_note(aws: Account, subscription: str | None, level: Level) -> None:
    address = "oncall@shop.example"
    listed = [{"Endpoint": address, "SubscriptionArn": subscription}] if subscription else []
    aws.answers("sns", "list_subscriptions_by_topic", {"Subscriptions": listed})
    of = settings(alarm_email=address)
    topic = "arn:aws:sns:eu-central-1:123456789012:alarms"
    assert [each for each, _ in found(preflight.alarm_subscription, aws, of, alarm_topic=topic)] == [level]


def test_what_aws_refuses_to_answer_is_a_note_with_the_code(aws: Account) -> None:
    aws.answers("lambda", "get_account_settings", "AccessDeniedException")
    assert found(preflight.concurrency, aws) == [
        (Level.NOTE, "cannot be checked: AccessDeniedException at GetAccountSettings")
    ]


def test_a_result_with_stop_ends_the_deploy_before_anything_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SENDER", "orders@shop.example")
    monkeypatch.setattr(account, "find_identity", lambda *_: None)
    monkeypatch.setattr(account, "outputs", lambda *_: {})

    class Session:
        def client(self, _: str) -> None:
            return None

    where = account.Account(ACCOUNT, "eu-south-2", f"arn:aws:iam::{ACCOUNT}:user/me", Session())
    monkeypatch.setattr(account, "current_account", lambda: where)
    monkeypatch.setattr(preflight, "CHECKS", (preflight.region,))

    with pytest.raises(account.Stop, match="1 of these results"):
        account.deploy("sandbox")
    assert "eu-south-2 has no SES identities" in capsys.readouterr().out


def stack(status: str, protected: bool) -> dict[str, Any]:
    return {
        "Stacks": [
            {"StackName": "s", "CreationTime": 0, "StackStatus": status, "EnableTerminationProtection": protected}
        ]
    }


@pytest.mark.parametrize(("status", "unprotected"), [("ROLLBACK_COMPLETE", True), ("UPDATE_ROLLBACK_COMPLETE", False)])
def test_only_a_stack_whose_first_deploy_failed_loses_its_protection(
    aws: Account, status: str, unprotected: bool
) -> None:
    for answer in [stack(status, protected=True)] * 4:
        aws.answers("cloudformation", "describe_stacks", answer)
        if unprotected:
            aws.answers("cloudformation", "update_termination_protection", {"StackId": "s"})
    account.allow_another_first_deploy(account.Account(ACCOUNT, REGION, "me", aws), "prod")
