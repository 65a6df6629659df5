"""Puts back order rows that are missing, from a copy of the table: what point-in-time recovery made beside it.

A copy is older than the truth. A row of it may not know yet that its order was charged; so that nobody charges it
again, it gets the intent of the charge that the provider shows, before any step can see it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from shared.idempotency import Image, text
from shared.orders.row import PLACED, REQUESTED
from tools.account import Stop
from tools.operate.deployment import Deployment
from tools.operate.ledger import Ledger
from tools.operate.switch import state_of
from tools.operate.tables import Tables

Tell = Callable[[int], None]


def recover(deployment: Deployment, copy: str, tell: Tell = lambda *_: None) -> Counter[str]:
    """Put back what is missing; counts rows that were `put_back`, of these `known_to_be_charged`, and `there_already`.

    Safe to repeat: a row that is there is never touched. Raises Stop unless all queues are paused.
    """
    if running := [queue for queue in deployment.queues if state_of(deployment, queue) != "Disabled"]:
        raise Stop(f"Pause {', '.join(running)} first: a row that is half the truth may not be worked on.")
    tables, done = Tables(deployment), Counter[str]()
    if copy == tables.orders:
        raise Stop(f"{copy} is the orders table itself: name the copy.")
    intents = _charged_intents(deployment)
    for rows in tables.rows_of(copy):
        for row in rows:
            _put(tables, row, intents, done)
        tell(done["put_back"] + done["there_already"])
    return done


def _charged_intents(deployment: Deployment) -> Mapping[str, str]:
    """The intent of the first charge that stands, by order."""
    found: dict[str, str] = {}
    for order_id, charge in Ledger(deployment).charges():  # newest first
        if charge.stands:
            found[order_id] = charge.intent_id
    return found


def _put(tables: Tables, row: Image, intents: Mapping[str, str], done: Counter[str]) -> None:
    charged = intents.get(text(row, "order_id") or "")
    unaware = charged and text(row, "state") in (REQUESTED, PLACED) and text(row, "intent_id") is None
    item = {**row, "intent_id": {"S": charged}} if unaware else row
    try:
        tables.client.put_item(TableName=tables.orders, Item=item, ConditionExpression="attribute_not_exists(order_id)")
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        done["there_already"] += 1
        return
    done["put_back"] += 1
    done["known_to_be_charged"] += bool(unaware)


def report(deployment: Deployment, copy: str, done: Counter[str]) -> dict[str, Any]:
    """Machine-readable."""
    counts = {name: done[name] for name in ("put_back", "known_to_be_charged", "there_already")}
    return {"stage": deployment.stage, "from": copy, **counts}
