"""With what a run was made."""

import platform
from importlib.metadata import version

PACKAGES = ("ministack", "aws-cdk-lib", "boto3", "aws-lambda-powertools", "stripe")


def versions() -> dict[str, str]:
    """By name; none that names the machine or who owns it."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
