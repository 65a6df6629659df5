"""The CDK app of the lab: this repository as in a deployment, and variants that differ in their handlers only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from stacks.application import build
from stacks.times import SettingsError
from tests.harness.synth import STAGES, new_app, synthesise_under_umask_077, unreadable

from lab.variants import NAIVE, POWERTOOLS, Variant
from lab.variants.app.__main__ import build_variants

Templates = Mapping[str, Mapping[str, Any]]

NAME = "effectively-once-local"
OTHERS = pytest.mark.parametrize("variant", [NAIVE, POWERTOOLS], ids=lambda variant: variant.name)
KNOWN = ("Orders", "Payments", "Emails")  # the stages that other variants have
THIS_REPO = ("stateful", "sandbox", "pipeline", "observability")
FAULTS = {"faults_seed": "7", "faults_percent": "10"}


def templates_of(assembly: Any) -> Templates:
    """By stack name, without what all begin with."""
    return {stack.stack_name.removeprefix(f"{NAME}-"): stack.template for stack in assembly.stacks}


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Any:
    app = new_app(tmp_path_factory.mktemp("plain"), "local")
    build_variants(app)
    return app.synth()


@pytest.fixture(scope="module")
def plain(assembly: Any) -> Templates:
    return templates_of(assembly)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    app = new_app(tmp_path_factory.mktemp("faulty"), "local", **FAULTS)
    build_variants(app)
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
    assert set(found) == set(THIS_REPO)
    assert {name: plain[name] for name in THIS_REPO} == found


@OTHERS
def test_a_variant_has_the_queues_of_ours_with_their_times_and_receives(plain: Templates, variant: Variant) -> None:
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

    assert times(f"{variant.name}-pipeline") == times("pipeline")
    assert {path.split("/")[0] for path in times("pipeline")} == set(KNOWN)


@OTHERS
def test_a_variant_has_the_mappings_and_timeouts_of_ours_and_its_own_handlers(
    plain: Templates, variant: Variant
) -> None:
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

    assert like(f"{variant.name}-pipeline") == like("pipeline")
    functions = properties(plain[f"{variant.name}-pipeline"], "AWS::Lambda::Function").values()
    assert {function["Handler"] for function in functions} == {
        f"{variant.package}.{step}.handler" for step in ("order", "payment", "email")
    }


@OTHERS
def test_a_variants_queues_tables_and_provider_are_its_own(plain: Templates, variant: Variant) -> None:
    names = [queue["QueueName"] for stack in plain.values() for queue in properties(stack, "AWS::SQS::Queue").values()]
    assert len(names) == len(set(names))
    for function in properties(plain[f"{variant.name}-pipeline"], "AWS::Lambda::Function").values():
        variables = function["Environment"]["Variables"]
        for name in ("IDEMPOTENCY_TABLE", "ORDERS_TABLE", "RECEIPTS_BUCKET"):
            assert variables[name]["Fn::GetStackOutput"]["StackName"] == f"{NAME}-{variant.name}-stateful"
        assert variables["PROVIDER_URL"]["Fn::GetStackOutput"] == {
            "StackName": f"{NAME}-{variant.name}-sandbox",
            "OutputName": f"{variant.prefix}PaymentSandboxUrl",
        }


def faults_of(templates: Templates) -> dict[tuple[str, str], tuple[str, str]]:
    """Variant and step → seed and percentage."""
    found = {}
    for stack in templates.values():
        for function in properties(stack, "AWS::Lambda::Function").values():
            variables = function["Environment"]["Variables"]
            if "FAULTS_VARIANT" in variables:
                at = (variables["FAULTS_VARIANT"], variables["FAULTS_FUNCTION"])
                found[at] = (variables["FAULTS_SEED"], variables["FAULTS_PERCENT"])
    return found


def test_with_a_seed_all_variants_meet_the_same_faults_and_our_relay_besides(faulty: Templates) -> None:
    variants = [
        (variant, step) for variant in ("this-repo", "naive", "powertools") for step in ("order", "payment", "email")
    ]
    assert faults_of(faulty) == dict.fromkeys([*variants, ("this-repo", "relay")], ("7", "10"))


def test_another_user_can_read_every_asset_of_the_demo_that_was_staged_under_umask_077(tmp_path: Path) -> None:
    found = synthesise_under_umask_077(
        tmp_path, "-m", "lab.variants.app", more=("lab", "tools"), stage="local", **STAGES["local"], **FAULTS
    )
    assert list(found.glob("asset.*/lab/faults/wrapped_handler.py"))
    assert unreadable(found) == []


@pytest.mark.parametrize("stage", ["sandbox", "prod"])
def test_no_other_stage_than_a_laptops_has_it(stage: str, tmp_path: Path) -> None:
    app = new_app(tmp_path, stage, **STAGES[stage])
    with pytest.raises(SettingsError, match=f"stage {stage} with the variants"):
        build_variants(app)


def test_a_journal_is_every_functions_and_a_variant_that_is_not_wanted_is_not_there(tmp_path: Path) -> None:
    app = new_app(tmp_path, "local", **FAULTS, faults_journal="a-file", variants="this-repo,naive")
    build_variants(app)
    found = templates_of(app.synth())
    assert f"{NAIVE.name}-pipeline" in found
    assert f"{POWERTOOLS.name}-pipeline" not in found
    functions = [
        function
        for template in found.values()
        for function in properties(template, "AWS::Lambda::Function").values()
        if function["Handler"] == "lab.faults.wrapped_handler.handler"
    ]
    assert len(functions) == 7
    assert {function["Environment"]["Variables"]["FAULTS_JOURNAL"] for function in functions} == {"a-file"}
