"""`make smoke`: a handful of orders, each sent more than once, through a deployed stage, and what became of them.

On an account as on the laptop. It asks the payment sandbox how often each card was charged, so it is not for prod.
Mails go to SES's mailbox simulator, also while SES keeps the account in its own sandbox; nobody can count them there.
https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html
"""

import argparse
import secrets
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tools.account import Stop
from tools.operate.deployment import Deployment, find
from tools.operate.ledger import Charge, Ledger
from tools.orders_client import ApiClient, OrdersQueue, Response, an_order, order_requested
from tools.progress import Steps, console
from tools.waiting import wait_until

# Cold starts, and a back-off after the provider's error.
WITHIN_S = 180.0
COPIES = 3
FINAL = {"pm_card_visa": "paid", "pm_sandbox_error_after": "paid", "pm_card_chargeDeclined": "declined"}


@dataclass(frozen=True)
class Sent:
    """An order that was accepted, and how it should end."""

    order_id: str
    by: str
    ends: str
    total: int


class Smoke:
    """One run against one stage; its orders are told from others' by a random word."""

    def __init__(self, deployment: Deployment) -> None:
        credentials = deployment.session.get_credentials()
        self._deployment = deployment
        self._word = f"smoke-{secrets.token_hex(4)}"
        self._api = ApiClient(deployment.output("ApiUrl"), credentials, deployment.session.region_name)
        self._queue = OrdersQueue(deployment.client("sqs"), deployment.output("OrdersQueueUrl"))

    def by_api(self, method: str) -> Sent:
        """Place an order `COPIES` times at once under one key, then another under the same key.

        Raises Stop unless there is one order, the same answer for all, and a refusal of the other.
        """
        order, key = self._order(f"api-{method}", method), f"{self._word}-{method}"
        with ThreadPoolExecutor(COPIES) as clients:
            answers = list(clients.map(lambda _: self._place(order, key), range(COPIES)))
        bodies = [answer.body for answer in answers]
        if any(body != bodies[0] for body in bodies):
            raise Stop(f"{COPIES} requests under one Idempotency-Key were answered differently: {bodies}")
        if sum(answer.replayed for answer in answers) != COPIES - 1:
            raise Stop(f"Of {COPIES} requests under one Idempotency-Key, {COPIES - 1} should be replays: {answers}")
        other = self._api.place(order | {"currency": "USD"}, key)
        if other.status != 422:
            raise Stop(f"Another order under the same Idempotency-Key: {other.status} instead of 422. {other.body}")
        return _sent(str(bodies[0]["order_id"]), "API", order)

    def by_queue(self, method: str) -> Sent:
        """Put an order on the queue `COPIES` times."""
        order, order_id = self._order(f"queue-{method}", method), f"{self._word}-{method}".replace("_", "-")
        for _ in range(COPIES):
            self._queue.put(order_requested(order_id, order, f"c-{order_id}"))
        return _sent(order_id, "queue", order)

    def states(self, sent: Sequence[Sent]) -> dict[str, str]:
        """The state of each order; `mailed` added once the customer was told."""
        dynamodb = self._deployment.client("dynamodb")
        table = self._deployment.output("OrdersTableName")
        found: dict[str, str] = {}
        for order in sent:
            key = {"order_id": {"S": order.order_id}}
            row = dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
            state = row.get("state", {}).get("S", "nothing")
            found[order.order_id] = f"{state}, mailed" if "mailed_at" in row else state
        return found

    def _order(self, name: str, method: str) -> dict[str, Any]:
        return an_order(f"success+{self._word}-{name.replace('_', '-')}@simulator.amazonses.com", method)

    def _place(self, order: Mapping[str, Any], key: str) -> Response:
        """Raises Stop if the API does not accept it in the end."""

        def ask() -> Response | None:
            answer = self._api.place(order, key)
            if answer.status in (409, 429, 502, 503, 504):  # the same key is safe
                return None
            if answer.status != 202:
                raise Stop(f"The API answered {answer.status}: {answer.body}")
            return answer

        return wait_until(ask, deadline_s=30, what="the API to accept an order", every_s=0.5)


def wrong(sent: Sequence[Sent], states: Mapping[str, str], charges: Mapping[str, Sequence[Charge]]) -> Iterator[str]:
    """What is not as promised."""
    for order in sent:
        name = f"{order.order_id} ({order.by})"
        if states[order.order_id] != f"{order.ends}, mailed":
            yield f"{name} is {states[order.order_id]}, should be {order.ends}, mailed"
        found = sorted((charge.status, charge.amount) for charge in charges.get(order.order_id, ()))
        wanted = [("succeeded" if order.ends == "paid" else "failed", order.total)]
        if found != wanted:
            yield f"{name} has charges {found} in the ledger, should have {wanted}"


def smoke(deployment: Deployment) -> list[str]:
    """What is not as promised after a handful of orders. Raises Stop where nothing can be said."""
    if deployment.stage == "prod":
        raise Stop("The smoke test places orders and charges their cards: it is for stages with the payment sandbox.")
    run = Smoke(deployment)
    with Steps() as steps:
        with steps.step(f"{2 * len(FINAL)} orders, each {COPIES} times"):
            sent = [way(method) for method in FINAL for way in (run.by_api, run.by_queue)]
        with steps.step("all of them final", total=len(sent)) as tell:

            def settled() -> bool:
                done = sum(state.endswith("mailed") for state in run.states(sent).values())
                tell(done=done)
                return done == len(sent)

            try:
                wait_until(settled, deadline_s=WITHIN_S, what="every order to be final", every_s=1.0)
            except TimeoutError as late:
                console.print(f"{late}", style="red", markup=False)
        with steps.step("the ledger"):
            charges: dict[str, list[Charge]] = defaultdict(list)
            for order_id, charge in Ledger(deployment).charges():
                charges[order_id].append(charge)
    return list(wrong(sent, run.states(sent), charges))


def _sent(order_id: str, by: str, order: Mapping[str, Any]) -> Sent:
    total = sum(item["quantity"] * item["unit_price"] for item in order["items"])
    return Sent(order_id, by, FINAL[order["payment_method"]], total)


def main() -> int:
    """Answers 1 if anything is not as promised, 2 if it could not be told."""
    parser = argparse.ArgumentParser(prog="make smoke", usage="make smoke [STAGE=local|sandbox]", description=__doc__)
    parser.add_argument("stage", nargs="?", default="local", choices=("local", "sandbox", "prod"))
    try:
        found = smoke(find(parser.parse_args().stage))
    except (Stop, TimeoutError, ClientError, BotoCoreError) as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 2
    for line in found:
        console.print(line, style="red", markup=False)
    console.print("NOT AS PROMISED" if found else "Every order ended once, and every card was charged once.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
