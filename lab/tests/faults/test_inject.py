"""The stacks' side: what a function gets, and where none may."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stack
from stacks.constructs.function import AppFunction, allow
from stacks.settings import Settings, settings_from
from stacks.times import RequestBudget, SettingsError, Times
from tests.harness.synth import STAGES, Synthesised, new_app, read

from lab.faults.inject import FaultTableConstruct, inject, spare_for_stalls
from lab.faults.worker import Setup
from lab.faults.worker import Stall as SetupStall

PAYMENT = RequestBudget(aws=4, provider=3)
RIGHTS = ["logs:CreateLogStream", "logs:PutLogEvents", "sqs:SendMessage", "dynamodb:PutItem", "dynamodb:DeleteItem"]


def settings_of(stage: str) -> Settings:
    """With time to stall, unless it is for production."""
    settings = settings_from(({"stage": stage} | STAGES[stage]).get)
    return replace(settings, times=with_room(settings.times))


def with_room(times: Times) -> Times:
    return replace(times, spare_s=spare_for_stalls(times))


def injected(
    outdir: Path, *, stage: str = "local", calls: RequestBudget = PAYMENT, name: str = "payment", **how: Any
) -> Synthesised:
    """A function on its own, with faults."""
    settings = how.pop("settings", None) or settings_of(stage)
    app = new_app(outdir, stage)
    stack = Stack(app, "a-faulty")
    timing = settings.times.timing(calls)
    function = AppFunction(
        stack,
        name,
        settings=settings,
        timeout_s=timing.timeout_s,
        environment={"QUEUE_URL": "the-queue"},
        permissions=[allow("arn:aws:sqs:eu-west-1:123456789012:q", "sqs:SendMessage")],
        module=how.pop("module", None),
    )
    least_s = timing.step_needs_s + timing.reserve_s
    how = {"variant": "this-repo", "seed": 7, "percent": 12.5, "step_needs_s": least_s} | how
    inject(function, FaultTableConstruct(stack, settings=settings), settings=settings, **how)
    return read(app, outdir, stage)


def the_function(found: Synthesised) -> Any:
    [function] = found.of_type("AWS::Lambda::Function").values()
    return function


def test_a_function_gets_the_other_entry_and_keeps_what_it_had(tmp_path: Path) -> None:
    found = injected(tmp_path)
    function = the_function(found)
    environment = function["Environment"]["Variables"]

    assert function["Handler"] == "lab.faults.wrapped_handler.handler"
    assert environment["FAULTS_HANDLER"] == "functions.payment.handler.handler"
    assert environment["FAULTS_TABLE"] == found.outputs()["FaultsTableName"] == "<Faults/Table>"
    assert environment["QUEUE_URL"] == "the-queue"
    assert Setup.of(environment) == Setup(
        variant="this-repo",
        function="payment",
        seed=7,
        percent=12.5,
        slow_s=0.5,
        stall=SetupStall(remaining_s=6.65, again_s=8.65, until_s=11.65, queue_url="the-queue"),
    )


def test_it_may_write_to_the_table_of_faults_and_no_more_than_before_otherwise(tmp_path: Path) -> None:
    [policy] = injected(tmp_path).of_type("AWS::IAM::Policy").values()
    statements = policy["PolicyDocument"]["Statement"]
    allowed = {
        (action, str(statement["Resource"]))
        for statement in statements
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        if not action.startswith("xray:")
    }

    assert sorted(action for action, _ in allowed) == sorted(RIGHTS)
    table = {resource for action, resource in allowed if action.startswith("dynamodb:")}
    assert table == {"<Faults/Table.Arn>"}


@pytest.mark.parametrize(
    ("module", "own"),
    [(None, "functions/payment/handler.py"), ("lab.naive.payment", "lab/naive/payment.py")],
)
def test_it_is_shipped_with_its_own_package_and_the_faults_under_the_paths_of_the_tests(
    tmp_path: Path, module: str | None, own: str
) -> None:
    found = injected(tmp_path, module=module)
    [asset] = found.assets("AWS::Lambda::Function").values()
    files = {str(file.relative_to(asset)) for file in asset.rglob("*") if file.is_file()}
    package = own.rpartition("/")[0]

    assert {own, "lab/__init__.py", "lab/faults/wrapped_handler.py", "lab/faults/__init__.py"} <= files
    assert all(file.startswith((f"{package}/", "lab/faults/")) or file.count("/") == 1 for file in files)
    assert {file for file in files if file.count("/") == 1} <= {"lab/__init__.py", "functions/__init__.py"}
    assert the_function(found)["Code"]["S3Key"] == f"{asset.name.removeprefix('asset.')}.zip"


def test_no_production_stage_is_synthesised_with_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="stage prod with injected faults"):
        injected(tmp_path, stage="prod")
    with pytest.raises(SettingsError, match="stage prod with injected faults"):
        FaultTableConstruct(Stack(new_app(tmp_path, "prod"), "a-faulty"), settings=settings_of("prod"))
