"""The contrast's app: ours as ever, and beside it lanes that differ from it in nothing but their handlers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from stacks.application import build
from stacks.times import SettingsError
from tests.harness.synth import STAGES, new_app, synthesise_under_umask_077, unreadable

from lab.contrast.app.__main__ import build_contrast
from lab.demo.lanes import NAIVE, POWERTOOLS, Lane

Templates = Mapping[str, Mapping[str, Any]]

NAME = "effectively-once-local"
OTHERS = pytest.mark.parametrize("lane", [NAIVE, POWERTOOLS], ids=lambda lane: lane.name)
OURS = ("stateful", "sandbox", "pipeline", "observability")
KNOWN = ("Orders", "Payments", "Emails")  # the stages that other lanes have
KNOWN_OUTPUTS = ("Order", "Payment", "Email", "Idempotency", "Receipts", "Ledger")  # prefixes of their outputs
FAULTS = {"faults_seed": "7", "faults_percent": "10"}


def templates_of(assembly: Any) -> Templates:
    """By stack name, without what all begin with."""
    return {stack.stack_name.removeprefix(f"{NAME}-"): stack.template for stack in assembly.stacks}


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Any:
    app = new_app(tmp_path_factory.mktemp("plain"), "local")
    build_contrast(app)
    return app.synth()


@pytest.fixture(scope="module")
def plain(assembly: Any) -> Templates:
    return templates_of(assembly)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    app = new_app(tmp_path_factory.mktemp("faulty"), "local", **FAULTS)
    build_contrast(app)
    return templates_of(app.synth())


def properties(template: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Of all resources of a kind, by construct path within their stack."""
    return {
        resource["Metadata"]["aws:cdk:path"].split("/", 1)[1]: resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == kind
    }


def test_ours_is_what_is_deployed_without_a_contrast(plain: Templates, tmp_path: Path) -> None:
    alone = new_app(tmp_path, "local")
    build(alone)
    found = templates_of(alone.synth())
    assert set(found) == set(OURS)
    assert {name: plain[name] for name in OURS} == found


@OTHERS
def test_a_lane_has_the_queues_of_ours_with_their_times_and_receives(plain: Templates, lane: Lane) -> None:
    def times(stack: str) -> dict[str, Any]:
        return {
            path: (
                queue.get("VisibilityTimeout"),
                queue.get("RedrivePolicy", {}).get("maxReceiveCount"),
                queue["MessageRetentionPeriod"],
            )
            for path, queue in properties(plain[stack], "AWS::SQS::Queue").items()
            if path.split("/")[0] in KNOWN
        }

    assert times(f"{lane.name}-pipeline") == times("pipeline")
    assert {path.split("/")[0] for path in times("pipeline")} == set(KNOWN)


@OTHERS
def test_a_lane_has_the_mappings_and_timeouts_of_ours_and_its_own_handlers(plain: Templates, lane: Lane) -> None:
    def like(stack: str) -> dict[str, Any]:
        mappings = properties(plain[stack], "AWS::Lambda::EventSourceMapping")
        functions = properties(plain[stack], "AWS::Lambda::Function")
        steps = [path for path in functions if path.split("/")[0] in KNOWN]
        return {
            path: (
                functions[path]["Timeout"],
                functions[path]["MemorySize"],
                [
                    (mapping["BatchSize"], mapping["ScalingConfig"], mapping["FunctionResponseTypes"])
                    for where, mapping in mappings.items()
                    if where.split("/")[0] == path.split("/")[0]
                ],
            )
            for path in steps
        }

    assert like(f"{lane.name}-pipeline") == like("pipeline")
    functions = properties(plain[f"{lane.name}-pipeline"], "AWS::Lambda::Function").values()
    assert {function["Handler"] for function in functions} == {
        f"{lane.package}.{step}.handler" for step in ("order", "payment", "email")
    }


@OTHERS
def test_a_lanes_outputs_have_the_names_of_ours_behind_its_prefix(plain: Templates, lane: Lane) -> None:
    def names(stacks: tuple[str, ...]) -> set[str]:
        return {
            name for stack in stacks for name in plain[stack].get("Outputs", {}) if not name.startswith("PublishOutput")
        }

    ours, own = names(OURS), names(tuple(f"{lane.name}-{name}" for name in OURS[:3]))
    behind = {name.removeprefix(lane.prefix) for name in own}
    assert {f"{lane.prefix}{name}" for name in behind} == own
    assert {name for name in ours if name.startswith(KNOWN_OUTPUTS)} == behind


