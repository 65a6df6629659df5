"""The machine and the versions of a measurement."""

import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("aws-lambda-powertools", "boto3", "botocore", "msgspec", "stripe", "ministack", "aws-cdk-lib")


def machine() -> dict[str, str]:
    """Facts to print beside a figure. The load shows whether other work was running."""
    return {
        "measured": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load, 1 minute": f"{os.getloadavg()[0]:.1f}",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (network.partition(":")[2].strip() for network in lines if network.startswith("model name"))
    return next(models, platform.machine())
