"""Every function: environment, role, logs, layers."""

import importlib
from typing import Any

import pytest

from shared.idempotency import Step, no_guard
from stacks.times import NO_GUARD
from tests.harness.synth import ROOT, SECRET_ARN, Synthesised

EVERY = {
    "STAGE",
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOG_LEVEL",
    "CLIENT_CONNECT_TIMEOUT_S",
    "CLIENT_READ_TIMEOUT_S",
}
CORE = {"IDEMPOTENCY_TABLE", "ORDERS_TABLE", "RECORD_TTL_S", "LEASE_SKEW_S", "STEP_NEEDS_S", "RESERVE_S"}
CONSUMER = CORE | {"QUEUE_URL", "DLQ_URL", "BACKOFF_BASE_S", "BACKOFF_CAP_S", "CONCURRENCY"}
VARIABLES = {
    "api": CORE,
    "order": CONSUMER,
    "payment": CONSUMER
    | {
        "PROVIDER_URL",
        "PROVIDER_SECRET_ARN",
        "PROVIDER_LIVEMODE",
        "PROVIDER_CONNECT_TIMEOUT_S",
        "PROVIDER_READ_TIMEOUT_S",
    },
    "email": CONSUMER | {"RECEIPTS_BUCKET", "SENDER"},
    "relay": {"ROUTES", "DLQ_URL", "RESERVE_S"},
    "sweep": {"ROUTES", "ORDERS_TABLE", "OPEN_ORDERS_INDEX", "SWEEP_AGE_S", "RESERVE_S"},
    "payment_sandbox": {"LEDGER_TABLE", "SLOW_S"},
}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def allowed(synthesised: Synthesised, function: str) -> dict[str, list[str]]:
    """Return all actions that the role of a function allows, by resource."""
    role = synthesised.functions[function].removesuffix("Function") + "Role"
    found: dict[str, list[str]] = {}
    for statement in synthesised.one("AWS::IAM::Policy", f"{role}/DefaultPolicy")["PolicyDocument"]["Statement"]:
        assert statement["Effect"] == "Allow"
        for resource in as_list(statement["Resource"]):
            found[resource] = sorted(found.get(resource, []) + as_list(statement["Action"]))
    return found


def test_in_the_sandbox_of_ses_only_the_sender_may_send_emails(sandbox: Synthesised) -> None:
    policy = sandbox.one("AWS::IAM::Policy", "Emails/EmailRole/DefaultPolicy")["PolicyDocument"]["Statement"]
    assert {
        "Action": "ses:SendEmail",
        "Condition": {"StringEquals": {"ses:FromAddress": "orders@sandbox.example"}},
        "Effect": "Allow",
        "Resource": "arn:<AWS::Partition>:ses:<AWS::Region>:<AWS::AccountId>:identity/*",
    } in policy


def test_every_function_has_a_role_of_its_own_without_managed_policies(any_stage: Synthesised) -> None:
    for path in any_stage.functions.values():
        role = path.removesuffix("Function") + "Role"
        assert any_stage.one("AWS::Lambda::Function", path)["Role"] == f"<{role}.Arn>"
        assert "ManagedPolicyArns" not in any_stage.one("AWS::IAM::Role", role)


def test_every_function_folder_is_deployed(any_stage: Synthesised) -> None:
    sandbox = {"payment_sandbox"} if any_stage.stage == "prod" else set()
    assert set(any_stage.functions) == {path.parent.name for path in ROOT.glob("functions/*/handler.py")} - sandbox


@pytest.mark.parametrize("function", list(VARIABLES))
def test_a_functions_environment_is_what_it_reads(local: Synthesised, function: str) -> None:
    assert set(local.environment(local.functions[function])) == EVERY | VARIABLES[function]


def test_logs_and_metrics_name_function_and_stage(any_stage: Synthesised) -> None:
    for name, path in any_stage.functions.items():
        assert any_stage.environment(path)["POWERTOOLS_SERVICE_NAME"] == name
        assert any_stage.environment(path)["STAGE"] == any_stage.stage


def test_times_in_the_environment_are_plain_decimals(any_stage: Synthesised) -> None:
    for path in any_stage.functions.values():
        times = {name: value for name, value in any_stage.environment(path).items() if name.endswith("_S")}
        assert all(value.replace(".", "", 1).isdigit() for value in times.values()), times


def test_the_payment_function_gets_the_arn_of_the_secret_and_not_its_value(
    prod: Synthesised, sandbox: Synthesised
) -> None:
    assert prod.environment(prod.functions["payment"])["PROVIDER_SECRET_ARN"] == SECRET_ARN
    assert sandbox.environment(sandbox.functions["payment"])["PROVIDER_SECRET_ARN"] == "<ApiKey>"
    for template in (*prod.templates.values(), *sandbox.templates.values()):
        assert "{{resolve:" not in str(template)


def test_functions_run_on_arm_with_traces_and_the_handler_of_their_folder(any_stage: Synthesised) -> None:
    for name, path in any_stage.functions.items():
        function = any_stage.one("AWS::Lambda::Function", path)
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == "python3.13"
        assert function["TracingConfig"] == {"Mode": "Active"}
        assert function["Handler"] == f"functions.{name}.handler.handler"
        assert (ROOT / "functions" / name / "handler.py").exists()


@pytest.mark.parametrize(
    ("stage", "days", "kept"),
    [("local", 1, "Delete"), ("sandbox", 30, "Delete"), ("prod", 365, "RetainExceptOnCreate")],
)
def test_every_log_group_has_a_retention(synthesised: Any, stage: str, days: int, kept: str) -> None:
    found: Synthesised = synthesised(stage)
    logs = found.of_type("AWS::Logs::LogGroup")
    assert {group["RetentionInDays"] for group in logs.values()} == {days}
    assert set(found.policies_on_deletion("AWS::Logs::LogGroup").values()) == {kept}
    for path in found.functions.values():
        group = path.removesuffix("Function") + "Logs"
        assert found.one("AWS::Lambda::Function", path)["LoggingConfig"]["LogGroup"] == f"<{group}>"
        assert group in logs


def test_the_provider_is_the_sandbox_except_in_prod(any_stage: Synthesised) -> None:
    url = any_stage.environment(any_stage.functions["payment"])["PROVIDER_URL"]
    assert (
        url
        == {
            "local": "http://127.0.0.1:4999/_aws/lambda-url/url-id",
            "sandbox": "https://url-id.lambda-url.region.on.aws",
            "prod": "https://api.stripe.com",
        }[any_stage.stage]
    )


def test_only_the_payment_function_carries_the_providers_sdk(any_stage: Synthesised) -> None:
    for name, path in any_stage.functions.items():
        layers = set(any_stage.one("AWS::Lambda::Function", path)["Layers"])
        extra = {"<PaymentLayer>"} if name == "payment" and any_stage.stage != "local" else set()
        assert layers == {"<SharedLayer>"} | extra


def test_the_template_names_every_function_whose_step_has_no_guard(local: Synthesised) -> None:
    for consumer in local.consumers:
        module = importlib.import_module(f"functions.{consumer.function}.handler")
        [step] = [value for value in vars(module).values() if isinstance(value, Step)]
        assert (step.guard is no_guard) is (NO_GUARD in local.metadata(local.functions[consumer.function]))
