"""Contradictions are rejected with both values, and errors name missing values."""

import math
from dataclasses import replace
from typing import Any

import pytest

from stacks.settings import AWS_TIMES, LAPTOP_TIMES, STRIPE, Settings, Stage, Throughput, settings_from
from stacks.times import ANSWER_S, DAY_S, Client, RequestBudget, SettingsError
from tests.harness.synth import ROOT, SECRET_ARN

PROD = {"stage": "prod", "sender": "orders@prod.example", "provider_secret_arn": SECRET_ARN}
ROLE = "arn:aws:iam::123456789012:role/partner"
SANDBOX = {"stage": "sandbox", "sender": "orders@sandbox.example"}


def settings_of(context: dict[str, str]) -> Settings:
    return settings_from(context.get)


@pytest.mark.parametrize(
    ("changed", "values"),
    [
        ({"spare_s": 0.5}, ["0.5", "1 s"]),
        ({"lease_skew_s": 0}, ["0 s", "1 s"]),
        ({"backoff_base_s": 0}, ["base 0 s", "cap 4 s"]),
        ({"backoff_base_s": 5}, ["base 5 s", "cap 4 s"]),
        ({"dlq_retention_s": 7 * DAY_S}, ["DLQ retention 604800 s", "source retention 604800 s"]),
        ({"dlq_retention_s": 15 * DAY_S}, ["DLQ retention 1296000 s", "at most 1209600 s"]),
        ({"sweep_age_s": 23 * DAY_S}, ["sweep age 1987200 s", "record TTL 1900800 s"]),
    ],
)
def test_times_that_contradict_each_other_are_rejected_with_both_values(
    changed: dict[str, Any], values: list[str]
) -> None:
    with pytest.raises(SettingsError) as refused:
        replace(LAPTOP_TIMES, **changed)
    assert all(value in str(refused.value) for value in values), refused.value


@pytest.mark.parametrize(
    ("changed", "values"),
    [
        ({"aws": Client(connect_s=1, read_s=300)}, ["timeout 1209 s", "limit 900 s"]),
        ({"lease_skew_s": 40}, ["visibility 48 s", "lease up to 48 s"]),
        ({"outage_s": 7200}, ["outage of 7200 s", "3602 receives", "1000", "1 to 4 s"]),
        ({"source_retention_s": 600}, ["32 receives", "1536 s", "source retention is 600 s"]),
    ],
)
def test_times_that_do_not_fit_a_function_are_rejected_with_both_values(
    changed: dict[str, Any], values: list[str]
) -> None:
    times = replace(LAPTOP_TIMES, **changed)
    with pytest.raises(SettingsError) as refused:
        times.timing(RequestBudget(aws=4, provider=3))
    assert all(value in str(refused.value) for value in values), refused.value


def test_the_times_of_a_step_follow_from_its_requests() -> None:
    timing = AWS_TIMES.timing(RequestBudget(aws=4, provider=3), after=3, window_s=1, extra_s=2)
    assert timing.step_needs_s == 4 * 3 + 3 * 12 + 2
    assert timing.reserve_s == 3 * 3 + ANSWER_S
    assert timing.timeout_s == math.ceil(timing.step_needs_s + timing.reserve_s + AWS_TIMES.spare_s)
    assert timing.visibility_s == 6 * timing.timeout_s + 1


def test_an_account_has_an_outage_of_two_hours_and_a_laptop_one_of_a_minute() -> None:
    assert (AWS_TIMES.outage_s, LAPTOP_TIMES.outage_s) == (7200, 60)


def test_a_function_that_outlasts_its_caller_is_rejected_with_both_values() -> None:
    with pytest.raises(SettingsError, match=r"timeout 54 s .* limit 29 s"):
        AWS_TIMES.timing(RequestBudget(aws=4, provider=3), limit_s=29)


