"""Reads the finished templates of a cloud assembly, including those of nested stacks."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from stacks.checks.model import Template


def templates_of(paths: Iterable[str]) -> list[Template]:
    """Read the templates at `paths` in a cloud assembly, and the templates of their nested stacks."""
    return [template for path in map(Path, paths) for template in _with_nested(_read(path), path.parent)]


def _read(path: Path) -> Template:
    """Read one template. The manifest beside it has the stack's name in CloudFormation."""
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
