"""Streams: what a mapping gives up is kept, and the relay sees every record that has events to send.

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
    """On-failure destination, bisecting, a bounded age that fits the stream's, and a start at its beginning.

    A mapping without bounds drops too: what it could not get through in 24 h the stream itself forgets, and no
    destination hears of it.
    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    """
    for source in stream_sources(model):
        mapping = source.mapping
        for says, do in _drops(model, mapping, source.reads):
            yield Finding(
                mapping.path, says, "Events of the records that it gives up would be lost without a trace.", do
            )


def _drops(model: Model, mapping: Resource, stream: Resource | None) -> Iterator[tuple[str, str]]:
    destination = mapping.get("DestinationConfig", "OnFailure", "Destination")
    if destination is None or model.missing(destination):
        yield f"on-failure destination {model.show(destination)}", "Set DestinationConfig.OnFailure to a queue."
    bisects = mapping.get("BisectBatchOnFunctionError")
    if bisects not in (True, "true"):
        yield (
            f"BisectBatchOnFunctionError {shown(bisects)}: a bad record takes its whole batch along",
            "Set bisect_batch_on_function_error=True.",
        )
    keeps_s = _keeps_s(stream)
    age_s = mapping.number("MaximumRecordAgeInSeconds", default=-1)
    if age_s is None or keeps_s is None or not STREAM_AGE_LEAST_S <= age_s <= keeps_s:
        age, keeps = mapping.get("MaximumRecordAgeInSeconds") or "unlimited", shown(keeps_s or "unknown")
        yield (
            f"MaximumRecordAgeInSeconds {age}, the stream keeps {keeps} s",
            f"Write a number of seconds, {STREAM_AGE_LEAST_S} to what the stream keeps.",
        )
    if mapping.get("StartingPosition") == "LATEST":
        yield "StartingPosition LATEST: what comes while it is set up is skipped", "Set TRIM_HORIZON."


def _keeps_s(stream: Resource | None) -> float | None:
    if stream is None or stream.type != "AWS::Kinesis::Stream":
        return DYNAMODB_STREAM_S
    hours = stream.number("RetentionPeriodHours", default=KINESIS_DEFAULT_H)
    return None if hours is None else hours * 3600


def relay_sees_what_the_core_writes(model: Model) -> Iterator[Finding]:
    """The stream shows new images, and the filter lets each completed record with an outbox through.

    Which attributes and types those have is read from requests of the core itself. The relay is who has ROUTES.
    https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
    """
    for source in stream_sources(model):
        if "ROUTES" not in environment(source.function):
            continue
        why = "Lambda skips records that do not match: their events would wait for the sweep, each time."
        if source.reads and source.reads.type in TABLES:
            view = source.reads.get("StreamSpecification", "StreamViewType")
            if not unknown(view) and "NEW" not in str(view):
                yield Finding(source.reads.path, f"StreamViewType {view} shows no new image", why, "Set NEW_IMAGE.")
        filters = [within(each, "Pattern") for each in listed(source.mapping.get("FilterCriteria", "Filters"))]
        if not filters:
            continue
        patterns = [_parse(pattern) for pattern in filters]
        if None in patterns:
            says = f"filter {shown(filters)} can not be read before the deployment"
            yield Finding(source.mapping.path, says, why, "Write the pattern as JSON text.")
            continue
        for name, image in zip(("INSERT", "MODIFY"), completed_records(), strict=True):
            event = {"eventSource": "aws:dynamodb", "eventName": name, "dynamodb": {"NewImage": image}}
            troubles = [list(_unmatched(pattern, event, "")) for pattern in patterns]
            if all(troubles):
                has = ", ".join(f"{attribute}.{next(iter(value))}" for attribute, value in sorted(image.items()))
                yield Finding(
                    source.mapping.path,
                    f"filter {' or '.join(map(str, filters))} turns down a completed record: {'; '.join(troubles[0])}",
                    why,
                    f"The core writes {has}: filter on these.",
                )
                break


def _parse(pattern: Any) -> Any:
    try:
        found = json.loads(pattern)
    except (TypeError, ValueError):
        return None
    return None if unknown(pattern) or not isinstance(found, Mapping) else found


def _unmatched(pattern: Any, event: Any, path: str) -> Iterator[str]:
    """Why an event does not match, as Lambda reads a pattern: every named leaf matches one of its alternatives."""
    if isinstance(pattern, Mapping):
        for name, inner in pattern.items():
            deeper = event.get(name) if isinstance(event, Mapping) else None
            yield from _unmatched(inner, deeper, f"{path}.{name}" if path else name)
    elif not any(_fits(rule, event) for rule in listed(pattern)):
        yield f"{path} is {shown(event) if event is not None else 'not there'}, the filter wants {shown(pattern)}"


def _fits(rule: Any, leaf: Any) -> bool:
    if not isinstance(rule, Mapping):
        return bool(rule == leaf)
    if "exists" in rule:  # tests leaves only: an attribute's map {"S": …} is none
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
