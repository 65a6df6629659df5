"""What may never be in production: the payment sandbox, and injected faults."""

import re
from collections.abc import Iterator

from stacks.checks.model import Finding, Model, Resource, listed, shown
from stacks.checks.wiring import FUNCTION, environment
from stacks.settings import Stage

# Recognised by handlers and environment variables, because names of resources can be anything.
SANDBOX_HANDLER = re.compile(
    r"\bfunctions\.payment_sandbox\b|^(?!functions\.)\w+\.\w+\."
)  # or a handler of another package
SANDBOX_CODE = re.compile(r"\b(functions\.payment_sandbox|faults\.\w+)\b")
SANDBOX_VARIABLES = {
    "SLOW_S": "the duration of a slow answer of the payment sandbox",
    "AWS_FIS_CONFIGURATION_LOCATION": "the fault injection of AWS",
}
FAULTS = "FAULTS_"


def no_payment_sandbox_or_faults_in_production(model: Model) -> Iterator[Finding]:
    """In prod: no function of the payment sandbox, no injected faults, no provider on plain HTTP or a function URL.

    https://docs.aws.amazon.com/fis/latest/userguide/use-lambda-actions.html
    """
    if model.settings.stage is not Stage.PROD:
        return
    for function in model.of_type(FUNCTION):
        for says in _sandbox_uses(model, function):
            yield Finding(
                function.path,
                f"{says}, in stage {Stage.PROD}",
                "Cards of customers would not be charged, or would be charged wrongly.",
                "Remove it: only stages local and sandbox may have the payment sandbox and injected faults.",
            )
    for experiment in model.of_type("AWS::FIS::ExperimentTemplate"):
        yield Finding(
            experiment.path,
            f"is an experiment that injects faults, in stage {Stage.PROD}",
            "The experiment disturbs the orders of customers.",
            "Remove it, or move it to stage sandbox.",
        )


def _sandbox_uses(model: Model, function: Resource) -> Iterator[str]:
    for code in (function.get("Handler"), *listed(function.get("ImageConfig", "Command"))):
        if SANDBOX_HANDLER.search(str(code)):
            yield f"runs {code}"
    for name, value in environment(function).items():
        if SANDBOX_CODE.search(str(value)):
            yield f"has the variable {name}={shown(value)}"
        if name in SANDBOX_VARIABLES or name.startswith(FAULTS):
            yield f"has the variable {name}={shown(value)}, {SANDBOX_VARIABLES.get(name, 'of injected faults')}"
    url = environment(function).get("PROVIDER_URL")
    if isinstance(url, str):
        target = model.find(re.sub(r"\}.*", "}", url[url.find("${") :])) if "${" in url else None
        if url.startswith("http:") or ".lambda-url." in url or (target and target.type == "AWS::Lambda::Url"):
            yield f"has the payment provider PROVIDER_URL={model.show(url)}"


CHECKS = (no_payment_sandbox_or_faults_in_production,)
