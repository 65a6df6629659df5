"""Data that stays, the relay and the sweep, the API, the payment sandbox, and what clients are told."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack

from stacks.constructs.api import Api
from stacks.deploy_inputs import output_name
from stacks.sandbox import SandboxStack
from stacks.settings import settings_from
from stacks.stateful import StatefulStack
from stacks.times import Client, SettingsError
from tests.harness.synth import FLAGS, STAGES, Synthesised, new_app, synthesise
from tests.stacks.test_functions import as_list
from tools.deploy_inputs import OPTIONAL
from tools.deployed import STACKS, stack_name


def test_prod_keeps_its_data_whatever_is_destroyed(prod: Synthesised) -> None:
    assert prod.policies_on_deletion("AWS::DynamoDB::Table") == {"Idempotency": "Retain", "Orders": "Retain"}
    assert prod.policies_on_deletion("AWS::S3::Bucket") == {"Receipts": "Retain"}
    for table in prod.of_type("AWS::DynamoDB::Table").values():
        assert table["DeletionProtectionEnabled"] is True


@pytest.mark.parametrize("stage", ["local", "sandbox"])
def test_elsewhere_all_goes_when_it_is_destroyed(synthesised: Any, stage: str) -> None:
    found: Synthesised = synthesised(stage)
    for type_ in ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret", "AWS::SQS::Queue"):
        assert set(found.policies_on_deletion(type_).values()) == {"Delete"}
    assert bool(found.of_type("Custom::S3AutoDeleteObjects")) is (stage == "sandbox")


def test_both_tables_are_encrypted_billed_by_use_and_can_be_restored(any_stage: Synthesised) -> None:
    for name in ("Idempotency", "Orders"):
        table = any_stage.one("AWS::DynamoDB::Table", name)
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["SSESpecification"] == {"SSEEnabled": True}
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_idempotency_records_expire_and_are_streamed_as_they_become(any_stage: Synthesised) -> None:
    table = any_stage.one("AWS::DynamoDB::Table", "Idempotency")
    assert table["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expiration", "Enabled": True}
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}


def test_orders_never_expire_and_open_ones_are_found_by_age(any_stage: Synthesised) -> None:
    table = any_stage.one("AWS::DynamoDB::Table", "Orders")
    assert table["KeySchema"] == [{"AttributeName": "order_id", "KeyType": "HASH"}]
    assert "TimeToLiveSpecification" not in table
    assert table["GlobalSecondaryIndexes"] == [
        {
            "IndexName": "open-orders",
            "KeySchema": [
                {"AttributeName": "open_shard", "KeyType": "HASH"},
                {"AttributeName": "open_since", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ]
    assert {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]} == {
        "order_id": "S",
        "open_shard": "S",
        "open_since": "N",
    }


def test_receipts_are_encrypted_private_and_behind_tls(any_stage: Synthesised) -> None:
    bucket = any_stage.one("AWS::S3::Bucket", "Receipts")
    assert "BucketEncryption" in bucket
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert {
        "Action": "s3:*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Resource": ["<Receipts.Arn>", "<Receipts.Arn>/*"],
    } in any_stage.one("AWS::S3::BucketPolicy", "Receipts/Policy")["PolicyDocument"]["Statement"]


def test_mail_comes_from_an_identity_of_the_stack(any_stage: Synthesised) -> None:
    sender = any_stage.environment("Emails/EmailFunction")["SENDER"]
    assert any_stage.one("AWS::SES::EmailIdentity", "Sender") == {"EmailIdentity": sender}


def test_an_identity_that_is_there_already_is_used_and_not_made(tmp_path: Path) -> None:
    sandbox = synthesise(tmp_path, "sandbox", sender="a@there.example", sender_identity="there.example")

    assert not sandbox.of_type("AWS::SES::EmailIdentity")


def mail_rights(found: Synthesised) -> list[str]:
    """On which of SES's resources mail may be sent."""
    return [
        resource
        for policy in found.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "ses:SendEmail"
        for resource in as_list(statement["Resource"])
    ]


def test_in_prod_mail_goes_out_under_the_identity_that_is_there_already(tmp_path: Path) -> None:
    given = STAGES["prod"] | {"sender": "a@there.example", "sender_identity": "there.example"}
    prod = synthesise(tmp_path, "prod", **given)

    assert [resource.endswith(":identity/there.example") for resource in mail_rights(prod)] == [True]


@pytest.mark.parametrize("stage", ["sandbox", "prod"])
def test_mail_may_go_through_the_identitys_default_configuration_set(tmp_path: Path, stage: str) -> None:
    sender = {"sender": "a@there.example", "sender_identity": "there.example", "configuration_set": "ours_1-a"}
    found = synthesise(tmp_path, stage, **STAGES[stage] | sender)

    through, _ = mail_rights(found)
    assert through == "arn:<AWS::Partition>:ses:<AWS::Region>:<AWS::AccountId>:configuration-set/ours_1-a"


