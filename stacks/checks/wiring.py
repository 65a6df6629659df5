"""Shared readings of the model: which function consumes which queue or stream, and what its role may do."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from stacks.checks.model import Model, Resource, listed, within

QUEUE = "AWS::SQS::Queue"
FUNCTION = "AWS::Lambda::Function"
TABLES = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable")
NO_QUEUES_OR_STREAMS = ("SelfManagedEventSource", "Queues", "Topics", "DocumentDBEventSourceConfig")


@dataclass(frozen=True)
class Source:
    """An event source mapping with its source and its function. None means: not a resource of this app."""

    mapping: Resource
    reads: Resource | None
    function: Resource | None


def queue_sources(model: Model) -> Iterator[Source]:
    """Yield the mappings of SQS queues, and mappings of unknown sources without the properties of another kind."""
    for source in _sources(model):
        mapping = source.mapping
        kind = _kind(source)
        looks_alike = mapping.get("StartingPosition") is None and not any(map(mapping.get, NO_QUEUES_OR_STREAMS))
        if kind == "sqs" or (kind is None and looks_alike):
            yield source


def stream_sources(model: Model) -> Iterator[Source]:
    """Yield the mappings of DynamoDB and Kinesis streams, and those of unknown sources with a StartingPosition."""
    for source in _sources(model):
        mapping = source.mapping
        kind = _kind(source)
        looks_alike = mapping.get("StartingPosition") is not None and not any(map(mapping.get, NO_QUEUES_OR_STREAMS))
        if kind in ("dynamodb", "kinesis") or (kind is None and looks_alike):
            yield source


def _sources(model: Model) -> Iterator[Source]:
    for mapping in model.of_type("AWS::Lambda::EventSourceMapping"):
        function = function_of(model, mapping.get("FunctionName"))
        yield Source(mapping, model.find(mapping.get("EventSourceArn")), function)


def _kind(source: Source) -> str | None:
    """Return the service of the source as in its ARN, such as `sqs`, or None if it is unknown."""
    if source.reads:
        return source.reads.type.split("::")[1].lower()
    arn = re.match(r"arn:[^:]*(?:::[^:]*)?:(\w+):", str(source.mapping.get("EventSourceArn")))
    return arn[1] if arn else None


def function_of(model: Model, value: Any) -> Resource | None:
    """Return the function that a name, ARN, version or alias refers to."""
    found = model.find(value)
    while found and found.type in ("AWS::Lambda::Alias", "AWS::Lambda::Version"):
        found = model.find(found.get("FunctionName"))
    return found if found and found.type == FUNCTION else None


def environment(function: Resource | None) -> Mapping[str, Any]:
    found = function.get("Environment", "Variables") if function else None
    return found if isinstance(found, Mapping) else {}


def consumed_queues(model: Model) -> Iterator[tuple[Resource, Source]]:
    """Yield the queues of this app that a mapping reads, each with its mapping."""
    for source in queue_sources(model):
        if source.reads and source.reads.type == QUEUE:
            yield source.reads, source


def dlq_of(model: Model, queue: Resource) -> Resource | None:
    """Return the DLQ of a queue, or None if it has no DLQ in this app."""
    found = model.find(queue.get("RedrivePolicy", "deadLetterTargetArn"))
    return found if found and found.type == QUEUE and found != queue else None


@dataclass(frozen=True)
class Statement:
    """An Allow statement of a role. `inverted`: it has NotAction or NotResource, and allows nearly everything."""

    where: Resource
    actions: tuple[Any, ...]
    resources: tuple[Any, ...]
    condition: Any
    inverted: bool

    def allows(self, action: str) -> bool:
        """Whether the statement allows the action. As in IAM, case is ignored, and `*` and `?` are wildcards."""
        return any(fnmatchcase(action.lower(), str(pattern).lower()) for pattern in self.actions)


def role_of(model: Model, function: Resource) -> Resource | None:
    found = model.find(function.get("Role"))
    return found if found and found.type == "AWS::IAM::Role" else None


def statements(model: Model, role: Resource) -> Iterator[Statement]:
    """Yield every Allow statement of a role, in inline and attached policies of this app."""
    for policy in listed(role.get("Policies")):
        yield from _allows(role, within(policy, "PolicyDocument"))
    for policy in model.of_type("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
        roles = [*listed(policy.get("Roles")), *listed(policy.get("RoleName"))]
        if role in map(model.find, roles) or policy in map(model.find, listed(role.get("ManagedPolicyArns"))):
            yield from _allows(policy, policy.get("PolicyDocument"))


def _allows(where: Resource, document: Any) -> Iterator[Statement]:
    for statement in listed(within(document, "Statement")):
        if isinstance(statement, Mapping) and statement.get("Effect") == "Allow":
            yield Statement(
                where,
                tuple(listed(statement.get("Action"))),
                tuple(listed(statement.get("Resource"))),
                statement.get("Condition"),
                "NotAction" in statement or "NotResource" in statement,
            )