@OTHERS
def test_a_lanes_queues_tables_and_provider_are_its_own(plain: Templates, lane: Lane) -> None:
    names = [queue["QueueName"] for stack in plain.values() for queue in properties(stack, "AWS::SQS::Queue").values()]
    assert len(names) == len(set(names))
    for function in properties(plain[f"{lane.name}-pipeline"], "AWS::Lambda::Function").values():
        variables = function["Environment"]["Variables"]
        for name in ("IDEMPOTENCY_TABLE", "ORDERS_TABLE", "RECEIPTS_BUCKET"):
            assert variables[name]["Fn::GetStackOutput"]["StackName"] == f"{NAME}-{lane.name}-stateful"
        assert variables["PROVIDER_URL"]["Fn::GetStackOutput"] == {
            "StackName": f"{NAME}-{lane.name}-sandbox",
            "OutputName": f"{lane.prefix}PaymentSandboxUrl",
        }


@OTHERS
def test_each_step_of_a_lane_sends_to_the_next_queue_and_the_last_to_none(plain: Templates, lane: Lane) -> None:
    functions = properties(plain[f"{lane.name}-pipeline"], "AWS::Lambda::Function")
    nexts = {path.split("/")[0]: function["Environment"]["Variables"] for path, function in functions.items()}
    assert nexts["Orders"]["NEXT_QUEUE_URL"] == nexts["Payments"]["QUEUE_URL"]
    assert nexts["Payments"]["NEXT_QUEUE_URL"] == nexts["Emails"]["QUEUE_URL"]
    assert "NEXT_QUEUE_URL" not in nexts["Emails"]


@OTHERS
def test_a_lanes_provider_is_deployed_before_those_who_call_it(assembly: Any, lane: Lane) -> None:
    pipeline = assembly.get_stack_by_name(f"{NAME}-{lane.name}-pipeline")
    needs = {dependency.id for dependency in pipeline.dependencies}
    assert {f"{NAME}-{lane.name}-sandbox", f"{NAME}-{lane.name}-stateful"} <= needs


def faults_of(templates: Templates) -> dict[tuple[str, str], tuple[str, str]]:
    """Lane and step → seed and percentage."""
    found = {}
    for stack in templates.values():
        for function in properties(stack, "AWS::Lambda::Function").values():
            variables = function["Environment"]["Variables"]
            if "FAULTS_LANE" in variables:
                at = (variables["FAULTS_LANE"], variables["FAULTS_FUNCTION"])
                found[at] = (variables["FAULTS_SEED"], variables["FAULTS_PERCENT"])
    return found


def test_without_a_seed_there_are_no_faults(plain: Templates) -> None:
    assert faults_of(plain) == {}


def test_with_a_seed_all_lanes_meet_the_same_faults_and_our_relay_besides(faulty: Templates) -> None:
    lanes = [(lane, step) for lane in ("ours", "naive", "powertools") for step in ("order", "payment", "email")]
    assert faults_of(faulty) == dict.fromkeys([*lanes, ("ours", "relay")], ("7", "10"))


def test_with_faults_too_all_lanes_have_the_same_timeouts(faulty: Templates) -> None:
    def timeouts(stack: str) -> dict[str, int]:
        functions = properties(faulty[stack], "AWS::Lambda::Function")
        return {path: each["Timeout"] for path, each in functions.items() if path.split("/")[0] in KNOWN}

    assert timeouts("naive-pipeline") == timeouts("powertools-pipeline") == timeouts("pipeline")


def test_another_user_can_read_every_asset_of_the_demo_that_was_staged_under_umask_077(tmp_path: Path) -> None:
    found = synthesise_under_umask_077(
        tmp_path, "-m", "lab.contrast.app", more=("lab", "tools"), stage="local", **STAGES["local"], **FAULTS
    )
    assert list(found.glob("asset.*/demo/faults/entry.py"))
    assert unreadable(found) == []


@pytest.mark.parametrize("stage", ["sandbox", "prod"])
def test_no_other_stage_than_a_laptops_has_it(stage: str, tmp_path: Path) -> None:
    app = new_app(tmp_path, stage, **STAGES[stage])
    with pytest.raises(SettingsError, match=f"stage {stage} with the contrast"):
        build_contrast(app)


def test_a_journal_is_every_functions_and_a_lane_that_is_not_wanted_is_not_there(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local", **FAULTS, faults_journal="a-file", lanes="ours,naive")
    build_contrast(app)
    found = templates_of(app.synth())
    assert f"{NAIVE.name}-pipeline" in found
    assert f"{POWERTOOLS.name}-pipeline" not in found
    functions = [
        function
        for template in found.values()
        for function in properties(template, "AWS::Lambda::Function").values()
        if function["Handler"] == "lab.faults.entry.handler"
    ]
    assert len(functions) == 7
    assert {function["Environment"]["Variables"]["FAULTS_JOURNAL"] for function in functions} == {"a-file"}
