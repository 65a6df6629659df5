"""The policy of docs/deploy.md fits the names of the stacks."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

from tools.deployed import STACKS, stack_name

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "deploy.md").read_text()


def test_the_role_may_describe_the_stages_own_stacks_and_list_none() -> None:
    _, policy = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    resources = {action: one["Resource"] for one in policy["Statement"] for action in one["Action"]}
    pattern = resources["cloudformation:DescribeStacks"]
    for stack in STACKS:
        arn = f"arn:aws:cloudformation:eu-central-1:ACCOUNT:stack/{stack_name('sandbox', stack)}/some-id"
        assert fnmatchcase(arn, pattern)
    assert not fnmatchcase("arn:aws:cloudformation:eu-central-1:ACCOUNT:stack/theirs/some-id", pattern)
    assert "cloudformation:ListStacks" not in resources
