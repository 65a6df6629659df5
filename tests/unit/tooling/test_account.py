"""Nothing happens to a real account without its account, region and stage typed by a person."""

import io
import os
import socket
import subprocess
from dataclasses import dataclass, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tools import account
from tools.deploy_inputs import OPTIONAL
from tools.ses import find_identity

WHERE = account.Account("123456789012", "eu-central-1", "arn:aws:iam::123456789012:user/me", session=None)
STACK = "effectively-once-sandbox-stateful"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SENDER",
        "PROVIDER_SECRET_ARN",
        *OPTIONAL["prod"],
        *(name for name in os.environ if name.startswith("AWS_")),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def typing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_account_region_and_stage_typed_exactly_are_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    typing(monkeypatch, "123456789012 eu-central-1  sandbox\n")
    account.consent("Deploy", "sandbox", WHERE)


@pytest.mark.parametrize(
    "typed",
    ["", "yes\n", "sandbox\n", "123456789012 eu-west-1 sandbox\n", "123456789012 eu-central-1 prod\n"],
)
def test_anything_else_is_not(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    typing(monkeypatch, typed)
    with pytest.raises(account.Stop, match="nothing was done"):
        account.consent("Deploy", "sandbox", WHERE)


def test_without_a_region_it_says_how_to_set_one() -> None:
    with pytest.raises(account.Stop, match="AWS_REGION"):
        account.current_account()


def test_an_endpoint_of_a_local_stack_that_has_ended_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as nobody:  # bound, so that no other takes the port, and not listening
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://localhost:{nobody.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(account.Stop, match=f"Nothing listens at AWS_ENDPOINT_URL={endpoint}") as stopped:
            account.current_account()
    assert "unset AWS_ENDPOINT_URL" in str(stopped.value)


def test_an_endpoint_elsewhere_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("tried"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://sqs.eu-central-1.amazonaws.com")
    account.require_endpoint()


def test_without_credentials_it_says_how_to_get_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    with pytest.raises(account.Stop, match="no AWS credentials"):
        account.current_account()


@pytest.mark.parametrize("command", ["deploy", "destroy"])
def test_local_is_no_stage_of_an_account(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["make", command, "local"])
    assert account.main() == 1
    assert f"make {command} STAGE=sandbox|prod" in capsys.readouterr().err


@dataclass
class FakeSession:
    """An account with some SES identities, and a stack, if it was ever deployed, with some resources.

    A resource is told by its id and its status, where this is not that of one that is there.
    """

    identities: tuple[str, ...] = ()
    stack: tuple[str, ...] | None = None
    through: str | None = None  # the identities' default configuration set

    def client(self, _: str) -> "FakeSession":
        return self

    def get_email_identity(self, EmailIdentity: str) -> dict[str, Any]:  # noqa: N803
        if EmailIdentity not in self.identities:
            raise ClientError({"Error": {"Code": "NotFoundException"}}, "GetEmailIdentity")
        return {"VerifiedForSendingStatus": True, **({"ConfigurationSetName": self.through} if self.through else {})}

    def describe_stack_resources(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        assert StackName == STACK
        if self.stack is None:
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStackResources")
        return {"StackResources": [self._resource(*told.split()) for told in self.stack]}

    def _resource(self, id: str, status: str = "CREATE_COMPLETE") -> dict[str, str]:
        kind = "AWS::SES::EmailIdentity" if "@" in id else "AWS::DynamoDB::Table"
        return {"ResourceType": kind, "PhysicalResourceId": id, "ResourceStatus": status}


@pytest.mark.parametrize(
    ("identities", "stack", "known"),
    [
        ((), None, None),
        (("other.example",), None, None),
        (("me@example.com",), None, "me@example.com"),
        (("example.com",), None, "example.com"),
        (("example.com", "me@example.com"), ("orders",), "me@example.com"),
        (("me@example.com",), ("orders", "me@example.com"), None),
        (("me@example.com",), ("me@example.com UPDATE_COMPLETE",), None),
        (("me@example.com",), ("before@example.com",), "me@example.com"),
        (("me@example.com",), ("me@example.com DELETE_COMPLETE",), "me@example.com"),
    ],
)
def test_an_identity_that_somebody_else_made_is_used_and_not_made_again(
    identities: tuple[str, ...], stack: tuple[str, ...] | None, known: str | None
) -> None:
    found = find_identity(FakeSession(identities, stack), "me@example.com", STACK)
    assert (found.name if found and not found.is_from_stack else None) == known


def given_to_cdk(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands of the CDK CLI, which does nothing, as they are given."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


@pytest.mark.parametrize(("stage", "passed"), [("sandbox", ["producers"]), ("prod", ["producers", "operators"])])
def test_producers_and_operators_reach_the_stages_that_know_them(
    monkeypatch: pytest.MonkeyPatch, stage: str, passed: list[str]
) -> None:
    arn = "arn:aws:iam::111122223333:role/partner"
    monkeypatch.setenv("PRODUCERS", arn)
    monkeypatch.setenv("OPERATORS", arn)
    commands = given_to_cdk(monkeypatch)

    account.cdk("synth", stage, {})

    (command,) = commands
    assert [name for name in ("producers", "operators") if f"{name}={arn}" in command] == passed


@pytest.mark.parametrize(
    ("identity", "stack", "through", "context"),
    [
        ("example.com", None, "theirs", ["sender_identity=example.com", "configuration_set=theirs"]),
        ("example.com", None, None, ["sender_identity=example.com"]),
        ("me@example.com", ("me@example.com",), "theirs", ["configuration_set=theirs"]),
    ],
)
def test_an_existing_identity_reaches_the_stacks_with_its_default_configuration_set(
    monkeypatch: pytest.MonkeyPatch,
    identity: str,
    stack: tuple[str, ...] | None,
    through: str | None,
    context: list[str],
) -> None:
    where = replace(WHERE, session=FakeSession((identity,), stack, through))
    monkeypatch.setattr(account, "current_account", lambda: where)
    monkeypatch.setenv("SENDER", "me@example.com")
    commands = given_to_cdk(monkeypatch)
    account.diff("sandbox")
    (command,) = commands
    assert [part for part in command if part.startswith(("sender_identity=", "configuration_set="))] == context
