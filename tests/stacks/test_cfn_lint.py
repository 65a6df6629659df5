"""cfn-lint over the finished templates of every stage: what it finds and we leave as it is has its reason here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cfnlint import lint_file
from cfnlint.config import ManualArgs

from tests.harness.synth import Synthesised

REGIONS = ["eu-central-1"]


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
        for match in lint_file(path, ManualArgs(regions=REGIONS)):
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
    assert "E3002" in {match.rule.id for match in lint_file(broken, ManualArgs(regions=REGIONS))}
