"""`python -m lab.contrast.app`: what `cdk synth --app` runs."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from aws_cdk import App, CfnOutput
from stacks.application import build
from stacks.constructs.assets import set_modes
from stacks.constructs.queue_consumer import QueueConsumer
from stacks.pipeline import PipelineStack
from stacks.sandbox import SandboxStack
from stacks.settings import Settings, Stage, settings_from
from stacks.stateful import StatefulStack
from stacks.times import SettingsError, require

from lab.contrast.app.faults import Faults, with_time_for_faults
from lab.contrast.app.lane import LaneStack
from lab.demo.lanes import NAIVE, OURS, POWERTOOLS, Lane
from lab.faults.plan import OPERATIONS


def build_contrast(app: App) -> None:
    """Put all lanes into the app; with `faults_seed` in its context, `faults_percent` of all messages meet a fault.

    `lanes` in its context names those beside ours, if not all; `faults_journal` a file for all deliveries.

    A stage that the demo does not know is deployed in ours as it is: without faults, and in no other lane.

    Raises SettingsError in any stage but local.
    """
    settings = settings_from(app.node.try_get_context)
    require(settings.stage is Stage.LOCAL, f"stage {settings.stage} with the contrast: it loses orders and money")
    seed, percent, journal = (app.node.try_get_context(f"faults_{name}") for name in ("seed", "percent", "journal"))
    wanted = app.node.try_get_context("lanes")
    if seed is not None:
        settings = with_time_for_faults(settings)
    name = f"effectively-once-{settings.stage}"
    build(app, settings)
    pipeline = cast(PipelineStack, app.node.find_child(f"{name}-pipeline"))
    known = [consumer for consumer in pipeline.consumers if consumer.function.service in OPERATIONS]
    lanes = {OURS: known}
    for lane in (NAIVE, POWERTOOLS):
        if wanted is not None and lane.name not in wanted.split(","):
            continue
        lanes[lane] = _build_lane(app, f"{name}-{lane.name}", settings, lane, known)
    if seed is not None:
        faults = Faults(app, f"{name}-faults", settings, int(seed), float(percent), journal)
        faults.put_into(pipeline.relay.function, OURS)
        for lane, consumers in lanes.items():
            for consumer in consumers:
                faults.put_into(consumer.function, lane, consumer.timing)


def _build_lane(
    app: App, name: str, settings: Settings, lane: Lane, ours: Sequence[QueueConsumer]
) -> list[QueueConsumer]:
    """The lane's own tables, payment sandbox and ledger, queues and functions."""
    settings = replace(settings, sender_identity=settings.sender)  # the sender is there already: ours
    data = StatefulStack(app, f"{name}-stateful", settings)
    sandbox = SandboxStack(app, f"{name}-sandbox", settings)
    pipeline = LaneStack(app, f"{name}-pipeline", settings, lane, data, sandbox.url, ours)
    pipeline.add_dependency(sandbox)  # which it knows by an output alone
    for stack in (data, sandbox, pipeline):
        for child in stack.node.children:
            if isinstance(child, CfnOutput):
                child.override_logical_id(f"{lane.prefix}{child.node.id}")
    return pipeline.consumers


def main() -> None:
    """Synthesise for the CDK CLI."""
    app = App()
    try:
        build_contrast(app)
    except SettingsError as error:
        sys.exit(f"settings: {error}")
    set_modes(Path(app.synth().directory))


if __name__ == "__main__":
    main()
