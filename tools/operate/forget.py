"""Deletes one idempotency record, so that its step runs again against the order row: the way past a damaged one."""

from typing import Any

from botocore.exceptions import ClientError

from shared.idempotency import Image, epoch_ms, iso, text
from shared.idempotency.records import INPROGRESS, number
from tools.account import Stop
from tools.operate.deployment import Deployment
from tools.operate.tables import OPERATIONS

# What is shown of a record: none of it can name a person. Its result and its events are only said to be there.
SHOWN = (
    "id", "status", "owner", "attempt", "uncertain", "unsettled", "in_progress_expiration", "expiration",
    "correlation_id",
)  # fmt: skip
HELD = ("validation", "data", "outbox", "effect")


def look(deployment: Deployment, key: str) -> Image | None:
    """The record as it is now. Raises Stop where the key is none of ours."""
    operation, _, order_id = key.partition("#")
    if operation not in OPERATIONS or not order_id:
        raise Stop(f"{key!r} is no key of a record: KEY=payment.charge#ord_1, or {', '.join(OPERATIONS)}.")
    found: Image | None = (
        deployment.client("dynamodb")
        .get_item(TableName=deployment.output("IdempotencyTableName"), Key={"id": {"S": key}}, ConsistentRead=True)
        .get("Item")
    )
    return found


def shown(image: Image) -> dict[str, Any]:
    """What a person may see of it."""
    seen = {name: next(iter(image[name].values())) for name in SHOWN if name in image}
    return seen | {"holds": [name for name in HELD if name in image]}


def refuse(image: Image, *, second_mail: bool) -> None:
    """Raises Stop where forgetting it would hurt."""
    key, until_ms = text(image, "id") or "", number(image, "in_progress_expiration")
    if text(image, "status") == INPROGRESS and until_ms is not None and until_ms > epoch_ms():
        raise Stop(f"{key} is being worked on until {iso(until_ms)}: what ends without a commit lapses by itself then.")
    if key.startswith("email.send#") and not second_mail:
        raise Stop(f"{key}: forgetting it may send a second mail. If that is better than none: SECOND_MAIL=1.")


def forget(deployment: Deployment, image: Image) -> None:
    """Delete it, if it is still what was shown. Raises Stop if it is not."""
    known = sorted({*SHOWN, *HELD, *image})
    same = [f"#{n} = :{n}" if name in image else f"attribute_not_exists(#{n})" for n, name in enumerate(known)]
    try:
        deployment.client("dynamodb").delete_item(
            TableName=deployment.output("IdempotencyTableName"),
            Key={"id": image["id"]},
            ConditionExpression=" AND ".join(same),
            ExpressionAttributeNames={f"#{n}": name for n, name in enumerate(known)},
            ExpressionAttributeValues={f":{n}": image[name] for n, name in enumerate(known) if name in image},
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        raise Stop("It has changed since it was shown: nothing was done. Look again.") from None


def report(deployment: Deployment, key: str, image: Image | None) -> dict[str, Any]:
    """Machine-readable."""
    return {"stage": deployment.stage, "key": key, "forgotten": image is not None, "record": shown(image or {})}
