"""Decodes whole messages, as the consumer does in two steps."""

from collections.abc import Mapping

from shared.idempotency import CloudEvent, Event
from shared.idempotency.events import decode_cloudevent, decode_event


def decode(body: str, kinds: Mapping[str, type[Event]]) -> tuple[CloudEvent, Event]:
    """Return the context attributes and the event of a message. Raises Permanent."""
    cloudevent = decode_cloudevent(body)
    return cloudevent, decode_event(cloudevent, kinds)
