"""One idempotency layer for every step: claim, commit, release, once. It knows nothing of orders."""

from shared.idempotency.errors import (
    Busy,
    Conflict,
    Damaged,
    EffectWithoutState,
    KeyReused,
    NotDone,
    NotWritten,
    OutcomeUnknown,
    Permanent,
    StepError,
    StoreError,
    Superseded,
    Unknown,
)
from shared.idempotency.events import Event
from shared.idempotency.steps import Attempt, Effect, Outcome, Step, step
from shared.idempotency.store import Write

__all__ = [
    "Attempt",
    "Busy",
    "Conflict",
    "Damaged",
    "Effect",
    "EffectWithoutState",
    "Event",
    "KeyReused",
    "NotDone",
    "NotWritten",
    "Outcome",
    "OutcomeUnknown",
    "Permanent",
    "Step",
    "StepError",
    "StoreError",
    "Superseded",
    "Unknown",
    "Write",
    "step",
]
