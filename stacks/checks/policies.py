"""Functions may do what they need, on what they need it for: no wildcard beyond those that AWS demands.

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
    """A wildcard that AWS leaves no way around. `resource` is a glob in which `[*]` stands for a star."""

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
        "Lambda makes the network interfaces of a function in a VPC; they have no name before.",
    ),
    RequiredWildcard(("dynamodb:ListStreams",), "[*]", "Lists streams, so it names none."),
    RequiredWildcard(
        ("logs:CreateLogStream", "logs:PutLogEvents"),
        "*:log-group:?*:[*]",
        "The streams of a named log group are made and named by Lambda.",
    ),
    RequiredWildcard(
        ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
        "*/[*]",
        "Objects are named at run time; the bucket is named here.",
    ),
)
# SES's own sandbox asks for the right to use the recipient's identity too; the sender is held fast by the condition.
SES_SANDBOX = RequiredWildcard(("ses:SendEmail",), "*:identity/[*]", "In SES's sandbox recipients are identities too.")
# The CDK's own helper that empties a bucket: its role is made by the CDK, and writes its own log only.
CDK_HELPERS = ("CustomS3AutoDeleteObjectsCustomResourceProvider",)
WHY = "Whoever takes over the function, or a mistake in it, reaches all that the wildcard covers."


def functions_have_no_wildcards(model: Model) -> Iterator[Finding]:
    """No wildcard action or resource, no NotAction or NotResource, no policy managed by AWS (all have `*`)."""
    roles = {role: f for f in model.of_type(FUNCTION) if (role := role_of(model, f)) and not _cdk_helper(role.id)}
    for role, function in roles.items():
        for arn in listed(role.get("ManagedPolicyArns")):
            if ":iam::aws:policy/" in str(arn):
                yield Finding(
                    role.path,
                    f"role of {function.path} has {str(arn).rsplit('/', 1)[-1]}, AWS's own, for every resource",
                    WHY,
                    "Give the function a role of its own with the actions that it uses.",
                )
        for statement in statements(model, role):
            for what in _wildcards(model, statement):
                yield Finding(
                    statement.where.path,
                    f"lets {function.path} {model.show(what)}",
                    WHY,
                    "Name actions and resources. What AWS itself demands is listed in stacks/checks/policies.py.",
                )


def _cdk_helper(id: str) -> bool:
    return id.startswith(CDK_HELPERS)


def _wildcards(model: Model, statement: Statement) -> Iterator[str]:
    if statement.inverted:
        yield "do all but what NotAction or NotResource names"
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
    """Only the end may be open: `*`, or `<one named thing>/…*`."""
    return not _wild(resource.removesuffix("*"))


CHECKS = (functions_have_no_wildcards,)
