"""The idempotency layer: claim, commit, release and outbox for every step. It knows nothing about orders.

Step authors import from this package and from nothing deeper.
"""

from .engine import Engine, StepResult, current_engine
from .errors import (
    Busy,
    Conflict,
    Damaged,
    EffectWithoutState,
    KeyReused,
    NotDone,
    NotWritten,
    Permanent,
    RequestInDoubt,
    StepError,
    StoreError,
    Superseded,
    Unknown,
    as_not_done,
)
from .events import BODY_LIMIT_BYTES, CloudEvent, Event, cloudevent, decode_as, fingerprint
from .outbox import OutgoingMessage, batches, send, unpack
from .records import Image, text
from .runtime import client, epoch_ms, iso, request_s, reserve_s
from .sqs import park, sqs_handler
from .steps import Attempt, Effect, Outcome, Step, Write, step
from .telemetry import logger, trace_header

__all__ = [
    "BODY_LIMIT_BYTES",
    "Attempt",
    "Busy",
    "CloudEvent",
    "Conflict",
    "Damaged",
    "Effect",
    "EffectWithoutState",
    "Engine",
    "Event",
    "Image",
    "KeyReused",
    "NotDone",
    "NotWritten",
    "Outcome",
    "OutgoingMessage",
    "Permanent",
    "RequestInDoubt",
    "Step",
    "StepError",
    "StepResult",
    "StoreError",
    "Superseded",
    "Unknown",
    "Write",
    "as_not_done",
    "batches",
    "client",
    "cloudevent",
    "current_engine",
    "decode_as",
    "epoch_ms",
    "fingerprint",
    "iso",
    "logger",
    "park",
    "request_s",
    "reserve_s",
    "send",
    "sqs_handler",
    "step",
    "text",
    "trace_header",
    "unpack",
]
