"""Least privilege: no wildcard in the policies of functions, except for those that AWS requires.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from stacks.checks.model import Finding, Model, listed, shown, within
from stacks.checks.wiring import FUNCTION, Statement, role_of, statements
from stacks.settings import Stage


@dataclass(frozen=True)
class RequiredWildcard:
    """A wildcard that AWS requires. `resource` is a glob in which `[*]` matches a star."""

    actions: tuple[str, ...]
    resource: str
    reason: str


REQUIRED_WILDCARDS = (
    RequiredWildcard(
        ("xray:PutTraceSegments", "xray:PutTelemetryRecords"), "[*]", "X-Ray knows no resources for these."
    ),
    RequiredWildcard(
        (
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:AssignPrivateIpAddresses",
            "ec2:UnassignPrivateIpAddresses",
        ),
        "[*]",
        "Lambda creates the network interfaces of a function in a VPC, and their ids are unknown before.",
    ),
    RequiredWildcard(("dynamodb:ListStreams",), "[*]", "The action lists streams, so it has no stream as resource."),
    RequiredWildcard(
        ("logs:CreateLogStream", "logs:PutLogEvents"),
        "*:log-group:?*:[*]",
        "Lambda creates and names the streams of a log group.",
    ),
    RequiredWildcard(
        ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
        "*/[*]",
        "Object keys are known at run time only. The bucket is named.",
    ),
)
# In the sandbox of SES, a sender also needs a permission for the identity of the recipient. The condition of the
# statement restricts the sender.
SES_SANDBOX = RequiredWildcard(
    ("ses:SendEmail",), "*:identity/[*]", "In the sandbox of SES, recipients are identities too."
)
# The helper function of the CDK that empties a bucket. The CDK creates its role.
CDK_HELPERS = ("CustomS3AutoDeleteObjectsCustomResourceProvider",)
WHY = "An attacker or a mistake in the function can use everything that the wildcard covers."


def functions_have_no_wildcards(model: Model) -> Iterator[Finding]:
    """No wildcard action or resource, no NotAction or NotResource, no AWS managed policy (all have `*`)."""
    roles = {role: f for f in model.of_type(FUNCTION) if (role := role_of(model, f)) and not _cdk_helper(role.id)}
    for role, function in roles.items():
        for arn in listed(role.get("ManagedPolicyArns")):
            if ":iam::aws:policy/" in str(arn):
                yield Finding(
                    role.path,
                    f"role of {function.path} has the AWS managed policy {str(arn).rsplit('/', 1)[-1]}",
                    WHY,
                    "Give the function its own role with the actions that it uses.",
                )
        for statement in statements(model, role):
            for what in _wildcards(model, statement):
                yield Finding(
                    statement.where.path,
                    f"allows {function.path} to {model.show(what)}",
                    WHY,
                    "Name actions and resources. stacks/checks/policies.py lists the wildcards that AWS requires.",
                )


def _cdk_helper(id: str) -> bool:
    return id.startswith(CDK_HELPERS)


def _wildcards(model: Model, statement: Statement) -> Iterator[str]:
    if statement.inverted:
        yield "do everything except for what NotAction or NotResource names"
    for action in statement.actions:
        if _wild(action):
            yield f"do {shown(action)}"
    for resource in statement.resources:
        for action in statement.actions:
            if _wild(resource) and not _wild(action) and not _required(model, statement, str(action), str(resource)):
                yield f"do {shown(action)} on {shown(resource)}"


def _wild(value: Any) -> bool:
    return isinstance(value, str) and ("*" in value or "?" in value)


def _required(model: Model, statement: Statement, action: str, resource: str) -> bool:
    known = list(REQUIRED_WILDCARDS)
    sender = within(statement.condition, "StringEquals", "ses:FromAddress")
    if model.settings.stage is Stage.SANDBOX and sender and not _wild(sender):
        known.append(SES_SANDBOX)
    return any(
        action.lower() in map(str.lower, each.actions) and fnmatchcase(resource, each.resource) and _names_one(resource)
        for each in known
    )


def _names_one(resource: str) -> bool:
    """Whether the only wildcard is one at the end: `*`, or `<name>/*`."""
    return not _wild(resource.removesuffix("*"))


CHECKS = (functions_have_no_wildcards,)