def test_without_a_configuration_set_mail_may_go_through_none(any_stage: Synthesised) -> None:
    (only,) = mail_rights(any_stage)
    assert ":identity/" in only


def test_the_relay_reads_everything_and_one_bad_record_never_blocks_it_for_long(any_stage: Synthesised) -> None:
    mapping = any_stage.one("AWS::Lambda::EventSourceMapping", "Relaying/Mapping")
    assert mapping["EventSourceArn"] == "<Idempotency.StreamArn>"
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] <= 10
    assert mapping["DestinationConfig"] == {"OnFailure": {"Destination": "<Relaying/Failures.Arn>"}}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_relay_gives_a_record_up_when_the_sweep_has_taken_over(any_stage: Synthesised) -> None:
    mapping = any_stage.one("AWS::Lambda::EventSourceMapping", "Relaying/Mapping")
    sweep_age = int(any_stage.environment("Sweeping/SweepFunction")["SWEEP_AGE_S"])
    assert mapping["MaximumRecordAgeInSeconds"] == max(sweep_age, 60)


def test_the_relay_sees_completed_records_that_have_something_to_send(any_stage: Synthesised) -> None:
    [only] = any_stage.one("AWS::Lambda::EventSourceMapping", "Relaying/Mapping")["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {
        "dynamodb": {"NewImage": {"status": {"S": ["COMPLETED"]}, "outbox": {"S": [{"exists": True}]}}}
    }


@pytest.mark.parametrize(
    ("stage", "rate", "age", "timeout"),
    [("local", "rate(1 minute)", "60", 60), ("prod", "rate(15 minutes)", "9000", 900)],
)
def test_the_sweep_comes_regularly_and_may_take_until_the_next(
    synthesised: Any, stage: str, rate: str, age: str, timeout: int
) -> None:
    found: Synthesised = synthesised(stage)
    rule = found.one("AWS::Events::Rule", "Sweeping/Schedule")
    assert rule["ScheduleExpression"] == rate
    assert rule["State"] == "ENABLED"
    assert [target["Arn"] for target in rule["Targets"]] == ["<Sweeping/SweepFunction.Arn>"]
    assert found.environment("Sweeping/SweepFunction")["SWEEP_AGE_S"] == age
    assert found.one("AWS::Lambda::Function", "Sweeping/SweepFunction")["Timeout"] == timeout


def test_both_routes_take_signed_requests_only(any_stage: Synthesised) -> None:
    routes = any_stage.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"]: route["AuthorizationType"] for route in routes} == {
        "POST /orders": "AWS_IAM",
        "GET /orders/{id}": "AWS_IAM",
    }


def test_the_api_answers_before_its_gateway_gives_up(any_stage: Synthesised) -> None:
    assert any_stage.one("AWS::Lambda::Function", "Http/ApiFunction")["Timeout"] < 30


def test_an_api_that_would_answer_later_is_refused(tmp_path: Path) -> None:
    settings = settings_from({"stage": "prod", **STAGES["prod"]}.get)
    late = replace(settings, times=replace(settings.times, aws=Client(connect_s=2, read_s=11)))
    app = new_app(tmp_path, "prod")
    data = StatefulStack(app, "late-stateful", late)
    with pytest.raises(SettingsError, match=r"timeout 31 s .* limit 29 s"):
        Api(Stack(app, "late-pipeline"), settings=late, data=data)


def test_the_api_is_throttled_and_its_log_names_no_caller(prod: Synthesised) -> None:
    stage = prod.one("AWS::ApiGatewayV2::Stage", "Http/Stage")
    assert stage["DefaultRouteSettings"] == {"ThrottlingBurstLimit": 200, "ThrottlingRateLimit": 100}
    assert stage["AccessLogSettings"]["DestinationArn"].endswith(":log-group:<Http/AccessLog>")
    logged = set(json.loads(stage["AccessLogSettings"]["Format"]).values())
    assert logged == {
        "$context.requestId",
        "$context.requestTimeEpoch",
        "$context.routeKey",
        "$context.status",
        "$context.responseLatency",
        "$context.integrationErrorMessage",
        "$context.authorizer.error",
    }


def test_prod_has_no_payment_sandbox(prod: Synthesised) -> None:
    assert set(prod.templates) == {"stateful", "pipeline", "observability"}


def test_the_payment_sandbox_refuses_to_be_put_into_prod() -> None:
    with pytest.raises(SettingsError, match="stage prod with the payment sandbox"):
        SandboxStack(App(context=FLAGS), "any", settings_from({"stage": "prod", **STAGES["prod"]}.get))


def test_the_payment_sandbox_asks_for_its_key_in_an_account_and_for_none_on_a_laptop(
    sandbox: Synthesised, local: Synthesised
) -> None:
    assert sandbox.environment("PaymentSandboxFunction")["API_KEY_SECRET_ARN"] == "<ApiKey>"
    assert "API_KEY_SECRET_ARN" not in local.environment("PaymentSandboxFunction")
    for found in (sandbox, local):
        assert found.one("AWS::SecretsManager::Secret", "ApiKey")["GenerateSecretString"]["PasswordLength"] == 40


