"""Data, relay and sweep, API, payment sandbox and outputs, beyond what the checks require."""

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
from stacks.settings import STRIPE, settings_from
from stacks.stateful import StatefulStack
from stacks.times import Client, SettingsError
from tests.harness.synth import FLAGS, SECRET_ARN, STAGES, Synthesised, new_app, synthesise
from tests.stacks.test_functions import as_list
from tools.deploy_inputs import OPTIONAL
from tools.deployed import STACKS, stack_name


def test_prod_protects_its_tables_from_deletion(prod: Synthesised) -> None:
    for table in prod.of_type("AWS::DynamoDB::Table").values():
        assert table["DeletionProtectionEnabled"] is True


def test_prod_keeps_its_data_unless_the_first_deploy_fails(prod: Synthesised) -> None:
    for type_ in ("AWS::DynamoDB::Table", "AWS::S3::Bucket"):
        assert set(prod.policies_on_deletion(type_).values()) == {"RetainExceptOnCreate"}


def test_no_stage_deletes_the_identity_of_its_sender_because_another_stage_may_use_it(any_stage: Synthesised) -> None:
    assert set(any_stage.policies_on_deletion("AWS::SES::EmailIdentity").values()) == {"RetainExceptOnCreate"}


@pytest.mark.parametrize("stage", ["local", "sandbox"])
def test_other_stages_delete_everything_with_their_stacks(synthesised: Any, stage: str) -> None:
    found: Synthesised = synthesised(stage)
    for type_ in ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret", "AWS::SQS::Queue"):
        assert set(found.policies_on_deletion(type_).values()) == {"Delete"}
    assert bool(found.of_type("Custom::S3AutoDeleteObjects")) is (stage == "sandbox")


def test_every_function_has_a_log_group_that_its_stack_deletes_also_the_one_of_the_cdk(sandbox: Synthesised) -> None:
    groups = {f"<{path}>" for path in sandbox.of_type("AWS::Logs::LogGroup")}
    functions = sandbox.of_type("AWS::Lambda::Function")
    assert len(functions) == len(sandbox.functions) + 1
    assert {function["LoggingConfig"]["LogGroup"] for function in functions.values()} <= groups


def test_both_tables_are_encrypted_and_billed_by_request(any_stage: Synthesised) -> None:
    for name in ("Idempotency", "Orders"):
        table = any_stage.one("AWS::DynamoDB::Table", name)
        assert table["SSESpecification"] == {"SSEEnabled": True}
        assert table["BillingMode"] == "PAY_PER_REQUEST"


