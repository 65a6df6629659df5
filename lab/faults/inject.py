"""The stacks' side: gives a function the other entry point, and the table that its faults are noted in."""

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

ENTRY = "lab.faults.entry.handler"
START_S = 1.0  # from the start of an invocation to its last claim
ROUNDED_S = 1.0  # SQS hides messages for whole seconds
TAKEN_S = 4.0  # from a message that is visible again to the next worker's commit; a cold one starts for three
FINISH_S = 2.0  # that a zombie needs for what it goes on with, before Lambda ends it


@dataclass(frozen=True)
class Stall:
    """The times of a stall, in seconds from an invocation's start.

    A worker that Lambda ends is no zombie. So one that is to stall is told that it has `remaining_s` only, just enough
    to start: its lease ends that much earlier. Its message is delivered again after `again_s`, when the lease is over,
    and it goes on after `until_s`, within the function's true timeout.
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
    """The least `spare_s` with which a worker can stall past its lease and still go on."""
    return Stall.of(times, 0).until_s + FINISH_S


class FaultsTable(Construct):
    """What was injected, and what is armed. Raises SettingsError in prod."""

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
    faults: FaultsTable,
    *,
    settings: Settings,
    lane: str,
    seed: int,
    percent: float,
    operation: str | None = None,
    step_needs_s: float | None = None,
) -> None:
    """Put faults around a function, by plan and seed. Same imports, same folder, and what it may, plus the table.

    `operation`: which step of plan.py it is, where its name does not say so; `percent` of first receives meet a fault.
    `step_needs_s`: seconds that a step must have left to be started; only what has an outside effect needs it told, and
    its own QUEUE_URL with the right to ChangeMessageVisibility, as QueueConsumer gives.
    Raises SettingsError in prod, and where a stall does not fit the timeout.
    """
    _refuse_production(settings)
    name = operation or function.service
    require(name in OPERATIONS, f"faults in {name!r}: plan.py knows {', '.join(OPERATIONS)}")
    require(0 <= percent <= 100, f"faults in {percent} % of the messages")
    require("#" not in lane and lane != "armed", f"lane {lane!r}: the table's ids are made of it")
    resource = cast(lambda_.CfnFunction, function.node.default_child)
    real = cast(str, resource.handler)
    environment = {
        "FAULTS_HANDLER": real,
        "FAULTS_TABLE": faults.table.table_name,
        "FAULTS_LANE": lane,
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
        raise SettingsError(f"stage {settings.stage} with injected faults: they are for sandbox and local only")


def _stall(function: AppFunction, times: Times, name: str, step_needs_s: float | None) -> dict[str, str]:
    if not OPERATIONS[name].effect:
        return {}
    require(step_needs_s is not None, f"faults in {name} without step_needs_s: how long is its lease to last?")
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
    """The package of the real handler's module, and this one."""
    code = function_code(handler.rsplit(".", 2)[0], "lab.faults")
    location = cast(s3.Location, code.bind(resource).s3_location)  # of an asset there always is one
    resource.code = lambda_.CfnFunction.CodeProperty(s3_bucket=location.bucket_name, s3_key=location.object_key)
    code.bind_to_resource(resource)