@pytest.mark.parametrize(("stage", "waits", "slow", "timeout"), [("local", 0.9, 1.5, 6), ("sandbox", 10, 12, 32)])
def test_slow_is_longer_than_the_client_waits_and_on_top_of_what_the_sandbox_needs(
    synthesised: Any, stage: str, waits: float, slow: float, timeout: int
) -> None:
    found: Synthesised = synthesised(stage)
    assert float(found.environment("Payments/PaymentFunction")["PROVIDER_READ_TIMEOUT_S"]) == waits
    assert float(found.environment("PaymentSandboxFunction")["SLOW_S"]) == slow
    assert found.one("AWS::Lambda::Function", "PaymentSandboxFunction")["Timeout"] == timeout


def test_the_ledger_has_the_keys_that_the_payment_sandbox_uses(local: Synthesised) -> None:
    table = local.one("AWS::DynamoDB::Table", "Ledger")
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expiration", "Enabled": True}


def test_clients_are_told_all_they_hold_on_to(any_stage: Synthesised) -> None:
    outputs = any_stage.outputs()
    assert set(outputs) >= {
        "ApiUrl",
        "OrdersQueueUrl",
        "OrdersDlqUrl",
        "PaymentsQueueUrl",
        "PaymentsDlqUrl",
        "EmailsQueueUrl",
        "EmailsDlqUrl",
        "IdempotencyTableName",
        "OrdersTableName",
        "ReceiptsBucketName",
        "ApiFunctionName",
        "OrderFunctionName",
        "PaymentFunctionName",
        "EmailFunctionName",
        "RelayFunctionName",
        "SweepFunctionName",
    }
    assert ("PaymentSandboxUrl" in outputs) is (any_stage.stage != "prod")


def test_addresses_lead_to_the_emulator_on_a_laptop_and_to_aws_elsewhere(
    local: Synthesised, sandbox: Synthesised
) -> None:
    assert local.outputs()["ApiUrl"] == "http://127.0.0.1:4999/_aws/execute-api/<Http/Orders>/$default"
    assert local.outputs()["PaymentSandboxUrl"] == "http://127.0.0.1:4999/_aws/lambda-url/url-id"
    assert sandbox.outputs()["ApiUrl"] == "<Http/Orders.ApiEndpoint>"
    assert sandbox.outputs()["PaymentSandboxUrl"] == "https://url-id.lambda-url.region.on.aws"


def test_templates_fit_any_account_and_region(any_stage: Synthesised) -> None:
    for template in any_stage.templates.values():
        assert "us-east-1" not in json.dumps(template)


def test_the_tools_know_every_stack_by_its_name(any_stage: Synthesised) -> None:
    absent = {"sandbox"} if any_stage.stage == "prod" else set()
    assert {stack_name(any_stage.stage, stack) for stack in set(STACKS) - absent} == {
        f"effectively-once-{any_stage.stage}-{stack}" for stack in any_stage.templates
    }


def test_what_a_stage_was_given_beyond_its_needs_is_kept_in_outputs_that_name_nobody(tmp_path: Path) -> None:
    arn = "arn:aws:iam::210987654321:role/"
    values = {
        "PRODUCERS": f"{arn}a,{arn}b",
        "OPERATORS": f"{arn}*",
        "ALARM_EMAIL": "on-call@example.com",
        "RUNBOOK_URL": "https://wiki.example.com/runbook",
    }
    context = {name.lower(): value for name, value in values.items()}
    outputs = synthesise(tmp_path, "prod", **STAGES["prod"] | context).outputs()

    assert {name: outputs[output_name(name)] for name in OPTIONAL["prod"]} == values | {"ALARM_EMAIL": "set"}


@pytest.mark.parametrize("stage", ["local", "sandbox"])
def test_what_a_stage_was_not_given_is_in_no_output(synthesised: Any, stage: str) -> None:
    found: Synthesised = synthesised(stage)
    assert [name for name in found.outputs() if name.startswith("Given")] == []


def test_no_output_shares_its_name_with_another_stacks(any_stage: Synthesised) -> None:
    names = [
        name
        for template in any_stage.templates.values()
        for name in template.get("Outputs", {})
        if not name.startswith("PublishOutput")
    ]
    assert len(names) == len(set(names))


def test_no_stack_takes_anothers_value_apart(any_stage: Synthesised) -> None:
    # Fn::Split is not documented to take what Fn::GetStackOutput gives.
    for taken in re.findall(r'"Fn::Split": (.{200})', json.dumps(any_stage.templates["pipeline"])):
        assert taken.startswith('["/", {"Ref": "AWS::StackId"}]'), taken


def test_the_access_log_has_the_prefix_that_needs_no_grant_of_its_own_and_a_name_that_is_never_taken(
    any_stage: Synthesised,
) -> None:
    name = any_stage.one("AWS::Logs::LogGroup", "Http/AccessLog")["LogGroupName"]
    assert name == f"/aws/vendedlogs/effectively-once-{any_stage.stage}-pipeline/<id>"