def test_the_tables_have_the_keys_that_the_layer_and_the_sweep_use(any_stage: Synthesised) -> None:
    records = any_stage.one("AWS::DynamoDB::Table", "Idempotency")
    assert records["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    table = any_stage.one("AWS::DynamoDB::Table", "Orders")
    assert table["KeySchema"] == [{"AttributeName": "order_id", "KeyType": "HASH"}]
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


def test_the_receipts_bucket_is_encrypted_private_and_requires_tls(any_stage: Synthesised) -> None:
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


def test_the_sender_is_an_identity_of_the_stack(any_stage: Synthesised) -> None:
    sender = any_stage.environment(any_stage.functions["email"])["SENDER"]
    assert any_stage.one("AWS::SES::EmailIdentity", "Sender") == {"EmailIdentity": sender}


def test_an_existing_identity_is_used_and_not_created(tmp_path: Path) -> None:
    sandbox = synthesise(tmp_path, "sandbox", sender="a@there.example", sender_identity="there.example")

    assert not sandbox.of_type("AWS::SES::EmailIdentity")


def email_resources(found: Synthesised) -> list[str]:
    """Return the SES resources on which a function may send emails."""
    return [
        resource
        for policy in found.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "ses:SendEmail"
        for resource in as_list(statement["Resource"])
    ]


def test_in_prod_emails_use_the_existing_identity(tmp_path: Path) -> None:
    context = STAGES["prod"] | {"sender": "a@there.example", "sender_identity": "there.example"}
    prod = synthesise(tmp_path, "prod", **context)

    assert [resource.endswith(":identity/there.example") for resource in email_resources(prod)] == [True]


@pytest.mark.parametrize("stage", ["sandbox", "prod"])
def test_emails_may_use_the_default_configuration_set_of_the_identity(tmp_path: Path, stage: str) -> None:
    sender = {"sender": "a@there.example", "sender_identity": "there.example", "configuration_set": "ours_1-a"}
    found = synthesise(tmp_path, stage, **STAGES[stage] | sender)

    through, _ = email_resources(found)
    assert through == "arn:<AWS::Partition>:ses:<AWS::Region>:<AWS::AccountId>:configuration-set/ours_1-a"


def test_without_a_configuration_set_emails_may_use_none(any_stage: Synthesised) -> None:
    (only,) = email_resources(any_stage)
    assert ":identity/" in only


def test_the_relay_gives_up_a_record_at_the_age_at_which_the_sweep_sends_it(any_stage: Synthesised) -> None:
    mapping = any_stage.one("AWS::Lambda::EventSourceMapping", "Relaying/Mapping")
    sweep_age = int(any_stage.environment("Sweeping/SweepFunction")["SWEEP_AGE_S"])
    assert mapping["MaximumRecordAgeInSeconds"] == max(sweep_age, 60)


def test_the_relay_receives_only_completed_records_with_events(any_stage: Synthesised) -> None:
    [only] = any_stage.one("AWS::Lambda::EventSourceMapping", "Relaying/Mapping")["FilterCriteria"]["Filters"]
    assert json.loads(only["Pattern"]) == {
        "dynamodb": {"NewImage": {"status": {"S": ["COMPLETED"]}, "outbox": {"S": [{"exists": True}]}}}
    }


def test_the_sweep_runs_on_a_schedule_and_ends_before_the_next_run(any_stage: Synthesised) -> None:
    rule = any_stage.one("AWS::Events::Rule", "Sweeping/Schedule")
    [minutes] = re.findall(r"rate\((\d+) minutes?\)", rule["ScheduleExpression"])
    assert rule["State"] == "ENABLED"
    assert [target["Arn"] for target in rule["Targets"]] == ["<Sweeping/SweepFunction.Arn>"]
    assert any_stage.one("AWS::Lambda::Function", "Sweeping/SweepFunction")["Timeout"] == 60 * int(minutes) <= 900


def test_both_routes_require_signed_requests(any_stage: Synthesised) -> None:
    routes = any_stage.of_type("AWS::ApiGatewayV2::Route").values()
    assert {route["RouteKey"]: route["AuthorizationType"] for route in routes} == {
        "POST /orders": "AWS_IAM",
        "GET /orders/{id}": "AWS_IAM",
    }


def test_the_api_function_ends_before_the_gateway_times_out(any_stage: Synthesised) -> None:
    assert any_stage.one("AWS::Lambda::Function", "Http/ApiFunction")["Timeout"] < 30


def test_an_api_function_that_can_take_longer_is_rejected(tmp_path: Path) -> None:
    settings = settings_from({"stage": "prod", **STAGES["prod"]}.get)
    late = replace(settings, times=replace(settings.times, aws=Client(connect_s=2, read_s=11)))
    app = new_app(tmp_path, "prod")
    data = StatefulStack(app, "late-stateful", late)
    with pytest.raises(SettingsError, match=r"timeout 32 s .* limit 29 s"):
        Api(Stack(app, "late-pipeline"), settings=late, data=data)


def test_the_api_is_throttled_and_its_access_log_has_no_personal_data(prod: Synthesised) -> None:
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


def test_the_payment_sandbox_cannot_be_added_to_prod() -> None:
    with pytest.raises(SettingsError, match="stage prod with the payment sandbox"):
        SandboxStack(App(context=FLAGS), "any", settings_from({"stage": "prod", **STAGES["prod"]}.get))


def test_the_payment_sandbox_checks_its_key_in_an_account_and_not_on_a_laptop(
    sandbox: Synthesised, local: Synthesised
) -> None:
    assert sandbox.environment("PaymentSandboxFunction")["API_KEY_SECRET_ARN"] == "<ApiKey>"
    assert "API_KEY_SECRET_ARN" not in local.environment("PaymentSandboxFunction")
    for found in (sandbox, local):
        assert found.one("AWS::SecretsManager::Secret", "ApiKey")["GenerateSecretString"]["PasswordLength"] == 40


def test_only_prod_accepts_intents_of_live_mode(synthesised: Any) -> None:
    found: dict[str, Synthesised] = {stage: synthesised(stage) for stage in STAGES}
    modes = {stage: each.environment(each.functions["payment"])["PROVIDER_LIVEMODE"] for stage, each in found.items()}
    assert modes == {"local": "false", "sandbox": "false", "prod": "true"}


def test_a_secret_in_stage_sandbox_replaces_the_payment_sandbox_by_a_stripe_test_account(tmp_path: Path) -> None:
    found = synthesise(tmp_path, "sandbox", **STAGES["sandbox"], provider_secret_arn=SECRET_ARN)
    told = found.environment(found.functions["payment"])
    assert (told["PROVIDER_URL"], told["PROVIDER_LIVEMODE"]) == (STRIPE, "false")
    assert told["PROVIDER_SECRET_ARN"] == SECRET_ARN
    assert not [name for name in found.templates if name.endswith("-sandbox-sandbox")]


@pytest.mark.parametrize("stage", ["local", "sandbox"])
def test_a_slow_answer_takes_longer_than_the_client_waits_and_shorter_than_the_timeout(
    synthesised: Any, stage: str
) -> None:
    found: Synthesised = synthesised(stage)
    waits_s = float(found.environment(found.functions["payment"])["PROVIDER_READ_TIMEOUT_S"])
    slow_s = float(found.environment("PaymentSandboxFunction")["SLOW_S"])
    timeout_s = found.one("AWS::Lambda::Function", "PaymentSandboxFunction")["Timeout"]
    assert waits_s < slow_s
    assert timeout_s > slow_s + settings_from({"stage": stage, **STAGES[stage]}.get).times.spare_s


def test_the_ledger_has_the_keys_that_the_payment_sandbox_uses(local: Synthesised) -> None:
    table = local.one("AWS::DynamoDB::Table", "Ledger")
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expiration", "Enabled": True}


def test_the_outputs_have_everything_that_clients_use(any_stage: Synthesised) -> None:
    outputs = any_stage.outputs()
    queues = {f"{each.path}{kind}Url" for each in any_stage.consumers for kind in ("Queue", "Dlq")}
    functions = {f"{''.join(map(str.capitalize, name.split('_')))}FunctionName" for name in any_stage.functions}
    fixed = {"ApiUrl", "IdempotencyTableName", "OrdersTableName", "ReceiptsBucketName"}
    assert set(outputs) >= queues | functions | fixed
    assert ("PaymentSandboxUrl" in outputs) is (any_stage.stage != "prod")


def test_urls_lead_to_the_local_aws_on_a_laptop_and_to_aws_elsewhere(local: Synthesised, sandbox: Synthesised) -> None:
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


def test_outputs_keep_the_optional_deploy_inputs_without_email_addresses(tmp_path: Path) -> None:
    arn = "arn:aws:iam::210987654321:role/"
    values = {
        "PRODUCERS": f"{arn}a,{arn}b",
        "OPERATORS": f"{arn}ops-*",
        "ALARM_EMAIL": "on-call@example.com",
        "RUNBOOK_URL": "https://wiki.example.com/runbook",
    }
    context = {name.lower(): value for name, value in values.items()}
    outputs = synthesise(tmp_path, "prod", **STAGES["prod"] | context).outputs()

    assert {name: outputs[output_name(name)] for name in OPTIONAL["prod"]} == values | {"ALARM_EMAIL": "set"}


@pytest.mark.parametrize("stage", ["local", "sandbox"])
def test_without_optional_deploy_inputs_no_output_keeps_one(synthesised: Any, stage: str) -> None:
    found: Synthesised = synthesised(stage)
    assert [name for name in found.outputs() if name.startswith("Given")] == []


def test_no_two_stacks_have_an_output_of_the_same_name(any_stage: Synthesised) -> None:
    names = [
        name
        for template in any_stage.templates.values()
        for name in template.get("Outputs", {})
        if not name.startswith("PublishOutput")
    ]
    assert len(names) == len(set(names))


def test_no_stack_splits_a_value_of_another_stack(any_stage: Synthesised) -> None:
    # The documentation of Fn::Split does not allow Fn::GetStackOutput.
    for argument in re.findall(r'"Fn::Split": (.{200})', json.dumps(any_stage.templates["pipeline"])):
        assert argument.startswith('["/", {"Ref": "AWS::StackId"}]'), argument


def test_the_access_log_has_the_vendedlogs_prefix_and_a_unique_name(
    any_stage: Synthesised,
) -> None:
    name = any_stage.one("AWS::Logs::LogGroup", "Http/AccessLog")["LogGroupName"]
    assert name == f"/aws/vendedlogs/effectively-once-{any_stage.stage}-pipeline/<id>"
