"""A minimal app of plain L1 and L2 constructs that passes all checks. Each test breaks it in one way."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from aws_cdk import App, CfnCondition, CfnParameter, CfnResource, Duration, Fn, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from stacks.checks import CHECKS, Check
from stacks.checks.model import Finding, Model, Template
from stacks.checks.plugin import templates_of
from stacks.settings import settings_from
from tests.harness.synth import FLAGS, STAGES

DAY = Duration.days(1)
ALARM_TOPIC = "arn:aws:sns:eu-west-1:123456789012:alarms"
TIMES = settings_from({"stage": "prod", **STAGES["prod"]}.get).times
FILTER = '{"dynamodb": {"NewImage": {"status": {"S": ["COMPLETED"]}, "outbox": {"S": [{"exists": true}]}}}}'


class MinimalApp:
    """A queue with a DLQ and a function, and a relay. The two tables are in another stack."""

    def __init__(self, outdir: Path, stage: str = "prod") -> None:
        self.settings = settings_from({"stage": stage, **STAGES[stage]}.get)
        # Without the CDK's own validation: the checks must not depend on it, and it takes most of the synthesis.
        cli = {"aws:cdk:enable-path-metadata": True, "aws:cdk:enable-asset-metadata": True}
        self.app = App(outdir=str(outdir), context=FLAGS | cli, builtin_cloud_formation_validation=False)
        self.data, self.stack = Stack(self.app, "data"), Stack(self.app, "small")
        self.records = dynamodb.Table(
            self.data,
            "Records",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            time_to_live_attribute="expiration",
            stream=dynamodb.StreamViewType.NEW_IMAGE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=RemovalPolicy.RETAIN,
        )
        self.orders = dynamodb.CfnTable(
            self.data,
            "Orders",
            key_schema=[{"attributeName": "order_id", "keyType": "HASH"}],
            attribute_definitions=[{"attributeName": "order_id", "attributeType": "S"}],
            billing_mode="PAY_PER_REQUEST",
            point_in_time_recovery_specification={"pointInTimeRecoveryEnabled": True},
        )
        self.orders.apply_removal_policy(RemovalPolicy.RETAIN)

        self.dlq = sqs.Queue(self.stack, "Dlq", retention_period=Duration.days(14))
        self.queue = sqs.Queue(
            self.stack,
            "Queue",
            queue_name="work",
            retention_period=Duration.days(7),
            max_message_size_bytes=64 * 1024 + 8 * 1024,
            visibility_timeout=Duration.seconds(60),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dlq, max_receive_count=TIMES.max_receives(60)),
        )
        self.alarm = self.watch("Alarm", self.dlq)
        self.function, self.role = self.make_function(
            "Worker",
            {
                "IDEMPOTENCY_TABLE": self.records.table_name,
                "ORDERS_TABLE": self.orders.ref,
                "RECORD_TTL_S": str(TIMES.record_ttl_s),
                "LEASE_SKEW_S": "5",
                "STEP_NEEDS_S": "6",
                "RESERVE_S": "3.25",
                "CLIENT_CONNECT_TIMEOUT_S": "0.5",
                "CLIENT_READ_TIMEOUT_S": "0.5",
                "BACKOFF_BASE_S": "2",
                "BACKOFF_CAP_S": "900",
                "CONCURRENCY": "10",
            },
        )
        self.mapping = lambda_.EventSourceMapping(
            self.stack,
            "Mapping",
            target=self.function,
            event_source_arn=self.queue.queue_arn,
            batch_size=10,
            report_batch_item_failures=True,
        )
        self.failures = sqs.Queue(self.stack, "Failures", retention_period=Duration.days(14))
        self.failures_alarm = self.watch("FailuresAlarm", self.failures)
        self.relay, _ = self.make_function("Relay", {"ROUTES": "{}"})
        self.stream = lambda_.CfnEventSourceMapping(
            self.stack,
            "Stream",
            function_name=self.relay.function_name,
            event_source_arn=self.records.table_stream_arn,
            starting_position="TRIM_HORIZON",
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=10,
            maximum_record_age_in_seconds=9000,
            function_response_types=["ReportBatchItemFailures"],
            destination_config={"onFailure": {"destination": self.failures.queue_arn}},
            filter_criteria={"filters": [{"pattern": FILTER}]},
        )

    def make_function(self, id: str, environment: dict[str, str]) -> tuple[lambda_.Function, iam.Role]:
        role = iam.Role(self.stack, f"{id}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        function = lambda_.Function(
            self.stack,
            id,
            code=lambda_.Code.from_inline("handler = print"),
            handler="index.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
            timeout=Duration.seconds(10),
            role=role,
            environment=environment,
        )
        return function, role

    def watch(self, id: str, queue: sqs.Queue) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self.stack,
            id,
            metric=queue.metric_approximate_number_of_messages_visible(statistic="Maximum"),
            threshold=0,
            evaluation_periods=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        )
        self.override(alarm, "AlarmActions", [ALARM_TOPIC])
        return alarm

    def override(self, of: IConstruct, path: str, value: Any) -> "MinimalApp":
        """Set a property with the escape hatch of the CDK, or remove it with None."""
        l1 = cast(CfnResource, of if isinstance(of, CfnResource) else of.node.default_child)
        if value is None:
            l1.add_property_deletion_override(path)
        else:
            l1.add_property_override(path, value)
        return self

    def env(self, name: str, value: Any) -> "MinimalApp":
        return self.override(self.function, f"Environment.Variables.{name}", value)

    def allow(self, *actions: str, on: str, **props: Any) -> "MinimalApp":
        self.role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=[on], **props))
        return self

    def parameter(self, id: str = "Unknown", type: str = "String") -> str:
        """Return a value that is unknown before the deployment."""
        return CfnParameter(self.stack, id, type=type, default="30").value_as_string

    def condition(self, yes: Any, no: Any) -> Any:
        """Return another such value, in the form of a template."""
        CfnCondition(self.stack, "Either", expression=Fn.condition_equals(self.parameter(), "yes"))
        return {"Fn::If": ["Either", yes, no]}

    def templates(self) -> list[Template]:
        return templates_of(stack.template_full_path for stack in self.app.synth().stacks_recursively)

    def findings(self) -> list[tuple[Check, Finding]]:
        model = Model(self.templates(), self.settings)
        return [(check, finding) for check in CHECKS for finding in check(model)]


@dataclass(frozen=True)
class Break:
    """One way to break the app: the check that finds it, at which resource, and what the finding quotes."""

    check: Check
    what: str
    how: Callable[[MinimalApp], object]
    at: str
    quotes: tuple[str, ...]
    stage: str = "prod"

    def __str__(self) -> str:
        return self.what.replace(" ", "_")

    def assert_found(self, outdir: Path) -> None:
        app = MinimalApp(outdir, self.stage)
        self.how(app)
        found = [finding for check, finding in app.findings() if check is self.check]
        assert [finding.resource for finding in found] == [self.at]
        for quote in self.quotes:
            assert quote in found[0].says
        assert found[0].why
        assert found[0].do


@dataclass(frozen=True)
class Fine:
    """Another correct form of the app: no check finds anything."""

    what: str
    how: Callable[[MinimalApp], object]
    stage: str = "prod"

    def __str__(self) -> str:
        return self.what.replace(" ", "_")

    def assert_fine(self, outdir: Path) -> None:
        app = MinimalApp(outdir, self.stage)
        self.how(app)
        assert app.findings() == []
