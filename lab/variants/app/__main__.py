"""The command of `cdk synth --app`: `python -m lab.variants.app`."""

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

from lab.faults.plan import OPERATIONS
from lab.variants import NAIVE, POWERTOOLS, THIS_REPO, Variant
from lab.variants.app.faults import Faults, with_time_for_faults
from lab.variants.app.variant_stack import VariantStack


def build_variants(app: App) -> None:
    """Add the stacks of all variants to the app.

    The context may hold `faults_seed` and `faults_percent` (of the messages that meet a fault), `faults_journal` (a
    file for all deliveries), and `variants` (names, separated by commas; all variants without it).

    A stage that the fault plan does not know is deployed without faults, in this repository's variant only.

    Raises SettingsError in every stage except local.
    """
    settings = settings_from(app.node.try_get_context)
    require(settings.stage is Stage.LOCAL, f"stage {settings.stage} with the variants: they lose orders and money")
    seed, percent, journal = (app.node.try_get_context(f"faults_{name}") for name in ("seed", "percent", "journal"))
    chosen = app.node.try_get_context("variants")
    if seed is not None:
        settings = with_time_for_faults(settings)
    name = f"effectively-once-{settings.stage}"
    build(app, settings)
    pipeline = cast(PipelineStack, app.node.find_child(f"{name}-pipeline"))
    known = [consumer for consumer in pipeline.consumers if consumer.function.service in OPERATIONS]
    variants = {THIS_REPO: known}
    for variant in (NAIVE, POWERTOOLS):
        if chosen is not None and variant.name not in chosen.split(","):
            continue
        variants[variant] = _build_variant(app, f"{name}-{variant.name}", settings, variant, known)
    if seed is not None:
        faults = Faults(app, f"{name}-faults", settings, int(seed), float(percent), journal)
        faults.wrap(pipeline.relay.function, THIS_REPO)
        for variant, consumers in variants.items():
            for consumer in consumers:
                faults.wrap(consumer.function, variant, consumer.timing)


def _build_variant(
    app: App, name: str, settings: Settings, variant: Variant, this_repo: Sequence[QueueConsumer]
) -> list[QueueConsumer]:
    """Add the tables, payment sandbox, queues and functions of one variant."""
    settings = replace(settings, sender_identity=settings.sender)  # this repository's stack creates the sender
    data = StatefulStack(app, f"{name}-stateful", settings)
    sandbox = SandboxStack(app, f"{name}-sandbox", settings)
    pipeline = VariantStack(app, f"{name}-pipeline", settings, variant, data, sandbox.url, this_repo)
    pipeline.add_dependency(sandbox)  # an output alone makes no dependency
    for stack in (data, sandbox, pipeline):
        for child in stack.node.children:
            if isinstance(child, CfnOutput):
                child.override_logical_id(f"{variant.prefix}{child.node.id}")
    return pipeline.consumers


def main() -> None:
    """Synthesise for the CDK CLI."""
    app = App()
    try:
        build_variants(app)
    except SettingsError as error:
        sys.exit(f"settings: {error}")
    set_modes(Path(app.synth().directory))


if __name__ == "__main__":
    main()
