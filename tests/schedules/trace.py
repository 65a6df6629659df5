"""The trace of a schedule: one line per request."""

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.schedules.faults import Fault
from tests.schedules.model import Call

WORDS = {
    Fault.NONE: "",
    Fault.DIES_BEFORE: "dies before it is sent",
    Fault.DIES_AFTER: "applied, then dies",
    Fault.ANSWER_LOST: "applied, the answer is lost",
    Fault.THROTTLED: "throttled",
    Fault.CONFLICT: "conflict",
    Fault.HALF: "half done",
    Fault.STALLS: "stalls",
    Fault.LATE: "no answer, the request is late",
    Fault.DIES_LATE: "dies, the request is late",
    Fault.COPIED: "a copy is late",
}


def line(thread: str, call: Call, fault: Fault, answer: str) -> str:
    """`A?   A    UpdateItem idempotency payment.charge#ord_1 → 200 …   (applied, the answer is lost)`"""
    told = f" → {_short(answer)}" if answer else ""
    said = f"   ({WORDS[fault]})" if WORDS[fault] else ""
    return f"{thread + fault.value:<4} {thread:<4} {call.operation} {_about(call)}{told}{said}"


def _about(call: Call) -> str:
    body = call.body
    match call.service:
        case "dynamodb" if "TransactItems" in body:
            return " + ".join(_write(*next(iter(entry.items()))) for entry in body["TransactItems"])
        case "dynamodb":
            return _write("", body)
        case "sqs":
            entries = body.get("Entries", [body])
            return f"{body['QueueUrl'].rsplit('/', 1)[-1]}: {', '.join(map(_message, entries))}"
        case "provider":
            sent = parse_qsl(call.raw.decode())
            return " ".join(f"{name}={value}" for name, value in sent if not name.startswith("automatic_payment"))
        case "s3":
            return urlsplit(call.url).path
        case "sesv2":
            return str(body["Content"]["Simple"]["Subject"]["Data"])
    return ""


def _write(kind: str, body: dict[str, Any]) -> str:
    key = ", ".join(value["S"] for value in body.get("Key", {}).values())
    item = body.get("Item", {})
    key = key or item.get("id", item.get("order_id", {})).get("S", "")
    values = body.get("ExpressionAttributeValues", {})
    owner = values.get(":owner", item.get("owner", {})).get("S", "")
    return f"{kind} {body['TableName']} {key}".strip() + (f" by {owner}" if owner else "")


def _message(entry: dict[str, Any]) -> str:
    if "VisibilityTimeout" in entry:
        return f"{entry['ReceiptHandle']} comes back in {entry['VisibilityTimeout']} s"
    return str(json.loads(entry["MessageBody"]).get("id", "a message"))


def _short(answer: str) -> str:
    """Return the status, and the codes and states in the answer."""
    status, _, body = answer.partition(" ")
    said = re.findall(r'"(?:__type|Code|code|status|state|owner)": ?(?:{"S": ?)?"(?:aws#)?([^"]+)"', body)
    return " ".join([status, *dict.fromkeys(said)])
