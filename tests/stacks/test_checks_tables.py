"""Records, rows and data that must outlive, on a copier's plain constructs."""

from pathlib import Path

import pytest
from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3

from stacks.checks.tables import (
    data_survives_deployments,
    records_expire_by_the_attribute_that_is_written,
    records_outlive_the_messages,
    tables_can_be_restored,
)
from tests.stacks.minimal_app import Break, Fine, MinimalApp

OUTLIVE, EXPIRE = records_outlive_the_messages, records_expire_by_the_attribute_that_is_written
SURVIVE, RESTORE = data_survives_deployments, tables_can_be_restored


def global_table(app: MinimalApp, *, recovery: bool) -> None:
    dynamodb.TableV2(
        app.data,
        "Everywhere",
        partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=recovery
        ),
        removal_policy=RemovalPolicy.RETAIN,
    )


def without_protection(app: MinimalApp) -> None:
    app.override(app.records, "PointInTimeRecoverySpecification", None)
    app.orders.apply_removal_policy(RemovalPolicy.DESTROY)


BREAKS = [
    Break(
        OUTLIVE,
        "records that live as long as both retentions",
        lambda app: app.env("RECORD_TTL_S", "1814400"),
        "small/Worker",
        ("RECORD_TTL_S 1814400", "small/Queue keeps messages 604800 s", "small/Dlq 1209600 s = 1814400 s"),
    ),
    Break(
        OUTLIVE,
        "a queue that keeps messages longer than before",
        lambda app: app.override(app.queue, "MessageRetentionPeriod", 1_000_000),
        "small/Worker",
        ("RECORD_TTL_S 1900800", "1000000 s", "= 2209600 s"),
    ),
    Break(OUTLIVE, "no TTL", lambda app: app.env("RECORD_TTL_S", None), "small/Worker", ("RECORD_TTL_S None",)),
    Break(
        OUTLIVE,
        "a TTL known only when it is deployed",
        lambda app: app.env("RECORD_TTL_S", app.parameter()),
        "small/Worker",
        ("RECORD_TTL_S ${Unknown}",),
    ),
    Break(
        EXPIRE,
        "another TTL attribute",
        lambda app: app.override(app.records, "TimeToLiveSpecification.AttributeName", "ttl"),
        "data/Records",
        ("TTL attribute ttl", "the layer writes expiration"),
    ),
    Break(
        EXPIRE,
        "no TTL on the table",
        lambda app: app.override(app.records, "TimeToLiveSpecification", None),
        "data/Records",
        ("TTL attribute null",),
    ),
    Break(
        EXPIRE,
        "a TTL that is switched off",
        lambda app: app.override(app.records, "TimeToLiveSpecification.Enabled", False),
        "data/Records",
        ("enabled false",),
    ),
    Break(
        EXPIRE,
        "a TTL attribute known only when it is deployed",
        lambda app: app.override(app.records, "TimeToLiveSpecification.AttributeName", {"Ref": "AWS::Region"}),
        "data/Records",
        ("TTL attribute ${AWS::Region}",),
    ),
    Break(
        EXPIRE,
        "order rows that expire",
        lambda app: app.override(app.orders, "TimeToLiveSpecification", {"AttributeName": "old", "Enabled": True}),
        "data/Orders",
        ("order rows have the TTL attribute old",),
    ),
    Break(
        SURVIVE,
        "a table that goes with its stack",
        lambda app: app.orders.apply_removal_policy(RemovalPolicy.DESTROY),
        "data/Orders",
        ("DeletionPolicy Delete, UpdateReplacePolicy Delete in stage prod",),
    ),
    Break(
        SURVIVE,
        "a table that goes when it is replaced",
        lambda app: app.orders.add_override("UpdateReplacePolicy", "Delete"),
        "data/Orders",
        ("UpdateReplacePolicy Delete",),
    ),
    Break(
        SURVIVE,
        "a table without a word",
        lambda app: (
            app.orders.add_deletion_override("DeletionPolicy"),
            app.orders.add_deletion_override("UpdateReplacePolicy"),
        ),
        "data/Orders",
        ("DeletionPolicy Delete",),
    ),
    Break(
        SURVIVE,
        "a bucket beside it",
        lambda app: s3.Bucket(app.stack, "Bucket", removal_policy=RemovalPolicy.DESTROY),
        "small/Bucket",
        ("DeletionPolicy Delete",),
    ),
    Break(
        RESTORE,
        "no point-in-time recovery",
        lambda app: app.override(app.records, "PointInTimeRecoverySpecification", None),
        "data/Records",
        ("PointInTimeRecoveryEnabled null in stage prod",),
    ),
    Break(
        RESTORE,
        "point-in-time recovery switched off",
        lambda app: app.override(app.orders, "PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled", False),
        "data/Orders",
        ("PointInTimeRecoveryEnabled false",),
    ),
    Break(
        RESTORE,
        "a global table without it",
        lambda app: global_table(app, recovery=False),
        "data/Everywhere",
        ("PointInTimeRecoveryEnabled false",),
    ),
    Break(
        RESTORE,
        "recovery known only when it is deployed",
        lambda app: app.override(app.orders, "PointInTimeRecoverySpecification", app.condition({}, {})),
        "data/Orders",
        ("PointInTimeRecoveryEnabled ${Fn::If}",),
    ),
]

FINE = [
    Fine("a sandbox whose data may go", without_protection, stage="sandbox"),
    Fine("a laptop whose data may go", without_protection, stage="local"),
    Fine("a global table that can be restored", lambda app: global_table(app, recovery=True)),
    Fine("a bucket that stays", lambda app: s3.Bucket(app.stack, "Bucket")),
    Fine("a function without the core", lambda app: app.override(app.function, "Environment", None)),
]


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
