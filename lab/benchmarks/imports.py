"""CPU time to import each handler and create its clients, over boto3 and the same clients alone."""

import json
import subprocess
import sys
from functools import partial
from typing import Any

from lab.benchmarks.environment import clean
from lab.benchmarks.figure import Figure, GoalResult, require
from lab.benchmarks.sampling import interleaved

GOAL = 1.15
# The clients that a successful invocation needs.
USES = {
    "api": ("dynamodb",),
    "order": ("dynamodb",),
    "payment": ("dynamodb", "secretsmanager"),
    "email": ("dynamodb", "s3", "sesv2"),
    "relay": ("sqs",),
    "sweep": ("dynamodb", "sqs"),
}
# Stripe's SDK loads its parts on first use. A payment needs these.
STRIPE = "import stripe\nstripe.StripeClient, stripe.RequestsClient, stripe.PaymentIntent"
CPU = """
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
print("cpu", used.ru_utime + used.ru_stime)
"""
MADE = """
import boto3, json
made, real = [], boto3.client
def client(service, **settings):
    made.append(service)
    return real(service, **settings)
boto3.client = client
import functions.{name}.handler
print("made", json.dumps(made))
"""


def measure(quick: bool) -> Figure:
    """Measure in a new process each time, on a warm disk."""
    subjects = {}
    for name, services in USES.items():
        boto3 = f"import boto3\nfor service in {services}: boto3.client(service)"
        subjects[f"{name}: boto3"] = boto3
        subjects[f"{name}: handler"] = (
            f"import functions.{name}.handler\nfrom shared.idempotency import client\n"
            f"for service in {services}: client(service)"
        )
        if name == "payment":
            subjects["payment: with the SDK"] = f"{STRIPE}\n{boto3}"
    samples = interleaved(
        {name: partial(_cpu_s, code) for name, code in subjects.items()},
        1 if quick else 25,
    )
    rows: list[dict[str, Any]] = []
    goals = []
    for name, services in USES.items():
        _check_clients(name, services)
        handler, boto3 = f"{name}: handler", f"{name}: boto3"
        over = round(samples.ratio(handler, boto3), 3)
        row: dict[str, Any] = {
            "": name,
            "boto3 and its clients, ms": round(samples.median(boto3) * 1000),
            "handler, ms": round(samples.median(handler) * 1000),
            "over": over,
        }
        if name == "payment":
            sdk = "payment: with the SDK"
            row["Stripe's SDK, ms"] = round((samples.median(sdk) - samples.median(boto3)) * 1000)
            row["over boto3 and the SDK"] = round(samples.ratio(handler, sdk), 3)
            goals.append(GoalResult("payment, over boto3 and Stripe's SDK", row["over boto3 and the SDK"], GOAL))
        else:
            goals.append(GoalResult(f"{name}, over boto3", over, GOAL))
        rows.append(row)
    return Figure(
        "imports",
        "Import of each handler with its clients, over boto3 with the same clients",
        rows,
        [(str(row[""]), float(row["over"])) for row in rows],
        "times boto3 and its clients",
        goals,
        ("Also checked: a handler creates only clients that every invocation needs while Lambda starts it.",),
    )


def _run(code: str) -> dict[str, str]:
    """The marked output lines of the code. Raises CalledProcessError if it fails."""
    environment = clean() | {"AWS_LAMBDA_FUNCTION_NAME": "function"}  # clients are created as on Lambda
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    lines = [network.partition(" ") for network in done.stdout.splitlines()]
    return {mark: rest for mark, _, rest in lines}


def _cpu_s(code: str) -> float:
    return float(_run(code + CPU)["cpu"])


def _check_clients(name: str, services: tuple[str, ...]) -> None:
    made = json.loads(_run(MADE.format(name=name))["made"])
    require(set(made) <= set(services), f"{name} creates clients {made} at its start and needs {services}")
    require(len(made) == len(set(made)), f"{name} creates clients twice: {made}")
