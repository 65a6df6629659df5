"""The optional inputs of a deploy: the names of the outputs that keep their values for the next deploy."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constructs import Construct

REDACTED = "set"  # stands in an output for an email address, which the output must not show


def output_name(name: str) -> str:
    """Return the name of the stack output that keeps an input: `alarm_email` is kept in GivenAlarmEmail."""
    return "Given" + "".join(word.capitalize() for word in name.split("_"))


def remember(scope: "Construct", **values: str) -> None:
    """Add an output for each value that is not empty. tools/deploy_inputs.py reads these outputs."""
    from aws_cdk import CfnOutput  # loading the CDK takes seconds, and tools/ needs the names only

    for name, value in values.items():
        if value:
            CfnOutput(scope, output_name(name), value=value)
