"""The checks as a whole: what is right passes, whatever is unknown crashes none, and a finding stops the synthesis."""

import copy
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from aws_cdk import App, CfnResource

from stacks import application
from stacks.checks import CHECKS, CanNotKeepThePromise, check
from stacks.checks.assembly import templates_of
from stacks.checks.model import Model, Template
from stacks.settings import Settings, settings_from
from tests.harness.synth import FLAGS, ROOT, STAGES, Synthesised, new_app
from tests.stacks import (
    test_checks_mappings,
    test_checks_policies,
    test_checks_queues,
    test_checks_stage,
    test_checks_streams,
    test_checks_tables,
    test_checks_timing,
)
from tests.stacks.small import SmallApp

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
    assert SmallApp(tmp_path).findings() == []


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
    app = SmallApp(tmp_path)
    app.allow("kms:Decrypt", "sqs:SendMessage", on=app.dlq.queue_arn)
    app.override(app.dlq, "KmsMasterKeyId", "alias/ours")
    app.override(app.function, "ReservedConcurrentExecutions", 3)
    app.override(app.mapping, "ScalingConfig.MaximumConcurrency", 3)
    templates = templates_of(app.app.synth())
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
    pipeline = app.node.find_child("effectively-once-local-pipeline").node.find_child("Payments")
    for name, path, value in (("Queue", "VisibilityTimeout", 9), ("Mapping", "FunctionResponseTypes", [])):
        l1 = cast(CfnResource, pipeline.node.find_child(name).node.default_child)
        l1.add_property_override(path, value)
    return settings


def test_a_broken_app_says_everything_at_once_and_leaves_nothing_to_deploy(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local")
    settings = broken_in_two_ways(app)
    with pytest.raises(CanNotKeepThePromise) as stopped:
        application.synthesise(app, settings)
    text = str(stopped.value)
    assert "effectively-once-local-pipeline/Payments/Queue  (visibility_outlasts_the_retries_of_a_batch)" in text
    assert "Visibility timeout 9 s, but 6 x 7 s" in text
    assert "effectively-once-local-pipeline/Payments/Mapping  (failed_records_are_reported_singly)" in text
    assert max(map(len, text.splitlines())) <= 120
    assert [path.name for path in tmp_path.rglob("*.json")] == []


def test_the_cdk_cli_gets_the_findings_and_a_bad_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = application.build
    monkeypatch.setattr(application, "build", lambda app: broken_with(build, app))
    # How the CLI hands over where to write and what was said on its command line.
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path))
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps(FLAGS | {"stage": "local", "aws:cdk:bundling-stacks": []}))
    with pytest.raises(SystemExit) as ended:
        application.main()
    assert "can not keep its promise" in str(ended.value.code)  # a text as status: to stderr, and 1


def broken_with(build: Any, app: App) -> Settings:
    settings: Settings = build(app)
    queue = app.node.find_child("effectively-once-local-pipeline").node.find_child("Orders").node.find_child("Dlq")
    cast(CfnResource, queue.node.default_child).add_property_override("MessageRetentionPeriod", 60)
    return settings


def test_the_model_follows_imports_and_exports(tmp_path: Path) -> None:
    app = SmallApp(tmp_path)
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
    check(model)  # nobody consumes it: nothing to say
