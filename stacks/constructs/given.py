"""Outputs that keep which optional values a stack was deployed with, so that the next deploy can ask for them."""

from aws_cdk import CfnOutput
from constructs import Construct

from stacks.settings import output_of


def keep(scope: Construct, **values: str) -> None:
    """An output for each that is not empty; tools/optional.py reads it."""
    for name, value in values.items():
        if value:
            CfnOutput(scope, output_of(name), value=value)
