"""cfn-lint over the templates of every stage, for every region of a stage. Each accepted finding has its reason."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cfnlint import lint_file
from cfnlint.config import ManualArgs
from cfnlint.helpers import REGIONS as ALL_REGIONS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from tests.harness.synth import Synthesised
from tools.preflight import WITHOUT_FUNCTION_URLS, WITHOUT_SES_IDENTITIES


def supported_regions(stage: str) -> list[str]:
    """Return the regions in which preflight allows a stage."""
    if stage == "local":
        return ["eu-central-1"]
    without = {*WITHOUT_SES_IDENTITIES, *(WITHOUT_FUNCTION_URLS if stage != "prod" else ())}
    return sorted(set(ALL_REGIONS) - without)


class Found(NamedTuple):
    """A rule's finding on a property of resources of one type."""

    rule: str
    type: str
    property: str


REASONS = {
    Found("W3005", "AWS::Lambda::Function", "DependsOn"): (
        "The CDK lets a function wait for its role's policy, and names the role beside it, which it waits for anyway."
    ),
}


def findings(found: Synthesised) -> Iterator[tuple[Found, str]]:
    for path in sorted(found.outdir.glob("*.template.json")):
        resources = json.loads(path.read_text())["Resources"]
        for match in lint_file(path, ManualArgs(regions=supported_regions(found.stage))):
            where = [str(part) for part in match.path or []]
            inside = len(where) > 2 and where[0] == "Resources"
            type_ = resources[where[1]]["Type"] if inside else path.name
            yield Found(match.rule.id, type_, where[2] if inside else "/".join(where)), f"{match.message} ({path.name})"


def test_each_finding_has_its_reason_and_each_reason_its_finding(any_stage: Synthesised) -> None:
    found = list(findings(any_stage))
    assert [message for what, message in found if what not in REASONS] == []
    assert {what for what, _ in found} == set(REASONS)


def test_it_really_reads_the_templates(prod: Synthesised, tmp_path: Path) -> None:
    [source] = prod.outdir.glob("*-stateful.template.json")
    template = json.loads(source.read_text())
    next(iter(template["Resources"].values()))["Properties"]["Colour"] = "red"
    broken = tmp_path / "broken.template.json"
    broken.write_text(json.dumps(template))
    assert "E3002" in {match.rule.id for match in lint_file(broken, ManualArgs(regions=["eu-central-1"]))}


def test_preflight_knows_the_regions_without_a_resource_type_of_the_stacks() -> None:
    def without(type_: str) -> set[str]:
        return {region for region in ALL_REGIONS if type_ not in PROVIDER_SCHEMA_MANAGER.get_resource_types(region)}

    assert without("AWS::Lambda::Url") == set(WITHOUT_FUNCTION_URLS)
    assert without("AWS::SES::EmailIdentity") == set(WITHOUT_SES_IDENTITIES)
