"""The lanes beside each other: their CDK app, and the verdict over each by the same witnesses."""

import sys


def synth_arguments(seed: int | None = None, percent: float = 0) -> list[str]:
    """What `cdk synth` is told so that all lanes are deployed; with a `seed`, faults in `percent` of the messages."""
    arguments = ["--app", f"{sys.executable} -m demo.contrast.app"]
    if seed is not None:
        arguments += ["-c", f"faults_seed={seed}", "-c", f"faults_percent={percent}"]
    return arguments
