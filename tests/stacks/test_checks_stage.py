"""What may not be in production, on a copier's plain constructs."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import CfnResource
from aws_cdk import aws_lambda as lambda_

from stacks.checks.stage import no_payment_sandbox_or_faults_in_production
from tests.stacks.minimal_app import Break, Fine, MinimalApp

PLAY = no_payment_sandbox_or_faults_in_production


def handler(app: MinimalApp, name: str) -> None:
    app.override(app.function, "Handler", name)


def experiment(app: MinimalApp) -> None:
    CfnResource(app.stack, "Chaos", type="AWS::FIS::ExperimentTemplate", properties={"Description": "kill it"})


def own_url(app: MinimalApp) -> str:
    url = app.relay.add_function_url(auth_type=lambda_.FunctionUrlAuthType.NONE).url
    app.env("PROVIDER_URL", url)
    return url


def image(app: MinimalApp, command: Any) -> None:
    app.override(app.function, "ImageConfig", {"Command": command})


BREAKS = [
    Break(
        PLAY,
        "the payment sandbox under another name",
        lambda app: handler(app, "functions.payment_sandbox.handler.handler"),
        "small/Worker",
        ("functions.payment_sandbox.handler.handler", "in stage prod"),
    ),
    Break(
        PLAY,
        "the payment sandbox in an image",
        lambda app: image(app, ["functions.payment_sandbox.handler.handler"]),
        "small/Worker",
        ("functions.payment_sandbox",),
    ),
    Break(
        PLAY,
        "a handler that injects faults",
        lambda app: handler(app, "faults.wrapped.handler"),
        "small/Worker",
        ("faults.wrapped.handler",),
    ),
    Break(
        PLAY,
        "a variable that injects faults",
        lambda app: app.env("WRAP", "faults.lost_answers"),
        "small/Worker",
        ("WRAP=faults.lost_answers",),
    ),
    Break(
        PLAY,
        "a handler of the demonstration's naive pipeline",
        lambda app: handler(app, "naive.payment.handler"),
        "small/Worker",
        ("naive.payment.handler",),
    ),
    Break(
        PLAY,
        "a share of faults",
        lambda app: app.env("FAULTS_PERCENT", "5"),
        "small/Worker",
        ("FAULTS_PERCENT=5",),
    ),
    Break(
        PLAY,
        "the variable that makes the sandbox slow",
        lambda app: app.env("SLOW_S", "12"),
        "small/Worker",
        ("SLOW_S=12",),
    ),
    Break(
        PLAY,
        "faults injected by AWS",
        lambda app: app.env("AWS_FIS_CONFIGURATION_LOCATION", app.parameter()),
        "small/Worker",
        ("AWS_FIS_CONFIGURATION_LOCATION=${Unknown}",),
    ),
    Break(PLAY, "an experiment that injects faults", experiment, "small/Chaos", ("injects faults",)),
    Break(PLAY, "a provider that is a function of the app", own_url, "small/Worker", ("PROVIDER_URL=",)),
    Break(
        PLAY,
        "a provider that is a function elsewhere",
        lambda app: app.env("PROVIDER_URL", "https://abc.lambda-url.eu-west-1.on.aws"),
        "small/Worker",
        ("https://abc.lambda-url.eu-west-1.on.aws",),
    ),
    Break(
        PLAY,
        "a provider without TLS",
        lambda app: app.env("PROVIDER_URL", "http://127.0.0.1:4566"),
        "small/Worker",
        ("http://127.0.0.1:4566",),
    ),
]

FINE = [
    Fine("the real provider", lambda app: app.env("PROVIDER_URL", "https://api.stripe.com")),
    Fine("a provider known only when it is deployed", lambda app: app.env("PROVIDER_URL", app.parameter())),
    *(
        Fine(
            f"the payment sandbox in stage {stage}",
            lambda app: handler(app, "functions.payment_sandbox.handler.handler"),
            stage,
        )
        for stage in ("sandbox", "local")
    ),
    Fine("faults in the sandbox", lambda app: handler(app, "faults.wrapped.handler"), "sandbox"),
]


@pytest.mark.parametrize("broken", BREAKS, ids=str)
def test_found_and_quoted(broken: Break, tmp_path: Path) -> None:
    broken.assert_found(tmp_path)


@pytest.mark.parametrize("fine", FINE, ids=str)
def test_no_false_alarm(fine: Fine, tmp_path: Path) -> None:
    fine.assert_fine(tmp_path)
