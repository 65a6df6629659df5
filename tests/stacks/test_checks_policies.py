"""Wildcards in what functions may do, and keys of queues, on a copier's plain constructs."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from stacks.checks.keys import queue_keys_are_granted
from stacks.checks.policies import functions_have_no_wildcards
from tests.stacks.minimal_app import Break, Fine, MinimalApp

WILD, KEYS = functions_have_no_wildcards, queue_keys_are_granted
POLICY = "small/WorkerRole/DefaultPolicy"
FOREIGN_KEY = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def statement(action: Any, resource: Any, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource} | more


def inline(app: MinimalApp, **allows: Any) -> None:
    document = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", **allows}}
    app.override(app.role, "Policies", [{"PolicyName": "inline", "PolicyDocument": document}])


def managed(app: MinimalApp) -> None:
    policy = iam.ManagedPolicy(app.stack, "Shared")
    policy.add_statements(iam.PolicyStatement(actions=["dynamodb:Scan"], resources=["*"]))
    app.role.add_managed_policy(policy)


def plain_function(app: MinimalApp) -> None:
    """What `lambda.Function` makes if it is given no role."""
    lambda_.Function(
        app.stack,
        "Plain",
        code=lambda_.Code.from_inline("handler = print"),
        handler="index.handler",
        runtime=lambda_.Runtime.PYTHON_3_13,
    )


def mail(app: MinimalApp, sender: str | None) -> None:
    condition = {"StringEquals": {"ses:FromAddress": sender}} if sender else None
    app.allow("ses:SendEmail", on="arn:aws:ses:eu-west-1:123456789012:identity/*", conditions=condition)


def encrypt(app: MinimalApp, queue: sqs.Queue, key: str) -> MinimalApp:
    return app.override(queue, "KmsMasterKeyId", key)


def own_key(app: MinimalApp, *granted: str) -> kms.Key:
    key = kms.Key(app.data, "Key")
    encrypt(app, app.queue, key.key_arn)
    if granted:
        app.allow(*granted, on=key.key_arn)
    return key


def parks(app: MinimalApp, *granted: str) -> None:
    key = kms.Key(app.data, "Key")
    encrypt(app, app.dlq, key.key_arn)
    app.allow("sqs:SendMessage", on=app.dlq.queue_arn)
    if granted:
        app.allow(*granted, on=key.key_arn)


def by_key_policy(app: MinimalApp) -> None:
    key = kms.CfnKey(
        app.stack,
        "Key",
        key_policy={
            "Version": "2012-10-17",
            "Statement": [statement("kms:Decrypt", "*", Principal={"AWS": app.role.role_arn})],
        },
    )
    key.apply_removal_policy(RemovalPolicy.RETAIN)
    encrypt(app, app.queue, key.ref)


def key_policy_for_another(app: MinimalApp) -> None:
    key = kms.CfnKey(
        app.stack,
        "Key",
        key_policy={
            "Version": "2012-10-17",
            "Statement": [statement("kms:*", "*", Principal={"AWS": "arn:aws:iam::123456789012:root"})],
        },
    )
    encrypt(app, app.queue, key.ref)


def by_alias(app: MinimalApp) -> None:
    key = kms.Key(app.data, "Key")
    alias = kms.Alias(app.data, "Alias", alias_name="alias/jobs", target_key=key)
    encrypt(app, app.queue, alias.alias_name)
    app.allow("kms:Decrypt", on=key.key_arn)


def l2_grants(app: MinimalApp) -> None:
    """The CDK's own grants, which add the key by themselves; its `kms:GenerateDataKey*` is another check's matter."""
    queue = sqs.Queue(app.stack, "Other", encryption_master_key=kms.Key(app.data, "Key"))
    app.allow("sqs:SendMessage", on=queue.queue_arn)
    app.allow("kms:Decrypt", "kms:GenerateDataKey", on=str(queue.encryption_master_key.key_arn))  # type: ignore[union-attr]


BREAKS = [
    Break(
        WILD,
        "every action of a service",
        lambda app: app.allow("sqs:*", on=app.queue.queue_arn),
        POLICY,
        ("small/Worker", "do sqs:*"),
    ),
    Break(
        WILD,
        "actions by their beginning",
        lambda app: app.allow("dynamodb:Get*", on=app.records.table_arn),
        POLICY,
        ("do dynamodb:Get*",),
    ),
    Break(
        WILD,
        "every resource",
        lambda app: app.allow("sqs:SendMessage", on="*"),
        POLICY,
        ("do sqs:SendMessage on *",),
    ),
    Break(
        WILD,
        "resources by the beginning of their name",
        lambda app: app.allow("sqs:SendMessage", on="arn:aws:sqs:eu-west-1:123456789012:effectively-*"),
        POLICY,
        ("on arn:aws:sqs:eu-west-1:123456789012:effectively-*",),
    ),
    Break(
        WILD,
        "any index of a table",
        lambda app: app.allow("dynamodb:Query", on=f"{app.records.table_arn}/index/*"),
        POLICY,
        ("data/Records/index/*",),
    ),
    Break(
        WILD,
        "objects of any bucket",
        lambda app: app.allow("s3:PutObject", on="arn:aws:s3:::*/receipts/*"),
        POLICY,
        ("arn:aws:s3:::*/receipts/*",),
    ),
    Break(
        WILD,
        "a wildcard in an inline policy",
        lambda app: inline(app, Action="s3:*", Resource="*"),
        "small/WorkerRole",
        ("do s3:*",),
    ),
    Break(
        WILD,
        "all actions but some",
        lambda app: inline(app, NotAction="iam:*", Resource="arn:aws:sqs:::q"),
        "small/WorkerRole",
        ("NotAction",),
    ),
    Break(
        WILD,
        "all resources but some",
        lambda app: inline(app, Action="sqs:SendMessage", NotResource="arn:aws:sqs:::q"),
        "small/WorkerRole",
        ("NotResource",),
    ),
    Break(WILD, "a wildcard in a managed policy", managed, "small/Shared", ("do dynamodb:Scan on *",)),
    Break(
        WILD,
        "a wildcard through an override",
        lambda app: (
            app.allow("sqs:SendMessage", on=app.dlq.queue_arn),
            app.role.node.find_child("DefaultPolicy").node.default_child.add_property_override(  # type: ignore[union-attr]
                "PolicyDocument.Statement.0.Resource", "*"
            ),
        ),
        POLICY,
        ("do sqs:SendMessage on *",),
    ),
    Break(
        WILD,
        "the role of a plain function",
        plain_function,
        "small/Plain/ServiceRole",
        ("AWSLambdaBasicExecutionRole",),
    ),
    Break(WILD, "mail from any sender", lambda app: mail(app, None), POLICY, ("ses:SendEmail",), stage="sandbox"),
    Break(
        WILD,
        "mail from senders by a pattern",
        lambda app: mail(app, "*@x.example"),
        POLICY,
        ("ses:SendEmail",),
        stage="sandbox",
    ),
    Break(WILD, "mail to any identity in production", lambda app: mail(app, "a@x.example"), POLICY, ("identity/*",)),
    Break(
        KEYS,
        "a consumer that may not decrypt",
        lambda app: own_key(app),
        "small/Worker",
        ("reads small/Queue", "data/Key", "kms:Decrypt"),
    ),
    Break(
        KEYS,
        "a consumer that may use another key",
        lambda app: (own_key(app), app.allow("kms:Decrypt", on=kms.Key(app.data, "Other").key_arn)),
        "small/Worker",
        ("may not kms:Decrypt",),
    ),
    Break(
        KEYS,
        "a function that can not park",
        lambda app: parks(app),
        "small/Worker",
        ("sends to small/Dlq", "kms:Decrypt or kms:GenerateDataKey"),
    ),
    Break(
        KEYS,
        "a function that may only decrypt what it should send",
        lambda app: parks(app, "kms:Decrypt"),
        "small/Worker",
        ("may not kms:GenerateDataKey",),
    ),
    Break(KEYS, "a key that is trusted to the account only", key_policy_for_another, "small/Worker", ("small/Key",)),
    Break(
        KEYS,
        "a key of another app",
        lambda app: encrypt(app, app.queue, FOREIGN_KEY),
        "small/Worker",
        (FOREIGN_KEY, "kms:Decrypt"),
    ),
    Break(
        KEYS,
        "a key known only when it is deployed",
        lambda app: encrypt(app, app.queue, app.parameter()),
        "small/Worker",
        ("${Unknown}", "kms:Decrypt"),
    ),
]

FINE = [
    Fine(
        "X-Ray, which knows no resources",
        lambda app: app.allow("xray:PutTraceSegments", "xray:PutTelemetryRecords", on="*"),
    ),
    Fine(
        "network interfaces of a function in a VPC",
        lambda app: app.allow("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", on="*"),
    ),
    Fine("listing streams", lambda app: app.allow("dynamodb:ListStreams", on="*")),
    Fine(
        "streams of one log group",
        lambda app: app.allow("logs:PutLogEvents", on="arn:aws:logs:eu-west-1:123456789012:log-group:/jobs:*"),
    ),
    Fine(
        "objects of one bucket",
        lambda app: app.allow("s3:PutObject", on=s3.Bucket(app.stack, "Bucket").arn_for_objects("receipts/*")),
    ),
    Fine("mail from one sender in the sandbox", lambda app: mail(app, "a@x.example"), stage="sandbox"),
    Fine("a resource known only when it is deployed", lambda app: app.allow("sqs:SendMessage", on=app.parameter())),
    Fine(
        "wildcards that are denied",
        lambda app: app.allow("sqs:*", on="*", effect=iam.Effect.DENY),
    ),
    Fine(
        "a function whose role is made elsewhere",
        lambda app: app.override(app.function, "Role", "arn:aws:iam::123456789012:role/elsewhere"),
    ),
    Fine("a consumer that may decrypt", lambda app: own_key(app, "kms:Decrypt")),
    Fine("a function that may park", lambda app: parks(app, "kms:Decrypt", "kms:GenerateDataKey")),
    Fine("a key whose policy names the role", by_key_policy),
    Fine("a key by its alias", by_alias),
    Fine("a key of a queue that it sends to", l2_grants),
    Fine(
        "a key of another app that it may use",
        lambda app: (encrypt(app, app.queue, FOREIGN_KEY), app.allow("kms:Decrypt", on=FOREIGN_KEY)),
    ),
    Fine("the key that AWS manages", lambda app: encrypt(app, app.queue, "alias/aws/sqs")),
]


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
