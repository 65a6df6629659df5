"""The values that a stage may be deployed with, and which of them a deploy would take away by not being given them."""

import os
from collections.abc import Mapping

from stacks.settings import output_of

# IAM ARNs, comma-separated: who else may put orders on the queue, who may redrive into the queues behind the first.
# A mail address that hears of alarms, and where the runbook is published that they point to.
EITHER = ("PRODUCERS", "ALARM_EMAIL", "RUNBOOK_URL")
MAY_HAVE = {"local": (), "sandbox": EITHER, "prod": (*EITHER, "OPERATORS")}
NONE = "none"  # said by a person who means it: an empty value may as well be forgotten


def given(stage: str) -> dict[str, str]:
    """All that the stage may have; empty where there is to be none."""
    values = {name: os.environ.get(name, "") for name in MAY_HAVE[stage]}
    return {name: "" if value == NONE else value for name, value in values.items()}


def before(outputs: Mapping[str, str], stage: str) -> dict[str, str]:
    """What the stage was deployed with, by its outputs."""
    return {name: outputs[output_of(name)] for name in MAY_HAVE[stage] if output_of(name) in outputs}
