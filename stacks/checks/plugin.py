"""The checks as a validation plugin of the CDK: `Validations.of(app).add_plugins(GuaranteeChecks(settings))`.

The CDK runs plugins after it has written the templates of all stacks. If a plugin reports a violation, the CDK CLI
prints the report and fails. It also fails `cdk deploy --app cdk.out`, because it keeps the report in `cdk.out`.
https://docs.aws.amazon.com/cdk/v2/guide/policy-validation-synthesis.html
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsii
from aws_cdk import (
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
)

from stacks.checks import CHECKS, Check
from stacks.checks.model import Finding, Model, Template
from stacks.settings import Settings

# A fatal violation cannot be acknowledged: `Validations.of(construct).acknowledge` would switch a guarantee off.
SEVERITY = "fatal"
# The CDK CLI shows the violations of the selected stacks only, and those without a construct path.
ANY_STACK = ""


@jsii.implements(IPolicyValidationPlugin)
class GuaranteeChecks:
    """Report every finding of the checks in the templates of an app with these settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @property
    def name(self) -> str:
        return "EffectivelyOnce"

    @property
    def version(self) -> str | None:
        return None

    @property
    def rule_ids(self) -> list[str] | None:
        return [check.__name__ for check in CHECKS]

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        """Return one violation for each finding. Never raises: the CDK CLI ignores a plugin that fails."""
        try:
            violations = list(_violations(Model(templates_of(context.template_paths), self._settings)))
        except Exception as error:
            text = f"a check failed with {type(error).__name__}: {error}"
            violations = [_violation("checks_run_to_the_end", text, "Correct the check in stacks/checks.", ANY_STACK)]
        return PolicyValidationPluginReport(success=not violations, violations=violations)


def _violations(model: Model) -> Iterator[PolicyViolation]:
    found = [(check, finding) for check in CHECKS for finding in check(model)]
    for check, finding in found:
        yield _violation(check.__name__, f"{finding.says}. {finding.why}", finding.do, finding.resource)
    if found:
        yield _violation(
            "no_stack_is_deployed_while_another_has_a_finding",
            f"{_number(found)} in this app. The checks read all stacks together, so no stack can be deployed alone.",
            f"Correct {', '.join(sorted({finding.resource for _, finding in found}))}.",
            ANY_STACK,
        )


def _violation(rule: str, description: str, fix: str, construct_path: str) -> PolicyViolation:
    return PolicyViolation(
        rule_name=rule,
        description=description,
        fix=fix,
        severity=SEVERITY,
        violating_resources=[PolicyViolatingResource(construct_path=construct_path, locations=[])],
    )


def _number(found: list[tuple[Check, Finding]]) -> str:
    return "one finding" if len(found) == 1 else f"{len(found)} findings"


def templates_of(paths: Iterable[str]) -> list[Template]:
    """Read the templates at `paths` in a cloud assembly, and the templates of all stacks nested in them."""
    return [template for path in map(Path, paths) for template in _with_nested(_read(path), path.parent)]


def _read(path: Path) -> Template:
    """The manifest beside the template knows the name that a stack has in CloudFormation."""
    artifacts = json.loads((path.parent / "manifest.json").read_text())["artifacts"]
    [(key, properties)] = [
        (key, artifact["properties"])
        for key, artifact in artifacts.items()
        if artifact["type"] == "aws:cloudformation:stack" and artifact["properties"]["templateFile"] == path.name
    ]
    return Template(key, properties.get("stackName", key), json.loads(path.read_text()))


def _with_nested(template: Template, directory: Path) -> Iterator[Template]:
    yield template
    for id, resource in template.body.get("Resources", {}).items():
        file: Any = resource.get("Metadata", {}).get("aws:asset:path")
        if resource["Type"] == "AWS::CloudFormation::Stack" and file:
            parameters = resource.get("Properties", {}).get("Parameters", {})
            body = json.loads((directory / file).read_text())
            key = f"{template.key}/{id}"
            yield from _with_nested(Template(key, key, body, template, parameters), directory)
