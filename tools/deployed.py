"""What CloudFormation says of a stage's stacks. Each is asked for by name: to list them all is a right of its own."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

# The stacks of stacks/application.py. Whoever adds one whose outputs the tools need adds it here; a test says so.
STACKS = ("stateful", "sandbox", "pipeline", "observability")


def stack_name(stage: str, stack: str) -> str:
    """As CloudFormation knows one of `STACKS`."""
    return f"effectively-once-{stage}-{stack}"


def is_absent(error: ClientError) -> bool:
    """Whether CloudFormation means that there is no such stack: the code alone says only that something is invalid.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
    """
    told = error.response["Error"]
    return told["Code"] == "ValidationError" and "does not exist" in told.get("Message", "")


def outputs(cloudformation: Any, stage: str) -> Mapping[str, str]:
    """Of those of the stage's stacks that there are, in one object. Raises ClientError where it may not be told."""
    found: dict[str, str] = {}
    for stack in STACKS:
        try:
            (described,) = cloudformation.describe_stacks(StackName=stack_name(stage, stack))["Stacks"]
        except ClientError as error:
            if not is_absent(error):
                raise
            continue
        found |= {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}
    return found
