"""Logs and metrics, written with Powertools. They hold ids, states and reasons, and no personal data."""

import os
from collections.abc import Mapping

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

logger = Logger()

# All metrics, by service (the function) and stage. Dashboard and alarms use these names.
FIRST_RUN = "FirstRun"  # the step ran now
DUPLICATE_REPLAYED = "DuplicateReplayed"  # the step ran before: its stored result was returned
BUSY = "Busy"  # another attempt holds the claim
TAKEOVER = "Takeover"  # an attempt ran after an earlier attempt that may have had its effect
LEASE_LOST = "LeaseLost"  # another owner took over: nothing was written
KEY_REUSED = "KeyReused"  # another request under a used key
PARKED = "Parked"  # sent to the DLQ with a reason
EFFECT_WITHOUT_STATE = "EffectWithoutState"  # the effect happened and the row refused the state
RETRIED = "Retried"  # the message is redelivered later
NOT_STARTED = "NotStarted"  # too little time was left
SENT = "Sent"  # events sent to queues
RESENT = "Resent"  # events sent again because the queue had refused them
LEFT = "Left"  # unfinished orders that the sweep could not serve


def count(operation: str, counts: Mapping[str, int]) -> None:
    """Emit counts as one EMF log line with the stage as dimension and the operation as a field."""
    if not any(counts.values()):
        return
    metrics = EphemeralMetrics()
    metrics.add_dimension("stage", os.environ["STAGE"])
    metrics.add_metadata("operation", operation)
    for name, value in counts.items():
        if value:
            metrics.add_metric(name, MetricUnit.Count, value)
    metrics.flush_metrics()


def trace_header() -> str | None:
    """Return the X-Ray header of the running invocation, or None outside Lambda.

    https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
    """
    return os.environ.get("_X_AMZN_TRACE_ID")
