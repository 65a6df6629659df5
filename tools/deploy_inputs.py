"""What a person supplies to a deploy: required values, and optional values that a later deploy must not drop silently.

Values are environment variables. make puts its own variables there: `make deploy STAGE=sandbox SENDER=you@example.com`.
"""

import os
from collections.abc import Mapping

from stacks.deploy_inputs import output_name

REQUIRED = {"local": (), "sandbox": ("SENDER",), "prod": ("SENDER", "PROVIDER_SECRET_ARN")}
DESCRIPTIONS = {
    "SENDER": "the sender address of the receipts, SENDER=orders@your-domain.example",
    "PROVIDER_SECRET_ARN": "the secret with the Stripe key, PROVIDER_SECRET_ARN=arn:aws:secretsmanager:...",
}
# Enough to synthesise the templates. `deploy` accepts no placeholder.
PLACEHOLDERS = {
    "SENDER": "orders@example.com",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:111122223333:secret:provider-AbCdEf",
}

# PRODUCERS and OPERATORS are comma-separated IAM ARNs. PRODUCERS may send to the orders queue. OPERATORS may redrive
# into the other queues. ALARM_EMAIL receives the alarms. RUNBOOK_URL is the published runbook that alarms link to.
_BOTH = ("PRODUCERS", "ALARM_EMAIL", "RUNBOOK_URL")
# PROVIDER_SECRET_ARN in stage sandbox: the key of a Stripe test account, which replaces the payment sandbox.
OPTIONAL = {"local": (), "sandbox": (*_BOTH, "PROVIDER_SECRET_ARN"), "prod": (*_BOTH, "OPERATORS")}
NONE = "none"  # removes an optional value; an empty value may be a mistake


def missing(stage: str) -> list[str]:
    """Return the names of the required values that are not set."""
    return [name for name in REQUIRED[stage] if not os.environ.get(name)]


def required(stage: str) -> dict[str, str]:
    """Return the required values, with placeholders for those that are not set."""
    return {name: os.environ.get(name) or PLACEHOLDERS[name] for name in REQUIRED[stage]}


def optional(stage: str) -> dict[str, str]:
    """Return the optional values of the stage. A value that is not set, or set to `none`, is empty."""
    values = {name: os.environ.get(name, "") for name in OPTIONAL[stage]}
    return {name: "" if value == NONE else value for name, value in values.items()}


def previous(outputs: Mapping[str, str], stage: str) -> dict[str, str]:
    """Return the optional values of the last deploy, from the outputs of its stacks."""
    return {name: outputs[output_name(name)] for name in OPTIONAL[stage] if output_name(name) in outputs}