@pytest.mark.parametrize(
    ("throughput", "message"),
    [
        ({"batch_size": 0}, "batch size 0: SQS accepts 1 to 10"),
        ({"batch_size": 11}, "batch size 11: SQS accepts 1 to 10"),
        ({"max_concurrency": 1}, "maximum concurrency 1: SQS accepts 2 to 1000"),
        ({"max_concurrency": 1001}, "maximum concurrency 1001: SQS accepts 2 to 1000"),
        ({"window_s": -1}, "window -1 s: SQS accepts 0 to 300 s"),
        ({"window_s": 301}, "window 301 s: SQS accepts 0 to 300 s"),
    ],
)
def test_a_throughput_that_sqs_does_not_accept_is_rejected(throughput: dict[str, int], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Throughput(**throughput)


@pytest.mark.parametrize(
    ("context", "changed", "values"),
    [
        (PROD, {"slow_s": 12}, ["stage prod", "slow_s=12"]),
        (PROD, {"provider_url": None}, ["stage prod", "provider_url=None"]),
        (PROD, {"provider_secret_arn": None}, ["stage prod", "provider_secret_arn=''"]),
        (PROD, {"provider_secret_arn": SECRET_ARN[:-7]}, ["stage prod", SECRET_ARN[:-7]]),
        (PROD, {"provider_secret_arn": "sk_live_AbCdEfGh"}, ["stage prod", "sk_live"]),
        (PROD, {"endpoint": "http://127.0.0.1:4566"}, ["stage prod", "http://127.0.0.1:4566"]),
        (PROD, {"api_rate": 201}, ["201", "200"]),
        (SANDBOX, {"provider_url": "https://api.stripe.com"}, ["stage sandbox", "https://api.stripe.com"]),
        (SANDBOX, {"provider_secret_arn": SECRET_ARN}, ["stage sandbox", SECRET_ARN]),
        (
            SANDBOX,
            {"provider_url": "https://api.stripe.com", "slow_s": None},
            ["stage sandbox", "provider_secret_arn=''"],
        ),
        ({}, {"provider_url": STRIPE, "slow_s": None}, ["stage local", STRIPE]),
        (SANDBOX, {"slow_s": 10}, ["takes 10 s", "waits 10 s"]),
        (SANDBOX, {"slow_s": None}, ["takes None s", "waits 10 s"]),
        (SANDBOX, {"sender_identity": "other.example"}, ["'orders@sandbox.example'", "'other.example'"]),
        (SANDBOX, {"configuration_set": "*"}, ["'*'", "SES accepts 1 to 64 letters"]),
        (SANDBOX, {"sender": "orders"}, ["'orders'", "email address"]),
        (SANDBOX, {"sender": "*@sandbox.example"}, ["'*@sandbox.example'", "email address"]),
        (SANDBOX, {"sender": "A <a@sandbox.example>"}, ["A <a@sandbox.example>", "email address"]),
        (SANDBOX, {"alarm_email": "a@"}, ["alarm_email 'a@'", "email address"]),
        (SANDBOX, {"producers": (f"{ROLE}?",)}, [f"'{ROLE}?'", "pattern"]),
        (SANDBOX, {"producers": ("123456789012",)}, ["'123456789012'", "ARN"]),
        (SANDBOX, {"operators": ("*",)}, ["'*'", "ARN"]),
        (SANDBOX, {"producers": (f"{ROLE}*",)}, [f"'{ROLE}*'", "pattern"]),
        *(
            (PROD, {"operators": (wrong,)}, [f"'{wrong}'", "A session (assumed-role) and a whole account"])
            for wrong in (
                "arn:aws:sts::123456789012:assumed-role/ops/me",
                "arn:aws:iam::123456789012:root",
                "arn:aws:iam::123456789012:role/*",
                "arn:*",
            )
        ),
        (PROD, {"runbook_url": "http://wiki.example/runbook"}, ["'http://wiki.example/runbook'", "https://"]),
    ],
)
def test_settings_that_contradict_each_other_are_rejected_with_both_values(
    context: dict[str, str], changed: dict[str, Any], values: list[str]
) -> None:
    settings = settings_of(context)
    with pytest.raises(SettingsError) as refused:
        replace(settings, **changed)
    assert all(value in str(refused.value) for value in values), refused.value


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"stage": "sandbox"}, "stage sandbox needs sender: add `-c sender="),
        ({"stage": "prod"}, "stage prod needs sender: add `-c sender="),
        (
            {"stage": "prod", "sender": "a@b.example"},
            "prod needs provider_secret_arn: add `-c provider_secret_arn=",
        ),
        ({"stage": "dev"}, "stage 'dev' is unknown: -c stage=local, sandbox or prod"),
        (SANDBOX | {"provider_secret_arn": "sk_test_1"}, "needs the complete ARN"),
        (SANDBOX | {"endpoint": "http://127.0.0.1:4566"}, "only stage local has an endpoint"),
        (PROD | {"endpoint": "http://127.0.0.1:4566"}, "only stage local has an endpoint"),
        ({"provider_secret_arn": SECRET_ARN}, "only stages sandbox and prod may have a real provider"),
    ],
)
def test_an_error_names_a_missing_or_contradicting_context_value(context: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings_of(context)


def test_the_default_stage_is_local() -> None:
    assert settings_of({}).stage is Stage.LOCAL


def test_commas_separate_principals() -> None:
    roles = [f"arn:aws:iam::123456789012:role/{name}" for name in ("a", "b", "c")]
    settings = settings_of(PROD | {"producers": f"{roles[0]}, {roles[1]}", "operators": roles[2]})
    assert settings.producers == (roles[0], roles[1])
    assert settings.operators == (roles[2],)


def test_an_operator_can_be_every_role_of_a_permission_set_of_identity_center() -> None:
    pattern = "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_Ops_*"
    assert settings_of(PROD | {"operators": pattern}).operators == (pattern,)


def test_by_default_there_are_no_producers_and_no_operators() -> None:
    assert settings_of(PROD).producers == settings_of(PROD).operators == ()


def test_every_throughput_in_prod_belongs_to_a_consumer() -> None:
    for function in settings_of(PROD).throughputs:
        assert "sqs_handler(" in (ROOT / "functions" / function / "handler.py").read_text()
