"""CDK side of fault injection: wrap a function, and create the fault table."""

from dataclasses import dataclass
from typing import cast

from aws_cdk import CfnOutput, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct
from stacks.constructs.assets import function_code
from stacks.constructs.function import AppFunction, allow, seconds
from stacks.settings import Settings, Stage
from stacks.times import SettingsError, Times, require

from lab.faults.plan import OPERATIONS

ENTRY = "lab.faults.wrapped_handler.handler"
START_S = 1.0  # from the start of an invocation to its last claim
ROUNDED_S = 1.0  # SQS hides messages for whole seconds
TAKEN_S = 3.0  # from a visible message to the commit of the next worker
FINISH_S = 1.5  # of a zombie, from the end of its stall to the end of its invocation


@dataclass(frozen=True)
class Stall:
    """The times of a stall, in seconds from the start of an invocation.

    A zombie must outlive its lease, and Lambda ends a worker at its timeout. A worker that will stall therefore sees
    only `remaining_s`, so that its lease ends early. SQS delivers the message again after `again_s`, when the lease has
    expired. The worker continues after `until_s`, within the true timeout.
    """

    remaining_s: float
    again_s: float
    until_s: float

    @classmethod
    def of(cls, times: Times, step_needs_s: float) -> "Stall":
        remaining_s = step_needs_s + START_S
        again_s = remaining_s + times.lease_skew_s + ROUNDED_S
        return cls(remaining_s, again_s, again_s + TAKEN_S)


def spare_for_stalls(times: Times) -> float:
    """The least `spare_s` that lets a worker stall past its lease and continue."""
    return Stall.of(times, 0).until_s + FINISH_S


class FaultTableConstruct(Construct):
    """The fault table. Raises SettingsError in prod."""

    def __init__(self, scope: Construct, *, settings: Settings) -> None:
        _refuse_production(settings)
        super().__init__(scope, "Faults")
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            removal_policy=RemovalPolicy.DESTROY,
        )
        CfnOutput(Stack.of(self), "FaultsTableName", value=self.table.table_name)


def inject(
    function: AppFunction,
    faults: FaultTableConstruct,
    *,
    settings: Settings,
    variant: str,
    seed: int,
    percent: float,
    operation: str | None = None,
    step_needs_s: float | None = None,
) -> None:
    """Wrap a function with faults, by plan and seed. The function keeps its permissions and may write to the table.

    `operation` names the step in plan.py, if it differs from the service name. `percent` of first receives meet a
    fault. A step with an outside effect needs `step_needs_s`, the seconds that it must have left to start, and its
    QUEUE_URL with the permission ChangeMessageVisibility, as QueueConsumer gives.
    Raises SettingsError in prod, and if a stall does not fit the timeout.
    """
    _refuse_production(settings)
    name = operation or function.service
    require(name in OPERATIONS, f"faults in {name!r}: plan.py knows {', '.join(OPERATIONS)}")
    require(0 <= percent <= 100, f"faults in {percent} % of the messages")
    require(
        "#" not in variant and variant != "armed", f"variant {variant!r}: the name is part of ids in the fault table"
    )
    resource = cast(lambda_.CfnFunction, function.node.default_child)
    real = cast(str, resource.handler)
    environment = {
        "FAULTS_HANDLER": real,
        "FAULTS_TABLE": faults.table.table_name,
        "FAULTS_VARIANT": variant,
        "FAULTS_FUNCTION": name,
        "FAULTS_SEED": str(seed),
        "FAULTS_PERCENT": seconds(percent),
        "FAULTS_SLOW_S": seconds(settings.times.aws.read_s),
        **_stall(function, settings.times, name, step_needs_s),
    }
    for key, value in environment.items():
        function.add_environment(key, value)
    resource.handler = ENTRY
    _ship(resource, real)
    function.execution_role.add_to_policy(allow(faults.table.table_arn, "dynamodb:PutItem", "dynamodb:DeleteItem"))


def _refuse_production(settings: Settings) -> None:
    if settings.stage is Stage.PROD:
        raise SettingsError(f"stage {settings.stage} with injected faults: use them in sandbox and local only")


def _stall(function: AppFunction, times: Times, name: str, step_needs_s: float | None) -> dict[str, str]:
    if not OPERATIONS[name].effect:
        return {}
    require(step_needs_s is not None, f"faults in {name} need step_needs_s")
    stall = Stall.of(times, step_needs_s or 0)
    timeout_s = function.timeout.to_seconds() if function.timeout else 0
    require(
        stall.until_s + FINISH_S <= timeout_s,
        f"{name} stalls until {stall.until_s} s and needs {FINISH_S} s more, its timeout is {timeout_s} s: "
        f"needs spare_s of {spare_for_stalls(times)} or more",
    )
    return {
        "FAULTS_REMAINING_S": seconds(stall.remaining_s),
        "FAULTS_AGAIN_S": seconds(stall.again_s),
        "FAULTS_STALL_S": seconds(stall.until_s),
    }


def _ship(resource: lambda_.CfnFunction, handler: str) -> None:
    """Ship the package of the real handler and this package."""
    code = function_code(handler.rsplit(".", 2)[0], "lab.faults")
    location = cast(s3.Location, code.bind(resource).s3_location)  # an asset always has a location
    resource.code = lambda_.CfnFunction.CodeProperty(s3_bucket=location.bucket_name, s3_key=location.object_key)
    code.bind_to_resource(resource)
