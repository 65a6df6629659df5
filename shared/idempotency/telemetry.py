"""Logs and metrics by Powertools. Nothing that names a person goes in: ids, states and reasons only."""

import os
from collections.abc import Mapping

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

logger = Logger()

# All counts, by service (the function) and stage. Dashboard, alarms and demonstrations read them by these names.
FIRST_RUN = "FirstRun"  # done now
DUPLICATE_REPLAYED = "DuplicateReplayed"  # was done before: the stored result, no effect
BUSY = "Busy"  # another holds the claim
TAKEOVER = "Takeover"  # a claim was taken of which an earlier try may have had its effect
LEASE_LOST = "LeaseLost"  # superseded: nothing was written
KEY_REUSED = "KeyReused"  # another request under a taken key
PARKED = "Parked"  # sent to the DLQ at once, with a reason
EFFECT_WITHOUT_STATE = "EffectWithoutState"  # the effect happened and its state was refused
RETRIED = "Retried"  # comes back later
NOT_STARTED = "NotStarted"  # no time was left for it
SENT = "Sent"  # events sent on
RESENT = "Resent"  # events sent on once more, because the queue had refused them
LEFT = "Left"  # orders that the sweep found open and could not help this time


def count(operation: str, counts: Mapping[str, int]) -> None:
    """Emit counts as one EMF log line, apart for two stages in one account; the operation is a field of the line."""
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
    """The X-Ray header of the running invocation, as Lambda sets it; None outside.

    https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
    """
    return os.environ.get("_X_AMZN_TRACE_ID")
