"""The story of one order: its row, records, payment intents, charges, receipt, parked messages and log lines."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import stripe
from botocore.exceptions import ClientError

from shared.idempotency import Image, epoch_ms, iso, text
from shared.idempotency.records import flag, number
from shared.orders import Order, parse_row
from shared.orders.audit import Charge, Records, Rules
from tools.domain import LOG_FIELDS, ROW_FIELDS, receipt_key
from tools.ledger import Ledger, whole_second
from tools.operate import dlq
from tools.operate.deployment import Deployment

MARGIN_MS = 3600 * 1000  # before the first known time of an order
MAX_AGE_MS = 30 * 24 * MARGIN_MS  # if no time of the order is known
LINES_A_FUNCTION = 500


@dataclass(frozen=True, order=True)
class Moment:
    """Something that happened: when (RFC 3339), the source that reports it, and a text."""

    at: str
    who: str
    what: str


@dataclass
class Story:
    """All that is known about an order."""

    order_id: str
    row: dict[str, Any] | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    intents: list[dict[str, Any]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    receipt_at: str | None = None
    parked: list[dict[str, Any]] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)  # sources that were not read completely

    @property
    def is_known(self) -> bool:
        """At least one source knows the order."""
        return bool(self.row or self.records or self.charges or self.parked or self.moments)


@dataclass(frozen=True)
class LogFilter:
    """Selects the log lines about an order. The line about a poison message names only the message's id."""

    order_id: str
    correlation_ids: set[Any]
    message_ids: set[str]

    @property
    def phrases(self) -> list[str]:
        """The phrases to search for, one request each. Every emulator understands a filter of one quoted phrase."""
        phrases = [self.order_id, *sorted(self.correlation_ids), *sorted(self.message_ids)]
        return [phrase for phrase in phrases if '"' not in phrase and "\\" not in phrase]

    def includes(self, line: Mapping[str, Any]) -> bool:
        """Return whether the line names the order or its message, or its correlation id and no other order."""
        named = [str(line[name]) for name in ("key", "event_id", "order_id") if line.get(name)]
        pattern = rf"(?<![\w-]){re.escape(self.order_id)}(?![\w-])"
        if line.get("message_id") in self.message_ids or any(re.search(pattern, name) for name in named):
            return True
        return not named and line.get("correlation_id") in self.correlation_ids


def trace(deployment: Deployment, order_id: str) -> Story:
    """Read all sources."""
    story = Story(order_id)
    image, records = deployment.tables().look(order_id)
    order = _parse_order(story, image)
    if order:
        story.row = {name: getattr(order, name) for name in ROW_FIELDS}
        story.moments += [Moment(move["at"], "order row", move["state"]) for move in order.timeline]
    story.records = list(_describe_records(records))
    first_at = min((moment.at for moment in story.moments), default=None)
    since_ms = _epoch_ms(first_at) - MARGIN_MS if first_at else epoch_ms() - MAX_AGE_MS
    try:
        _read_provider(story, deployment.ledger(), order, iso(since_ms))
    except (stripe.APIConnectionError, stripe.APIError) as error:  # an outage is a reason to read stories
        story.gaps.append(f"the provider, which does not answer: {type(error).__name__}")
    _read_receipt(story, deployment)
    _read_dlqs(story, deployment)
    correlation_ids = {text(record, "correlation_id") for record in records.values()}
    if order:
        correlation_ids.add(order.correlation_id)
    message_ids = {parked[name] for parked in story.parked for name in ("message_id", "logged_as")}
    log_filter = LogFilter(order_id, correlation_ids - {None}, message_ids)
    for function in deployment.functions:
        lines = sorted(set(_read_log(deployment, function, log_filter, since_ms)))
        if len(lines) > LINES_A_FUNCTION:
            story.gaps.append(f"{function}: the last {LINES_A_FUNCTION} of {len(lines)} log lines")
        story.moments += lines[-LINES_A_FUNCTION:]
    # Times of the provider and the bucket have no fraction. They sort after all other times of the same second.
    story.moments.sort(key=lambda moment: moment.at)
    return story


def _parse_order(story: Story, image: Image | None) -> Order | None:
    try:
        order = parse_row(image) if image else None
        for move in order.timeline if order else ():
            _epoch_ms(move["at"])  # raises if the text is not a time
        return order
    except ValueError as error:  # msgspec's ValidationError is a ValueError
        story.gaps.append(f"the order row cannot be read: {error}")
        return None


