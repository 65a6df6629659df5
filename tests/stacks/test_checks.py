"""The checks as a whole: what is right passes, whatever is unknown crashes none, and a finding stops the synthesis."""

import copy
import inspect
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from aws_cdk import App, CfnResource

from stacks import application
from stacks.checks import CHECKS, plugin
from stacks.checks.model import Finding, Model, Template
from stacks.settings import Settings, settings_from
from tests.harness.synth import ROOT, STAGES, Synthesised, new_app
from tests.stacks import (
    test_checks_mappings,
    test_checks_policies,
    test_checks_queues,
    test_checks_stage,
    test_checks_streams,
    test_checks_tables,
    test_checks_timing,
)
from tests.stacks.minimal_app import MinimalApp

FAMILIES = (
    test_checks_mappings,
    test_checks_policies,
    test_checks_queues,
    test_checks_stage,
    test_checks_streams,
    test_checks_tables,
    test_checks_timing,
)
LISTED = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "checks.md").read_text(), re.MULTILINE)


def test_the_app_keeps_its_promise_in_each_stage(any_stage: Synthesised) -> None:
    settings = settings_from({"stage": any_stage.stage, **STAGES[any_stage.stage]}.get)
    stacks = [
        Template(name, f"effectively-once-{any_stage.stage}-{name}", body) for name, body in any_stage.templates.items()
    ]
    model = Model(stacks, settings)
    assert len(model.of_type("AWS::SQS::Queue")) >= 7
    assert [finding for each in CHECKS for finding in each(model)] == []


def test_a_copiers_plain_app_passes(tmp_path: Path) -> None:
    assert MinimalApp(tmp_path).findings() == []


def test_each_check_has_a_test_that_it_finds_something() -> None:
    found = {broken.check for family in FAMILIES for broken in family.BREAKS}
    assert found == set(CHECKS)


def test_each_check_is_documented_with_its_reason() -> None:
    assert sorted(LISTED) == sorted(each.__name__ for each in CHECKS)
    assert all(inspect.getdoc(each) for each in CHECKS)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where anything is in a template's resources, the resources themselves and their types left alone."""
    if path[1:2] in (("Type",), ("Metadata",)):  # no place for a reference
        return
    if len(path) > 1:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


ODD: tuple[Any, ...] = (
    {"Ref": "AWS::NoValue"},
    {"Ref": "Parameter"},
    {"Fn::If": ["Condition", "a", 1]},
    {"Fn::GetAtt": ["Missing", "Arn"]},
    {"Fn::ImportValue": {"Fn::Sub": "${Missing}-x"}},
    {"Fn::Select": [0, {"Fn::Split": [":", {"Ref": "Parameter"}]}]},
)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: next(iter(odd)).removeprefix("Fn::"))
def test_no_value_that_is_unknown_before_the_deployment_crashes_a_check(odd: Any, tmp_path: Path) -> None:
    app = MinimalApp(tmp_path)
    app.allow("kms:Decrypt", "sqs:SendMessage", on=app.dlq.queue_arn)
    app.override(app.dlq, "KmsMasterKeyId", "alias/ours")
    app.override(app.function, "ReservedConcurrentExecutions", 3)
    app.override(app.mapping, "ScalingConfig.MaximumConcurrency", 3)
    templates = app.templates()
    tried = 0
    for number, template in enumerate(templates):
        for path in places(template.body["Resources"]):
            body = copy.deepcopy(dict(template.body))
            parent = body["Resources"]
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = odd
            changed = Template(template.key, template.stack, body)
            model = Model([*templates[:number], changed, *templates[number + 1 :]], app.settings)
            for each in CHECKS:
                list(each(model))
            tried += 1
    assert tried > 200


def broken_in_two_ways(app: App) -> Settings:
    settings = application.build(app)
    payments = app.node.find_child("effectively-once-local-pipeline").node.find_child("Payments")
    for name, path, value in (("Queue", "VisibilityTimeout", 20), ("Mapping", "FunctionResponseTypes", [])):
        l1 = cast(CfnResource, payments.node.find_child(name).node.default_child)
        l1.add_property_override(path, value)
    return settings


def test_synthesis_fails_with_every_finding(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local")
    settings = broken_in_two_ways(app)
    with pytest.raises(RuntimeError) as stopped:
        application.synthesise(app, settings)
    report = str(stopped.value)
    for text in (
        "effectively-once-local-pipeline/Payments/Queue",
        "visibility timeout 20 s, but 6 x 9 s",
        "Set VisibilityTimeout to 54 s or more",
        "effectively-once-local-pipeline/Payments/Mapping",
        "EffectivelyOnce::failed_records_are_reported_singly",
        "2 findings in this app",
    ):
        assert text in report


def cdk(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the CDK CLI. No AWS answers at its endpoint."""
    return subprocess.run(
        [ROOT / ".venv" / "bin" / "node", ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk", *arguments],
        env=os.environ
        | {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "none",
            "AWS_SECRET_ACCESS_KEY": "none",
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def broken_assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `cdk.out` that the CDK CLI would have of a broken app: the CLI sets this flag and reports by itself."""
    outdir = tmp_path_factory.mktemp("broken")
    app = new_app(outdir, "local")
    app.node.set_context("@aws-cdk/core:failSynthOnValidationErrors", False)
    application.synthesise(app, broken_in_two_ways(app))
    return outdir


@pytest.mark.parametrize("selection", [("--all",), ("effectively-once-local-stateful", "--exclusively")])
def test_the_cdk_cli_refuses_to_deploy_any_stack_of_an_app_with_a_finding(
    broken_assembly: Path, selection: tuple[str, ...]
) -> None:
    done = cdk("deploy", "--app", str(broken_assembly), "--require-approval=never", *selection)

    assert done.returncode == 1
    assert "2 findings in this app" in done.stderr + done.stdout
    assert "effectively-once-local-pipeline/Payments/Queue" in done.stderr + done.stdout


def test_a_check_that_crashes_fails_the_synthesis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crashes(_: Model) -> Iterator[Finding]:
        raise ZeroDivisionError("no queue")

    monkeypatch.setattr(plugin, "CHECKS", (crashes,))
    app = new_app(tmp_path, "local")
    with pytest.raises(RuntimeError, match="a check failed with ZeroDivisionError: no queue"):
        application.synthesise(app, application.build(app))


def test_the_model_follows_imports_and_exports(tmp_path: Path) -> None:
    app = MinimalApp(tmp_path)
    dlq = {"Properties": {"MessageRetentionPeriod": 60}, "Type": "AWS::SQS::Queue"}
    exported = {"Out": {"Value": {"Fn::GetAtt": ["Dlq", "Arn"]}, "Export": {"Name": "far-dlq"}}}
    source = {
        "Type": "AWS::SQS::Queue",
        "Properties": {"RedrivePolicy": {"deadLetterTargetArn": {"Fn::ImportValue": "far-dlq"}, "maxReceiveCount": 9}},
    }
    model = Model(
        [
            Template("far", "far", {"Resources": {"Dlq": dlq}, "Outputs": exported}),
            Template("near", "near", {"Resources": {"Queue": source}}),
        ],
        app.settings,
    )
    queue = model.resources["near", "Queue"]
    assert model.find(queue.get("RedrivePolicy", "deadLetterTargetArn")) == model.resources["far", "Dlq"]
    assert [finding for check in CHECKS for finding in check(model)] == []  # no function consumes the queue
