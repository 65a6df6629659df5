"""The policies, patterns and commands of docs/deploy.md fit the stacks and the workflow."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tools.deployed import STACKS, stack_name

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "deploy.md").read_text()


def statements() -> list[dict[str, Any]]:
    """Of the policy that lets the role deploy and look."""
    _, policy = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    found: list[dict[str, Any]] = policy["Statement"]
    return found


def resources_of(action: str) -> list[str]:
    return [one["Resource"] for one in statements() if action in one["Action"]]


def test_the_role_may_describe_the_stages_own_stacks_and_list_none() -> None:
    (pattern,) = resources_of("cloudformation:DescribeStacks")
    for stack in STACKS:
        asked = f"arn:aws:cloudformation:eu-central-1:ACCOUNT:stack/{stack_name('sandbox', stack)}/some-id"
        assert fnmatchcase(asked, pattern)
    assert not fnmatchcase("arn:aws:cloudformation:eu-central-1:ACCOUNT:stack/theirs/some-id", pattern)
    assert resources_of("cloudformation:ListStacks") == []


def test_the_audit_after_the_smoke_test_judges_its_young_orders() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r"run: make (smoke|audit.*?)(?: #.*)?$", workflow, re.MULTILINE) == ["smoke", "audit AGE=0"]
    assert re.findall(r"make (smoke|audit) STAGE=sandbox(.*)", PAGE) == [("smoke", ""), ("audit", " AGE=0")]


def test_rights_are_narrowed_by_patterns_that_outlive_a_run() -> None:
    patterns = dict(re.findall(r"^ *\| (functions|secret|API)\b[^|]* \| `(.+?)` \|$", PAGE, re.MULTILINE))
    assert all(fnmatchcase(stack_name("sandbox", stack), patterns["functions"]) for stack in STACKS)
    assert fnmatchcase("ApiKeyE5F2D2F4-1a2b3c", patterns["secret"])
    assert fnmatchcase("arn:aws:execute-api:eu-central-1:ACCOUNT:a1b2c3/$default/POST/orders", patterns["API"])
