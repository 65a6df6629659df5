"""The finished templates of an app as one graph: resources, and references between them across stacks.

A value that CloudFormation fills in at deploy time is represented by text: `${stack|LogicalId.Attribute}` for a
resource of this app, `${Name}` for anything else. So a check knows a value, or knows that the value is unknown.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stacks.settings import Settings

# The property that contains the name of a resource. Other resources may refer to it by name or ARN.
NAMED_BY = {
    "AWS::SQS::Queue": "QueueName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Kinesis::Stream": "Name",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::DynamoDB::GlobalTable": "TableName",
    "AWS::Lambda::Function": "FunctionName",
    "AWS::KMS::Alias": "AliasName",
}
_REFERENCE = re.compile(r"\$\{([^|}]+)\|([^.}]+)(?:\.([^}]+))?\}")


@dataclass(frozen=True)
class Finding:
    """A contradiction to a guarantee: construct path, contradicting values, why they matter, and what to set."""

    resource: str
    says: str
    why: str
    do: str


@dataclass(frozen=True)
class Template:
    """The finished template of a stack. `parameters`: the values that the parent of a nested stack sets."""

    key: str
    stack: str
    body: Mapping[str, Any]
    parent: "Template | None" = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Resource:
    """A resource, with all references in its properties resolved. Two are equal if stack, id, type and path are."""

    key: str
    id: str
    type: str
    path: str
    body: Mapping[str, Any] = field(compare=False)

    def get(self, *names: str) -> Any:
        """Return a property, or None if it is absent."""
        return within(self.body, "Properties", *names)

    def number(self, *names: str, default: float) -> float | None:
        """Return a numeric property, `default` if it is absent, or None if it is unknown."""
        found = self.get(*names)
        return default if found is None else number(found)


def number(value: Any) -> float | None:
    """Return the number in a template value or an environment variable, or None if it is not a known number."""
    if isinstance(value, bool):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def shown(value: Any) -> str:
    """Format a value for a finding."""
    if isinstance(value, float):
        return f"{value:g}" if value != int(value) else str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def unknown(value: Any) -> bool:
    """Whether CloudFormation fills in at least a part of the value."""
    return "${" in (value if isinstance(value, str) else json.dumps(value))


def _arn(arn: str) -> tuple[str, str]:
    """Return service and resource name: `orders` for `table/orders/stream/x` or `function:orders`. Empty if no ARN."""
    parts = re.sub(r"\$\{AWS::(\w+)\}", r"\1", arn).split(":", 5)
    if len(parts) < 6:
        return "", ""
    last = parts[5].removeprefix("function:")
    return parts[2], last.split("/")[1] if "/" in last else last.split(":")[0]


def within(value: Any, *names: str) -> Any:
    """Return the value at a path of names in an object, or in JSON text, which CloudFormation accepts as well."""
    for name in names:
        if isinstance(value, str) and value.startswith("{"):
            try:
                value = json.loads(value)
            except ValueError:
                return None
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


class Model:
    """All resources of an app, and the settings of its stage."""

    def __init__(self, templates: Sequence[Template], settings: Settings) -> None:
        self.settings = settings
        self._templates = {template.key: template for template in templates}
        self.resources = {
            (template.key, id): self._resource(template, id, body)
            for template in templates
            for id, body in template.body.get("Resources", {}).items()
        }

    def of_type(self, *types: str) -> list[Resource]:
        return [resource for resource in self.resources.values() if resource.type in types]

    def find(self, value: Any) -> Resource | None:
        """Return the resource that a resolved value refers to (reference, ARN, name), or None if not in the app."""
        if not isinstance(value, str) or not value:
            return None
        if reference := _REFERENCE.fullmatch(value):
            return self.resources.get((reference[1], reference[2]))
        if value.startswith("arn:"):
            service, name = _arn(value)
            named = [found] if (found := self.find(name)) and name.startswith("${") else self._named.get(name, [])
            return next((r for r in named if r.type.lower().startswith(f"aws::{service}::")), None)
        return next(iter(self._named.get(value, [])), None)

    def missing(self, value: Any) -> bool:
        """Whether the value refers to a logical id that no stack has. Overrides can contain such references."""
        return isinstance(value, str) and bool(_REFERENCE.fullmatch(value)) and self.find(value) is None

    def show(self, value: Any) -> str:
        """Format a resolved value, with construct paths instead of references."""
        return _REFERENCE.sub(lambda m: found.path if (found := self.find(m[0])) else f"{m[2]} (missing)", shown(value))

    @cached_property
    def _named(self) -> dict[str, list[Resource]]:
        names: dict[str, list[Resource]] = {}
        for resource in self.resources.values():
            if isinstance(name := resource.get(NAMED_BY.get(resource.type, "")), str):
                names.setdefault(name, []).append(resource)
        return names

    def _resource(self, template: Template, id: str, body: Mapping[str, Any]) -> Resource:
        path = body.get("Metadata", {}).get("aws:cdk:path") or f"{template.stack}/{id}"
        resolved = {key: self._resolve(template, value) for key, value in body.items()}
        return Resource(template.key, id, body["Type"], path.removesuffix("/Resource"), resolved)

    def _resolve(self, at: Template, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolve(at, item) for item in value if item != {"Ref": "AWS::NoValue"}]
        if not isinstance(value, Mapping):
            return value
        match dict(value):
            case {"Ref": str(name), **rest} if not rest:
                return self._ref(at, name)
            case {"Fn::GetAtt": [str(name), attribute], **rest} if not rest:
                return self._attribute(at, name, shown(self._resolve(at, attribute)))
            case {"Fn::GetAtt": str(both), **rest} if not rest:
                return self._attribute(at, *both.split(".", 1))
            case {"Fn::Join": [str(separator), list(parts)], **rest} if not rest:
                return separator.join(shown(self._resolve(at, part)) for part in parts)
            case {"Fn::Sub": text, **rest} if not rest:
                return self._sub(at, text)
            case {"Fn::ImportValue": name, **rest} if not rest:
                return self._import(shown(self._resolve(at, name)))
            case {"Fn::GetStackOutput": {"StackName": name, "OutputName": str(output)}, **rest} if not rest:
                return self._output(self._stack(shown(self._resolve(at, name))), output)
        if len(value) == 1 and next(iter(value)).startswith("Fn::"):
            return f"${{{next(iter(value))}}}"
        return {name: self._resolve(at, item) for name, item in value.items() if item != {"Ref": "AWS::NoValue"}}

    def _ref(self, at: Template, name: str) -> Any:
        if name in at.parameters and at.parent:
            return self._resolve(at.parent, at.parameters[name])
        outside = name.startswith("AWS::") or name in at.body.get("Parameters", {})
        return f"${{{name}}}" if outside else f"${{{at.key}|{name}}}"

    def _attribute(self, at: Template, name: str, attribute: str) -> Any:
        nested = self._templates.get(f"{at.key}/{name}")
        if nested and attribute.startswith("Outputs."):
            return self._output(nested, attribute.removeprefix("Outputs."))
        return f"${{{at.key}|{name}.{attribute}}}"

    def _sub(self, at: Template, text: Any) -> str:
        template, own = text if isinstance(text, list) else (text, {})

        def fill(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in own:
                return shown(self._resolve(at, own[name]))
            return shown(self._attribute(at, *name.split(".", 1)) if "." in name else self._ref(at, name))

        return re.sub(r"\$\{([^}]+)\}", fill, template)

    def _import(self, export: str) -> Any:
        for template in self._templates.values():
            for output in template.body.get("Outputs", {}).values():
                if "Export" in output and self._resolve(template, output["Export"]["Name"]) == export:
                    return self._resolve(template, output["Value"])
        return f"${{import {export}}}"

    def _output(self, template: Template | None, output: str) -> Any:
        found = template.body.get("Outputs", {}).get(output) if template else None
        return self._resolve(template, found["Value"]) if template and found else f"${{output {output}}}"

    def _stack(self, name: str) -> Template | None:
        return next((template for template in self._templates.values() if template.stack == name), None)


def listed(value: Any) -> Iterator[Any]:
    """Yield the items of a list, or a single value. Policies contain both forms."""
    yield from value if isinstance(value, list) else [] if value is None else [value]
