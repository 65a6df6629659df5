"""One order's story: its row, its records, the provider, the receipt, the DLQs, and what every function said of it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import msgspec
import stripe
from botocore.exceptions import ClientError

from shared.idempotency import Image, epoch_ms, iso, text
from shared.idempotency.records import flag, number
from shared.orders.row import Order, parse_row
from tools.operate import dlq
from tools.operate.deployment import Deployment
from tools.operate.judging import Rules
from tools.operate.ledger import Charge, Ledger, whole_second
from tools.operate.tables import Records, Tables

SLACK_MS = 3600 * 1000  # before the first thing that is known of an order
LONG_AGO_MS = 30 * 24 * SLACK_MS  # where nothing is known of it
LINES_A_FUNCTION = 500
# What is shown of a row and of a log line: ids, times, states. Never customer, items, or a text of another origin.
ROW = (
    "order_id", "state", "total", "currency", "payment_method", "intent_id", "charge_id", "decline_reason",
    "mail", "mail_id", "correlation_id", "sweeps",
)  # fmt: skip
LINE = (
    "operation", "attempt", "uncertain", "receive_count", "reason", "detail", "error", "code", "call", "intent",
    "status", "event_id", "state", "sweeps", "message_id",
)  # fmt: skip


@dataclass(frozen=True, order=True)
class Moment:
    """Something that happened: when (RFC 3339), who says so, what."""

    at: str
    who: str
    what: str


@dataclass
class Story:
    """All that is known of an order."""

    order_id: str
    row: dict[str, Any] | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    intents: list[dict[str, Any]] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)
    receipt_at: str | None = None
    parked: list[dict[str, Any]] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)  # what was not looked at in full

    @property
    def is_known(self) -> bool:
        """Somebody has heard of the order."""
        return bool(self.row or self.records or self.charges or self.parked or self.moments)


@dataclass(frozen=True)
class About:
    """By what a log line is known to be about the order. A poison message is logged by its own id alone."""

    order_id: str
    correlation_ids: set[Any]
    message_ids: set[str]

    @property
    def phrases(self) -> list[str]:
        """Each to be looked for by itself, which every implementation of filter patterns understands alike."""
        found = [self.order_id, *sorted(self.correlation_ids), *sorted(self.message_ids)]
        return [phrase for phrase in found if '"' not in phrase and "\\" not in phrase]

    def includes(self, line: Mapping[str, Any]) -> bool:
        """It names the order or its message, or its correlation id and no other order."""
        named = [str(line[name]) for name in ("key", "event_id", "order_id") if line.get(name)]
        pattern = rf"(?<![\w-]){re.escape(self.order_id)}(?![\w-])"
        if line.get("message_id") in self.message_ids or any(re.search(pattern, name) for name in named):
            return True
        return not named and line.get("correlation_id") in self.correlation_ids


def trace(deployment: Deployment, order_id: str) -> Story:
    """Ask everybody."""
    story = Story(order_id)
    image, records = Tables(deployment).look(order_id)
    order = _order(story, image)
    if order:
        story.row = {name: getattr(order, name) for name in ROW}
        story.moments += [Moment(move["at"], "order row", move["state"]) for move in order.timeline]
    story.records = list(_records(records))
    since = min((moment.at for moment in story.moments), default=None)
    since_ms = _ms(since) - SLACK_MS if since else epoch_ms() - LONG_AGO_MS
    try:
        _ask_provider(story, Ledger(deployment), order, iso(since_ms))
    except (stripe.APIConnectionError, stripe.APIError) as error:  # down, which is when stories are asked for
        story.gaps.append(f"the provider, which does not answer: {type(error).__name__}")
    _ask_bucket(story, deployment)
    for letters in dlq.look_everywhere(deployment):
        story.parked += [
            {"queue": letters.queue, **asdict(message)} for message in letters.messages if message.order_id == order_id
        ]
        if not letters.whole:
            story.gaps.append(f"{letters.queue} DLQ: {len(letters.messages)} of about {letters.total} messages")
    story.moments += [_parking(parked) for parked in story.parked]
    correlation_ids = {text(record, "correlation_id") for record in records.values()}
    if order:
        correlation_ids.add(order.correlation_id)
    message_ids = {parked[name] for parked in story.parked for name in ("message_id", "logged_as")}
    about = About(order_id, correlation_ids - {None}, message_ids)
    for function in deployment.functions:
        lines = sorted(set(_lines(deployment, function, about, since_ms)))
        if len(lines) > LINES_A_FUNCTION:
            story.gaps.append(f"{function}: the last {LINES_A_FUNCTION} of {len(lines)} log lines")
        story.moments += lines[-LINES_A_FUNCTION:]
    # Without a fraction, as provider and bucket tell it, a time stands behind all others of its second.
    story.moments.sort(key=lambda moment: moment.at)
    return story


def _order(story: Story, image: Image | None) -> Order | None:
    try:
        order = parse_row(image) if image else None
        for move in order.timeline if order else ():
            _ms(move["at"])  # raises where it is no time
        return order
    except (msgspec.ValidationError, ValueError) as error:
        story.gaps.append(f"the order row can not be read: {error}")
        return None


def _records(records: Records) -> Iterator[dict[str, Any]]:
    alive = Rules(epoch_ms(), 0, 0).is_alive
    for operation, image in records.items():
        until_ms, expires_s = number(image, "in_progress_expiration"), number(image, "expiration")
        yield {
            "operation": operation,
            "status": text(image, "status") if alive(image) else f"{text(image, 'status')}, expired",
            "attempt": number(image, "attempt"),
            "uncertain": flag(image, "uncertain"),
            "owner": (text(image, "owner") or "")[:8],
            "lease_until": _when(until_ms) if until_ms else None,
            "expires_at": _when(expires_s * 1000) if expires_s else None,
        }


def _when(ms: int) -> str:
    try:
        return iso(ms)
    except (OverflowError, OSError, ValueError):  # a damaged record may hold any number
        return f"not a time: {ms} ms"


def _ask_provider(story: Story, ledger: Ledger, order: Order | None, since: str) -> None:
    intents, complete = ledger.intents_of(story.order_id, since)
    if not complete:
        story.gaps.append("the provider's older payment intents")
    on_row = order.intent_id if order else None
    if on_row and on_row not in [intent["id"] for intent in intents]:
        intents += [found] if (found := ledger.intent(on_row)) else []
    for intent in intents:
        kept = {name: intent[name] for name in ("id", "status", "amount", "currency")}
        story.intents.append({**kept, "on_the_row": intent["id"] == on_row})
        story.moments.append(Moment(whole_second(intent["created"]), "provider", f"intent {intent['id']} made"))
        story.charges += ledger.of_intent(intent["id"])
    story.moments += [
        Moment(charge.at, "provider", f"charge {charge.id} {charge.status}: {charge.amount} {charge.currency}")
        for charge in story.charges
    ]


def _ask_bucket(story: Story, deployment: Deployment) -> None:
    key = f"receipts/{story.order_id}.html"
    try:
        found = deployment.client("s3").head_object(Bucket=deployment.output("ReceiptsBucketName"), Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NotFound"):
            story.gaps.append(f"the receipt: {error.response['Error']['Code']}")
        return
    story.receipt_at = whole_second(int(found["LastModified"].timestamp()))
    story.moments.append(Moment(story.receipt_at, "bucket", key))


def _parking(parked: Mapping[str, Any]) -> Moment:
    at = parked["first_parked_at"] or parked["sent_at"]
    return Moment(at, f"{parked['queue']} DLQ", f"parked, reason {parked['reason']}")


def _lines(deployment: Deployment, function: str, about: About, since_ms: int) -> Iterator[Moment]:
    """The function's log lines about the order."""
    configuration = deployment.configuration(function)
    default = f"/aws/lambda/{configuration['FunctionName']}"
    group = configuration.get("LoggingConfig", {}).get("LogGroup", default)
    pages = deployment.client("logs").get_paginator("filter_log_events")
    for phrase in about.phrases:
        try:
            for page in pages.paginate(logGroupName=group, startTime=since_ms, filterPattern=f'"{phrase}"'):
                for event in page["events"]:
                    for line in event["message"].splitlines():
                        if moment := _moment(function, line, event["timestamp"], about):
                            yield moment
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            return  # it has not run yet


def _moment(function: str, text: str, at_ms: int, about: About) -> Moment | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or "message" not in line or not about.includes(line):
        return None
    details = [f"{name} {line[name]}" for name in LINE if line.get(name) not in (None, "", False)]
    return Moment(
        _said_at(line, at_ms), function, f"{line['message']}: {', '.join(details)}" if details else line["message"]
    )


def _said_at(line: Mapping[str, Any], at_ms: int) -> str:
    """By the line's own clock: the log's may be the time at which the line arrived."""
    try:
        said = datetime.strptime(line["timestamp"], "%Y-%m-%d %H:%M:%S,%f%z")
    except (KeyError, ValueError, TypeError):
        return iso(at_ms)
    return iso(int(said.timestamp() * 1000))


def _ms(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def report(deployment: Deployment, story: Story) -> dict[str, Any]:
    """Machine-readable."""
    return {"stage": deployment.stage, **asdict(story)}
