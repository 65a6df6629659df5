"""What may never be in production: a payment provider in play, and faults that are injected on purpose."""

import re
from collections.abc import Iterator

from stacks.checks.model import Finding, Model, Resource, listed, shown
from stacks.checks.wiring import FUNCTION, environment
from stacks.settings import Stage

# By what they are, not what they are called: code that is run, and variables that code obeys.
PLAY_HANDLER = re.compile(r"\bfunctions\.payment_sandbox\b|^(?!functions\.)\w+\.\w+\.")  # or of another package
PLAY_CODE = re.compile(r"\b(functions\.payment_sandbox|faults\.\w+)\b")
PLAY_VARIABLES = {
    "SLOW_S": "the payment sandbox's, to be slow on purpose",
    "AWS_FIS_CONFIGURATION_LOCATION": "AWS's own fault injection",
}
FAULTS = "FAULTS_"


def no_payment_sandbox_or_faults_in_production(model: Model) -> Iterator[Finding]:
    """No function of the payment sandbox, no injected faults, no provider without TLS or on a function's own URL.

    https://docs.aws.amazon.com/fis/latest/userguide/use-lambda-actions.html
    """
    if model.settings.stage is not Stage.PROD:
        return
    for function in model.of_type(FUNCTION):
        for says in _play(model, function):
            yield Finding(
                function.path,
                f"{says}, in stage {Stage.PROD}",
                "Customers' cards would not be charged, or would on purpose be charged badly.",
                "Remove it; the payment sandbox and faults belong into stages local and sandbox.",
            )
    for experiment in model.of_type("AWS::FIS::ExperimentTemplate"):
        yield Finding(
            experiment.path,
            f"an experiment that injects faults, in stage {Stage.PROD}",
            "It breaks what customers' orders run on.",
            "Remove it, or move it to stage sandbox.",
        )


def _play(model: Model, function: Resource) -> Iterator[str]:
    for code in (function.get("Handler"), *listed(function.get("ImageConfig", "Command"))):
        if PLAY_HANDLER.search(str(code)):
            yield f"runs {code}"
    for name, value in environment(function).items():
        if PLAY_CODE.search(str(value)):
            yield f"has the variable {name}={shown(value)}"
        if name in PLAY_VARIABLES or name.startswith(FAULTS):
            yield f"has the variable {name}={shown(value)}, {PLAY_VARIABLES.get(name, 'of faults on purpose')}"
    url = environment(function).get("PROVIDER_URL")
    if isinstance(url, str):
        target = model.find(re.sub(r"\}.*", "}", url[url.find("${") :])) if "${" in url else None
        if url.startswith("http:") or ".lambda-url." in url or (target and target.type == "AWS::Lambda::Url"):
            yield f"has the payment provider PROVIDER_URL={model.show(url)}"


CHECKS = (no_payment_sandbox_or_faults_in_production,)
