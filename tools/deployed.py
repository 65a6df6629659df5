"""The stacks of a stage and their outputs, read from CloudFormation.

Each stack is described by its name: listing all stacks would need a right of its own.
"""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

# The stacks of stacks/application.py, by the last part of their names.
STACKS = ("stateful", "sandbox", "pipeline", "observability")


def stack_name(stage: str, stack: str) -> str:
    """Return the CloudFormation name of one of STACKS."""
    return f"effectively-once-{stage}-{stack}"


def is_absent(error: ClientError) -> bool:
    """Return whether the error means that the stack does not exist. The code alone means any invalid request.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStacks.html
    """
    details = error.response["Error"]
    return details["Code"] == "ValidationError" and "does not exist" in details.get("Message", "")


def outputs(cloudformation: Any, stage: str) -> Mapping[str, str]:
    """Return the outputs of all existing stacks of the stage in one mapping. Raises ClientError if AWS refuses."""
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
