"""A Lambda function of this application: its own role, logs with a retention, traces."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

from aws_cdk import Annotations, CfnOutput, CfnResource, Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.assets import RUNTIME, function_code, shared_layer
from stacks.settings import Settings, Stage
from stacks.stateful import removal_policy
from stacks.times import CALLS, NO_GUARD, Client, RequestBudget, Timing

MEMORY_MB = 512
NAMESPACE = "EffectivelyOnce"


def allow(resource_arn: str, *actions: str) -> iam.PolicyStatement:
    """Allow these actions on this resource. The CDK's `grant_*` methods allow more than the functions use."""
    return iam.PolicyStatement(actions=list(actions), resources=[resource_arn])


def seconds(value: float) -> str:
    """Format seconds for an environment variable, whole seconds without a decimal point."""
    return str(int(value)) if value == int(value) else str(value)


def client_environment(client: Client, prefix: str) -> dict[str, str]:
    return {
        f"{prefix}_CONNECT_TIMEOUT_S": seconds(client.connect_s),
        f"{prefix}_READ_TIMEOUT_S": seconds(client.read_s),
    }


class AppFunction(lambda_.Function):
    """The Lambda function in the folder `functions/<name>`, with its own role, log group and traces.

    `permissions`: all that the function may do, except for writing logs and traces.
    `module`: the module of the handler, if it is not `functions.<name>.handler`.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        settings: Settings,
        timeout_s: int,
        environment: Mapping[str, str],
        permissions: Sequence[iam.PolicyStatement],
        layers: Sequence[lambda_.ILayerVersion] = (),
        module: str | None = None,
    ) -> None:
        module = module or f"functions.{name}.handler"
        title = "".join(word.capitalize() for word in name.split("_"))
        role = iam.Role(scope, f"{title}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group = logs.LogGroup(
            scope,
            f"{title}Logs",
            retention=logs.RetentionDays[settings.log_retention],
            removal_policy=removal_policy(settings),
        )
        super().__init__(
            scope,
            f"{title}Function",
            code=function_code(module.rpartition(".")[0]),
            handler=f"{module}.handler",
            runtime=RUNTIME,
            architecture=lambda_.Architecture.ARM_64,
            memory_size=MEMORY_MB,
            timeout=Duration.seconds(timeout_s),
            layers=[shared_layer(scope, third_party=settings.stage is not Stage.LOCAL), *layers],
            role=role,
            log_group=log_group,
            tracing=lambda_.Tracing.ACTIVE,  # adds the X-Ray actions on "*": X-Ray has no resources
            environment={
                "STAGE": settings.stage,
                "POWERTOOLS_SERVICE_NAME": name,
                "POWERTOOLS_METRICS_NAMESPACE": NAMESPACE,
                "POWERTOOLS_LOG_LEVEL": "INFO",
                **client_environment(settings.times.aws, "CLIENT"),
                **environment,
            },
        )
        self.execution_role = role
        self.service = name
        self._stage = settings.stage
        for statement in (allow(log_group.log_group_arn, "logs:CreateLogStream", "logs:PutLogEvents"), *permissions):
            role.add_to_policy(statement)
        CfnOutput(Stack.of(self), f"{title}FunctionName", value=self.function_name)

    def describe_step(self, calls: RequestBudget, no_guard: str | None = None) -> None:
        """Add facts of the function's step to the template.

        `calls`: the requests that STEP_NEEDS_S allows for; stacks/checks reads them. `no_guard`: why the step has no
        guard; every synthesis prints it as a warning.
        """
        resource = cast(CfnResource, self.node.default_child)
        resource.add_metadata(CALLS, asdict(calls))
        if no_guard:
            resource.add_metadata(NO_GUARD, no_guard)
            Annotations.of(self).add_warning_v2(
                NO_GUARD, f"The step has no guard: {no_guard}. Without its record, a message repeats the effect."
            )

    def count_of(self, name: str) -> cloudwatch.Metric:
        """Return the metric of this function with a name of shared/idempotency/telemetry.py."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"service": self.service, "stage": self._stage},
            statistic="Sum",
        )


def step_environment(settings: Settings, timing: Timing, *, idempotency: str, orders: str) -> dict[str, str]:
    """Return the variables of a function that runs steps. `idempotency` and `orders` are table names."""
    return {
        "IDEMPOTENCY_TABLE": idempotency,
        "ORDERS_TABLE": orders,
        "RECORD_TTL_S": seconds(settings.times.record_ttl_s),
        "LEASE_SKEW_S": seconds(settings.times.lease_skew_s),
        "STEP_NEEDS_S": seconds(timing.step_needs_s),
        "RESERVE_S": seconds(timing.reserve_s),
    }
