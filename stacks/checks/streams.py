"""Streams: records that a mapping gives up are kept, and the relay receives every record with events.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stacks.checks.model import Finding, Model, Resource, listed, shown, unknown, within
from stacks.checks.sample_record import completed_records
from stacks.checks.wiring import TABLES, environment, stream_sources
from stacks.times import STREAM_AGE_LEAST_S

DYNAMODB_STREAM_S = 24 * 3600
KINESIS_DEFAULT_H = 24


def dropped_stream_records_are_kept(model: Model) -> Iterator[Finding]:
    """On-failure destination, bisection, a maximum age within the retention of the stream, and TRIM_HORIZON.

    Without a maximum age, the stream drops records after its retention, and the destination receives nothing.
    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    """
    for source in stream_sources(model):
        mapping = source.mapping
        for says, do in _losses(model, mapping, source.reads):
            yield Finding(mapping.path, says, "Events in the records that the mapping gives up would be lost.", do)


def _losses(model: Model, mapping: Resource, stream: Resource | None) -> Iterator[tuple[str, str]]:
    destination = mapping.get("DestinationConfig", "OnFailure", "Destination")
    if destination is None or model.missing(destination):
        yield f"on-failure destination {model.show(destination)}", "Set DestinationConfig.OnFailure to a queue."
    bisects = mapping.get("BisectBatchOnFunctionError")
    if bisects not in (True, "true"):
        yield (
            f"BisectBatchOnFunctionError {shown(bisects)}: one bad record fails its whole batch",
            "Set bisect_batch_on_function_error=True.",
        )
    retention_s = _retention_s(stream)
    age_s = mapping.number("MaximumRecordAgeInSeconds", default=-1)
    if age_s is None or retention_s is None or not STREAM_AGE_LEAST_S <= age_s <= retention_s:
        age, keeps = mapping.get("MaximumRecordAgeInSeconds") or "unlimited", shown(retention_s or "unknown")
        yield (
            f"MaximumRecordAgeInSeconds {age}, the stream keeps {keeps} s",
            f"Write a number of seconds, at least {STREAM_AGE_LEAST_S} and at most the retention of the stream.",
        )
    if mapping.get("StartingPosition") == "LATEST":
        yield "StartingPosition LATEST skips records that arrive while the mapping is created", "Set TRIM_HORIZON."


def _retention_s(stream: Resource | None) -> float | None:
    if stream is None or stream.type != "AWS::Kinesis::Stream":
        return DYNAMODB_STREAM_S
    hours = stream.number("RetentionPeriodHours", default=KINESIS_DEFAULT_H)
    return None if hours is None else hours * 3600


def relay_sees_what_the_core_writes(model: Model) -> Iterator[Finding]:
    """The stream contains new images, and the filter of the relay matches each completed record with an outbox.

    The records come from the layer itself (sample_record.py). The relay is the function with the variable ROUTES.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
    """
    for source in stream_sources(model):
        if "ROUTES" not in environment(source.function):
            continue
        why = "Lambda skips records that do not match, so the sweep would have to send their events."
        if source.reads and source.reads.type in TABLES:
            view = source.reads.get("StreamSpecification", "StreamViewType")
            if not unknown(view) and "NEW" not in str(view):
                yield Finding(source.reads.path, f"StreamViewType {view} contains no new image", why, "Set NEW_IMAGE.")
        filters = [within(each, "Pattern") for each in listed(source.mapping.get("FilterCriteria", "Filters"))]
        if not filters:
            continue
        patterns = [_parse(pattern) for pattern in filters]
        if None in patterns:
            says = f"filter {shown(filters)} cannot be read before the deployment"
            yield Finding(source.mapping.path, says, why, "Write the pattern as JSON text.")
            continue
        for name, image in zip(("INSERT", "MODIFY"), completed_records(), strict=True):
            event = {"eventSource": "aws:dynamodb", "eventName": name, "dynamodb": {"NewImage": image}}
            mismatches = [list(_unmatched(pattern, event, "")) for pattern in patterns]
            if all(mismatches):
                has = ", ".join(f"{attribute}.{next(iter(value))}" for attribute, value in sorted(image.items()))
                yield Finding(
                    source.mapping.path,
                    f"filter {' or '.join(map(str, filters))} excludes a completed record: {'; '.join(mismatches[0])}",
                    why,
                    f"The layer writes {has}: use these in the filter.",
                )
                break


def _parse(pattern: Any) -> Any:
    try:
        found = json.loads(pattern)
    except (TypeError, ValueError):
        return None
    return None if unknown(pattern) or not isinstance(found, Mapping) else found


def _unmatched(pattern: Any, event: Any, path: str) -> Iterator[str]:
    """Yield why an event does not match a pattern. In a match, each leaf equals one of its alternatives."""
    if isinstance(pattern, Mapping):
        for name, inner in pattern.items():
            deeper = event.get(name) if isinstance(event, Mapping) else None
            yield from _unmatched(inner, deeper, f"{path}.{name}" if path else name)
    elif not any(_fits(rule, event) for rule in listed(pattern)):
        yield f"{path} is {shown(event) if event is not None else 'missing'}, the filter requires {shown(pattern)}"


def _fits(rule: Any, leaf: Any) -> bool:
    if not isinstance(rule, Mapping):
        return bool(rule == leaf)
    if "exists" in rule:  # matches leaves only. The value {"S": "x"} of an attribute is not a leaf
        return bool(rule["exists"]) == (leaf is not None and not isinstance(leaf, Mapping))
    if not isinstance(leaf, str):
        return False
    if "prefix" in rule:
        return leaf.startswith(str(rule["prefix"]))
    if "suffix" in rule:
        return leaf.endswith(str(rule["suffix"]))
    if "anything-but" in rule:
        return leaf not in list(listed(rule["anything-but"]))
    return False  # no other rule can match text


CHECKS = (dropped_stream_records_are_kept, relay_sees_what_the_core_writes)
