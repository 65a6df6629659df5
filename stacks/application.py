"""The stacks of one stage, and their synthesis."""

import sys
from pathlib import Path

from aws_cdk import App, Validations
from aws_cdk.cx_api import CloudAssembly

from stacks.checks.plugin import GuaranteeChecks
from stacks.constructs.assets import set_modes
from stacks.observability import ObservabilityStack
from stacks.pipeline import PipelineStack, Provider
from stacks.sandbox import SandboxStack
from stacks.settings import Settings, settings_from
from stacks.stateful import StatefulStack
from stacks.times import SettingsError


def build(app: App, settings: Settings | None = None) -> Settings:
    """Add the stacks of a stage to the app. Without `settings`, the context names the stage. Returns the settings.

    The stacks name no account and no region.
    """
    settings = settings or settings_from(app.node.try_get_context)
    name = f"effectively-once-{settings.stage}"
    tags = {"application": "effectively-once", "stage": settings.stage.value}
    data = StatefulStack(app, f"{name}-stateful", settings, tags=tags)
    pipeline = PipelineStack(app, f"{name}-pipeline", settings, data, _provider(app, name, settings, tags), tags=tags)
    ObservabilityStack(app, f"{name}-observability", settings, data, pipeline, tags=tags)
    return settings


def _provider(app: App, name: str, settings: Settings, tags: dict[str, str]) -> Provider:
    if settings.provider_url and settings.provider_secret_arn:
        return Provider(settings.provider_url, settings.provider_secret_arn)
    sandbox = SandboxStack(app, f"{name}-sandbox", settings, tags=tags)
    return Provider(sandbox.url, sandbox.secret_arn)


def synthesise(app: App, settings: Settings) -> CloudAssembly:
    """Synthesise the app and check its templates.

    Under the CDK CLI, the CLI reports findings and fails. Otherwise raises RuntimeError if a check finds something.
    """
    Validations.of(app).add_plugins(GuaranteeChecks(settings))
    assembly = app.synth()
    set_modes(Path(assembly.directory))
    return assembly


def main() -> None:
    """Synthesise for the CDK CLI. Wrong settings end the program with their text instead of a traceback."""
    app = App()
    try:
        settings = build(app)
    except SettingsError as error:
        sys.exit(f"settings: {error}")
    synthesise(app, settings)