def _describe_records(records: Records) -> Iterator[dict[str, Any]]:
    is_alive = Rules(epoch_ms(), 0, 0).is_alive
    for operation, image in records.items():
        until_ms, expires_s = number(image, "in_progress_expiration"), number(image, "expiration")
        yield {
            "operation": operation,
            "status": text(image, "status") if is_alive(image) else f"{text(image, 'status')}, expired",
            "attempt": number(image, "attempt"),
            "uncertain": flag(image, "uncertain"),
            "owner": (text(image, "owner") or "")[:8],
            "lease_until": _time(until_ms) if until_ms else None,
            "expires_at": _time(expires_s * 1000) if expires_s else None,
        }


def _time(ms: int) -> str:
    try:
        return iso(ms)
    except (OverflowError, OSError, ValueError):  # a damaged record may hold any number
        return f"not a time: {ms} ms"


def _read_provider(story: Story, ledger: Ledger, order: Order | None, since: str) -> None:
    intents, complete = ledger.intents_of(story.order_id, since)
    if not complete:
        story.gaps.append("the provider's older payment intents")
    id_on_row = order.intent_id if order else None
    if id_on_row and id_on_row not in [intent["id"] for intent in intents]:
        intents += [found] if (found := ledger.intent(id_on_row)) else []
    for intent in intents:
        shown = {name: intent[name] for name in ("id", "status", "amount", "currency")}
        story.intents.append({**shown, "on_the_row": intent["id"] == id_on_row})
        story.moments.append(Moment(whole_second(intent["created"]), "provider", f"intent {intent['id']} created"))
        story.charges += ledger.charges_of_intent(intent["id"])
    story.moments += [
        Moment(charge.at, "provider", f"charge {charge.id} {charge.status}: {charge.amount} {charge.currency}")
        for charge in story.charges
    ]


def _read_receipt(story: Story, deployment: Deployment) -> None:
    key = receipt_key(story.order_id)
    try:
        found = deployment.client("s3").head_object(Bucket=deployment.output("ReceiptsBucketName"), Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NotFound"):
            story.gaps.append(f"the receipt: {error.response['Error']['Code']}")
        return
    story.receipt_at = whole_second(int(found["LastModified"].timestamp()))
    story.moments.append(Moment(story.receipt_at, "bucket", key))


def _read_dlqs(story: Story, deployment: Deployment) -> None:
    for contents in dlq.look_everywhere(deployment):
        for message in contents.messages:
            if message.order_id == story.order_id:
                story.parked.append({"queue": contents.queue, **asdict(message)})
                at = message.first_parked_at or message.sent_at
                story.moments.append(Moment(at, f"{contents.queue} DLQ", f"parked, reason {message.reason}"))
        if not contents.complete:
            gap = f"{contents.queue} DLQ: {len(contents.messages)} of about {contents.total} messages"
            story.gaps.append(gap)


def _read_log(deployment: Deployment, function: str, log_filter: LogFilter, since_ms: int) -> Iterator[Moment]:
    configuration = deployment.configuration(function)
    default = f"/aws/lambda/{configuration['FunctionName']}"
    group = configuration.get("LoggingConfig", {}).get("LogGroup", default)
    pages = deployment.client("logs").get_paginator("filter_log_events")
    for phrase in log_filter.phrases:
        try:
            for page in pages.paginate(logGroupName=group, startTime=since_ms, filterPattern=f'"{phrase}"'):
                for event in page["events"]:
                    for line in event["message"].splitlines():
                        if moment := _parse_line(function, line, event["timestamp"], log_filter):
                            yield moment
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            return  # the function has not run yet


def _parse_line(function: str, text: str, event_ms: int, log_filter: LogFilter) -> Moment | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or "message" not in line or not log_filter.includes(line):
        return None
    details = [f"{name} {line[name]}" for name in LOG_FIELDS if line.get(name) not in (None, "", False)]
    what = f"{line['message']}: {', '.join(details)}" if details else line["message"]
    return Moment(_time_of_line(line, event_ms), function, what)


def _time_of_line(line: Mapping[str, Any], event_ms: int) -> str:
    """Return the line's own time. The time of the log event may be that of its arrival."""
    try:
        at = datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z")
    except (KeyError, ValueError, TypeError):
        return iso(event_ms)
    return iso(int(at.timestamp() * 1000))


def _epoch_ms(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)
