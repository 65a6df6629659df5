"""A deploy takes nothing away in silence that an earlier one was given."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.tooling.test_account import WHERE, given_to_cdk, no_settings, typing
from tools import account

__all__ = ["no_settings"]  # a fixture


class Deployed:
    """CloudFormation with the outputs of a stage that has two stacks."""

    def __init__(self, **outputs: str) -> None:
        self.outputs = outputs

    def client(self, service: str) -> "Deployed":
        assert service == "cloudformation"
        return self

    def describe_stacks(self, **asked: str) -> dict[str, Any]:
        name = asked["StackName"]
        if name not in ("effectively-once-prod-pipeline", "effectively-once-prod-observability"):
            message = f"Stack with id {name} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        ours = {key: value for key, value in self.outputs.items() if ("Producers" in key) == name.endswith("pipeline")}
        return {"Stacks": [{"Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in ours.items()]}]}


PARTNER = "arn:aws:iam::111122223333:role/partner"
BEFORE = replace(WHERE, session=Deployed(GivenProducers=PARTNER, GivenAlarmEmail="set"))


def test_a_deploy_that_would_take_away_what_was_deployed_stops_and_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALARM_EMAIL", "")  # which anybody's script may leave so
    with pytest.raises(account.Stop) as stopped:
        account.compared_values(BEFORE, "prod")
    assert f"PRODUCERS    {PARTNER}" in str(stopped.value)
    assert "ALARM_EMAIL  set" in str(stopped.value)
    assert "on purpose: PRODUCERS=none ALARM_EMAIL=none" in str(stopped.value)


def test_what_is_given_again_or_said_to_be_none_stops_no_deploy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRODUCERS", "arn:aws:iam::111122223333:role/another")
    monkeypatch.setenv("ALARM_EMAIL", "none")
    assert account.compared_values(BEFORE, "prod") == {
        "PRODUCERS": f"arn:aws:iam::111122223333:role/another (before: {PARTNER})",
        "ALARM_EMAIL": "none",
        "RUNBOOK_URL": "none",
        "OPERATORS": "none",
    }


def test_a_first_deploy_needs_no_optional_value() -> None:
    account.compared_values(BEFORE, "sandbox")
    account.compared_values(replace(WHERE, session=Deployed()), "prod")


def test_what_was_deployed_and_can_not_be_told_stops_the_deploy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: str) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks")

    session = Deployed()
    monkeypatch.setattr(session, "describe_stacks", refused)
    with pytest.raises(account.Stop, match=r"Cannot read the values .*.*AccessDenied"):
        account.compared_values(replace(WHERE, session=session), "prod")


def test_a_deploy_looks_at_what_was_deployed_before_it_asks_for_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENDER", "me@example.com")
    monkeypatch.setenv("PROVIDER_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:123456789012:secret:a-AbCdEf")
    monkeypatch.setattr(account, "current_account", lambda: BEFORE)
    with pytest.raises(account.Stop, match="would remove them"):
        account.deploy("prod")


def test_a_person_sees_each_optional_value_before_consent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typing(monkeypatch, "123456789012 eu-central-1 prod\n")
    monkeypatch.setenv("OPERATORS", PARTNER)
    monkeypatch.setenv("RUNBOOK_URL", "none")
    account.consent("Deploy", "prod", WHERE, account.compared_values(replace(WHERE, session=Deployed()), "prod"))
    shown = capsys.readouterr().out.splitlines()
    assert {"  PRODUCERS    none", "  ALARM_EMAIL  none", "  RUNBOOK_URL  none", f"  OPERATORS    {PARTNER}"} <= {
        *shown
    }


def test_none_does_not_reach_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRODUCERS", "none")
    commands = given_to_cdk(monkeypatch)
    account.cdk("synth", "prod", {})
    assert not [part for command in commands for part in command if part.startswith("producers=")]
