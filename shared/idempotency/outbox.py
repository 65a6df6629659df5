"""The outbox: the events of a completed record, as one JSON string attribute that the relay reads.

One string, because a stream's event filter matches leaf values only: it tests `status.S` and `outbox.S`.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
"""

from collections.abc import Sequence

import msgspec

from shared.idempotency.clock import iso
from shared.idempotency.events import Envelope, Event, broken_rule, cloudevent


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event to send, with the X-Ray header under which it came about."""

    event: Envelope
    trace: str | None = None


_entries = msgspec.json.Decoder(tuple[Entry, ...])


def pack(events: Sequence[Event], *, correlation_id: str, now_ms: int, trace: str | None) -> str:
    """The attribute's text."""
    time = iso(now_ms)
    entries = [Entry(cloudevent(event, correlation_id=correlation_id, time=time), trace) for event in events]
    return msgspec.json.encode(entries).decode()


def unpack(outbox: str) -> tuple[Entry, ...]:
    """Read the attribute. Raises one of UNREADABLE (events.py), also for an envelope that no consumer accepts."""
    entries = _entries.decode(outbox)
    for entry in entries:
        if broken := broken_rule(entry.event):
            raise msgspec.ValidationError(broken)
    return entries
