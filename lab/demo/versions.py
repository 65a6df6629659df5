"""The versions that a run used."""

import platform
from importlib.metadata import version

PACKAGES = ("ministack", "aws-cdk-lib", "boto3", "aws-lambda-powertools", "stripe")


def versions() -> dict[str, str]:
    """Versions by name. Nothing identifies the machine."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
