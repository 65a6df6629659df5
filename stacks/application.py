"""Composes the stacks of one stage."""

import sys

from aws_cdk import App

from stacks.pipeline import PipelineStack, Provider
from stacks.sandbox import SandboxStack
from stacks.settings import Settings, settings_from
from stacks.stateful import StatefulStack
from stacks.times import SettingsError


def build(app: App) -> None:
    """Put the stacks of the stage that the context names into the app. No account, no region: they fit any."""
    settings = settings_from(app.node.try_get_context)
    name = f"effectively-once-{settings.stage}"
    tags = {"application": "effectively-once", "stage": settings.stage.value}
    data = StatefulStack(app, f"{name}-stateful", settings, tags=tags)
    PipelineStack(app, f"{name}-pipeline", settings, data, _provider(app, name, settings, tags), tags=tags)


def _provider(app: App, name: str, settings: Settings, tags: dict[str, str]) -> Provider:
    if settings.provider_url and settings.provider_secret_arn:
        return Provider(settings.provider_url, settings.provider_secret_arn)
    sandbox = SandboxStack(app, f"{name}-sandbox", settings, tags=tags)
    return Provider(sandbox.url, sandbox.secret_arn)


def main() -> None:
    """Synthesise for the CDK CLI; bad settings end it with one line instead of a traceback."""
    app = App()
    try:
        build(app)
    except SettingsError as error:
        sys.exit(f"settings: {error}")
    app.synth()
