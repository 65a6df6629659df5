"""cdk-nag's AwsSolutions over every stage: what it finds and we leave as it is has its reason here, nothing else has.

It looks at constructs before overrides; stacks/checks looks at the finished templates.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from aws_cdk import Validations
from cdk_nag import AwsSolutionsChecks

from stacks.application import build
from tests.harness.synth import STAGES, Synthesised, new_app


class Found(NamedTuple):
    """A rule's finding on a resource, by construct path without the application's name and stage."""

    rule: str
    resource: str


TRACES = "X-Ray knows no resources: PutTraceSegments and PutTelemetryRecords can be allowed on `*` only."
PYTHON = (
    "3.13 is what requirements/*.txt are locked and tested for, and AWS supports it until 2029. "
    "A newer one is taken on purpose, with the locks, not when a rule learns of it."
)

# Of whichever of our functions and its role, by rule.
OF_A_FUNCTION = {
    "IAM5[Resource::*]": TRACES,
    "L1": PYTHON,
    "IAM5[Resource::<Receipts>/<prefix>/*]": "One prefix of one bucket: objects are named by the order, at run time.",
}
EVERYWHERE = {
    Found("S1", "stateful/Receipts"): (
        "Receipts are written by one role and read by nobody's browser; who writes is in CloudTrail where an account "
        "logs data events. A bucket of access logs would need a policy, a retention and an owner of its own."
    ),
    Found("SQS3", "pipeline/Relaying/Failures"): (
        "It is itself where the stream's mapping puts what failed, which the rule does not see; an alarm watches it."
    ),
}
WITH_THE_PAYMENT_SANDBOX = {
    Found("DDB3", "sandbox/Ledger"): "Play money: the ledger of the payment sandbox goes with its stack.",
    Found("SMG4", "sandbox/ApiKey"): "The key of a payment sandbox that lives for days and holds play money.",
}
REASONS = {
    "local": EVERYWHERE | WITH_THE_PAYMENT_SANDBOX,
    "sandbox": EVERYWHERE
    | WITH_THE_PAYMENT_SANDBOX
    | {
        Found("IAM5[Resource::<identities>/*]", "pipeline/Emails/EmailRole/DefaultPolicy"): (
            "SES's own sandbox asks for the right to use the recipient's identity too; a condition holds the sender."
        ),
    },
    "prod": EVERYWHERE,
}


def findings(stage: str, outdir: Path) -> Iterator[Found]:
    app = new_app(outdir, stage, **STAGES[stage])
    build(app)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="ValidationFailed"):  # some findings stand, so its report is not empty
        app.synth()
    report = json.loads((outdir / "validation-report.json").read_text())
    [ours] = [plugin for plugin in report["pluginReports"] if plugin["pluginName"] == "AwsSolutions"]
    for violation in ours["violations"]:
        for construct in violation["violatingConstructs"]:
            path = construct["constructPath"].removeprefix(f"effectively-once-{stage}-").removesuffix("/Resource")
            yield Found(_short(violation["ruleName"]), path)


def _short(rule: str) -> str:
    """Without the pack's name, and with names for what is spelled as CloudFormation."""
    rule = re.sub(r"\{\"Fn::GetStackOutput\".*?Receipts.*?\}/\w+/\*", "<Receipts>/<prefix>/*", rule)
    rule = re.sub(r"arn:\S*:ses:\S*:identity(?=/\*)", "<identities>", rule)
    return rule.removeprefix("AwsSolutions-")


@pytest.mark.parametrize("stage", STAGES)
def test_each_finding_has_its_reason_and_each_reason_its_finding(
    stage: str, tmp_path: Path, synthesised: Callable[[str], Synthesised]
) -> None:
    ours = {path.removesuffix("Function") for path in synthesised(stage).functions.values()}

    def is_of_ours(found: Found) -> bool:
        named = re.fullmatch(r"\w+/(.+?)(?:Function|Role/DefaultPolicy)", found.resource)
        return found.rule in OF_A_FUNCTION and named is not None and named[1] in ours

    found = set(findings(stage, tmp_path))
    of_ours = {each for each in found if is_of_ours(each)}
    assert found - of_ours - set(REASONS[stage]) == set(), "found, and no reason is written here"
    assert set(REASONS[stage]) - found == set(), "a reason for what is not found any more"
    assert {each.rule for each in of_ours} == set(OF_A_FUNCTION)


def test_each_reason_says_something() -> None:
    reasons = [*OF_A_FUNCTION.values(), *(reason for stage in REASONS.values() for reason in stage.values())]
    assert all(len(reason) > 40 for reason in reasons)
