"""Retention of data: records outlive their messages, order rows never expire, data survives deployments."""

from collections.abc import Iterator

from stacks.checks.model import Finding, Model, Resource, listed, number, shown, unknown, within
from stacks.checks.queues import retention_s
from stacks.checks.sample_record import ttl_attribute
from stacks.checks.wiring import FUNCTION, TABLES, consumed_queues, dlq_of, environment

# Resources whose data cannot be recreated. Queues are not in the list: a retained queue keeps its name, and the next
# deployment would fail.
STATEFUL = (
    *TABLES,
    "AWS::S3::Bucket",
    "AWS::RDS::DBInstance",
    "AWS::RDS::DBCluster",
    "AWS::EFS::FileSystem",
    "AWS::KMS::Key",
    "AWS::Cognito::UserPool",
)
KEEPS = ("Retain", "RetainExceptOnCreate", "Snapshot")


def records_outlive_the_messages(model: Model) -> Iterator[Finding]:
    """RECORD_TTL_S > source retention + DLQ retention, for each consumer that uses the idempotency layer."""
    for queue, source in consumed_queues(model):
        variables, dlq = environment(source.function), dlq_of(model, queue)
        if source.function is None or dlq is None or "IDEMPOTENCY_TABLE" not in variables:
            continue
        ttl, parts = number(variables.get("RECORD_TTL_S")), (retention_s(queue), retention_s(dlq))
        if parts[0] is None or parts[1] is None:
            continue  # dlq_keeps_messages_longer reports this
        least = parts[0] + parts[1]
        if ttl is None or ttl <= least:
            yield Finding(
                source.function.path,
                f"RECORD_TTL_S {variables.get('RECORD_TTL_S')}, but {queue.path} keeps messages {shown(parts[0])} s "
                f"and {dlq.path} {shown(parts[1])} s = {shown(least)} s together",
                "A message that is redriven late would find no record of its first run.",
                f"Set RECORD_TTL_S above {shown(least)}.",
            )


def records_expire_by_the_attribute_that_is_written(model: Model) -> Iterator[Finding]:
    """TTL of IDEMPOTENCY_TABLE is on the attribute that the layer writes. ORDERS_TABLE has no TTL.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
    """
    for table in _known_as(model, "IDEMPOTENCY_TABLE"):
        name, on = (table.get("TimeToLiveSpecification", part) for part in ("AttributeName", "Enabled"))
        if name != ttl_attribute() or on not in (True, "true"):
            yield Finding(
                table.path,
                f"TTL attribute {shown(name)}, enabled {shown(on)}; the layer writes {ttl_attribute()}",
                "Records would never expire, or at a wrong time.",
                f"Set time_to_live_attribute={ttl_attribute()!r}.",
            )
    for table in _known_as(model, "ORDERS_TABLE"):
        if name := table.get("TimeToLiveSpecification", "AttributeName"):
            yield Finding(
                table.path,
                f"order rows have the TTL attribute {shown(name)}",
                "After a record expired, only the order row knows the charge: without it, an order is charged twice.",
                "Remove TimeToLiveSpecification.",
            )


def _known_as(model: Model, variable: str) -> list[Resource]:
    found = (model.find(environment(function).get(variable)) for function in model.of_type(FUNCTION))
    return sorted({table for table in found if table and table.type in TABLES}, key=lambda table: table.path)


def data_survives_deployments(model: Model) -> Iterator[Finding]:
    """In stages that keep data: RETAIN for all resources with data, on deletion and on replacement.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    if not model.settings.keep_data:
        return
    for resource in model.of_type(*STATEFUL):
        found = {name: resource.body.get(name, "Delete") for name in ("DeletionPolicy", "UpdateReplacePolicy")}
        if lost := [f"{name} {shown(value)}" for name, value in found.items() if value not in KEEPS]:
            yield Finding(
                resource.path,
                f"{', '.join(lost)} in stage {model.settings.stage}",
                "A deployment that renames, replaces or removes the resource would delete its data.",
                "Set removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE.",
            )


def tables_can_be_restored(model: Model) -> Iterator[Finding]:
    """In stages that keep data: point-in-time recovery on every table and replica.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Point-in-time-recovery.html
    """
    if not model.settings.keep_data:
        return
    for table in model.of_type(*TABLES):
        parts = [table.get("PointInTimeRecoverySpecification")]
        if table.type == "AWS::DynamoDB::GlobalTable":
            parts = [within(each, "PointInTimeRecoverySpecification") for each in listed(table.get("Replicas"))]
        on = [part if unknown(part) else within(part, "PointInTimeRecoveryEnabled") for part in parts]
        if any(value not in (True, "true") for value in on):
            yield Finding(
                table.path,
                f"PointInTimeRecoveryEnabled {shown(on[0] if len(on) == 1 else on)} in stage {model.settings.stage}",
                "The data could not be restored after a bad deployment or a wrong script.",
                "Set point_in_time_recovery_enabled=True.",
            )


CHECKS = (
    records_outlive_the_messages,
    records_expire_by_the_attribute_that_is_written,
    data_survives_deployments,
    tables_can_be_restored,
)
