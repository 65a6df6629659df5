"""Reads the finished templates of a cloud assembly, those of nested stacks too."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aws_cdk.cx_api import CloudAssembly

from stacks.checks.model import Template


def templates_of(assembly: CloudAssembly) -> list[Template]:
    """Every stack, in stages of the app too, and every stack nested in one."""
    found: list[Template] = []
    for stack in assembly.stacks_recursively:
        body = json.loads(Path(stack.template_full_path).read_text())
        directory = Path(stack.template_full_path).parent
        found += _with_nested(Template(stack.hierarchical_id, stack.stack_name, body), directory)
    return found


def _with_nested(template: Template, directory: Path) -> Iterator[Template]:
    yield template
    for id, resource in template.body.get("Resources", {}).items():
        file: Any = resource.get("Metadata", {}).get("aws:asset:path")
        if resource["Type"] == "AWS::CloudFormation::Stack" and file:
            given = resource.get("Properties", {}).get("Parameters", {})
            body = json.loads((directory / file).read_text())
            key = f"{template.key}/{id}"
            yield from _with_nested(Template(key, key, body, template, given), directory)


def discard(directory: Path) -> None:
    """Leave nothing in an assembly that could be deployed."""
    for entry in directory.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry.suffix == ".json":
            entry.unlink()
