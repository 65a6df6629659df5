"""Outputs that keep which optional values a stack was deployed with, so that the next deploy can ask for them."""

from aws_cdk import CfnOutput
from constructs import Construct


def keep(scope: Construct, **values: str) -> None:
    """An output for each that is not empty, `alarm_email` as GivenAlarmEmail; tools/optional.py reads it."""
    for name, value in values.items():
        if value:
            CfnOutput(scope, "Given" + "".join(word.capitalize() for word in name.split("_")), value=value)
