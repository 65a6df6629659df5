"""The lanes beside each other: their CDK app, and the verdict over each by the same witnesses."""

import sys
from collections.abc import Sequence
from pathlib import Path

from lab.demo.lanes import Lane


def synth_arguments(
    seed: int | None = None, percent: float = 0, journal: Path | None = None, lanes: Sequence[Lane] | None = None
) -> list[str]:
    """What `cdk synth` is told so that lanes are deployed; with a `seed`, faults in `percent` of the messages.

    `journal`: the file in which all deliveries are noted then; `lanes`: which ones, if not all.
    """
    arguments = ["--app", f"{sys.executable} -m lab.contrast.app"]
    if seed is not None:
        arguments += ["-c", f"faults_seed={seed}", "-c", f"faults_percent={percent}"]
    if journal is not None:
        arguments += ["-c", f"faults_journal={journal}"]
    if lanes is not None:
        arguments += ["-c", f"lanes={','.join(lane.name for lane in lanes)}"]
    return arguments
