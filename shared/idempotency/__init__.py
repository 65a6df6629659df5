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
from .steps import Attempt, Done, Effect, Outcome, Step, Write, no_guard, step
from .telemetry import logger, trace_header

__all__ = [
    "BODY_LIMIT_BYTES",
    "Attempt",
    "Busy",
    "CloudEvent",
    "Conflict",
    "Damaged",
    "Done",
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
    "no_guard",
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
