"""`make smoke`: send a few orders, each several times, through a deployed stage, and check the outcome of each.

It reads the payment sandbox's ledger, so it is not for prod. The receipts go to SES's mailbox simulator, which does not
show how many arrived.
"""

import argparse
import secrets
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import stripe
from botocore.exceptions import BotoCoreError, ClientError

from shared.orders.audit import Charge
from tools.account import Stop
from tools.domain import (
    MAILED,
    NotAccepted,
    an_order,
    api_client,
    describe_state,
    order_requested,
    orders_queue,
    sample_email,
)
from tools.operate.deployment import Deployment, find
from tools.progress import Steps, console, wait_until

DEADLINE_S = 180.0  # enough for cold starts, and for a back-off after an error of the provider
COPIES = 3
FINAL = {"pm_card_visa": "paid", "pm_sandbox_error_after": "paid", "pm_card_chargeDeclined": "declined"}


@dataclass(frozen=True)
class Sent:
    """An accepted order: the way it was sent (`by`), its expected state, and its total in minor units."""

    order_id: str
    by: str
    state: str
    total: int


class Smoke:
    """One run against one stage. A random word in their ids and addresses identifies its orders."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._word = f"smoke-{secrets.token_hex(4)}"
        self._api = api_client(deployment)
        self._queue = orders_queue(deployment)

    def send_by_api(self, method: str) -> Sent:
        """Post an order `COPIES` times at once under one key, then another order under the same key.

        Raises Stop unless all answers are equal, all but one are replays, and the other order is refused.
        """
        order, key = self._order(f"api-{method}", method), f"{self._word}-{method}"
        with ThreadPoolExecutor(COPIES) as clients:
            answers = list(clients.map(lambda _: self._api.place_until_accepted(order, key), range(COPIES)))
        bodies = [answer.body for answer in answers]
        if any(body != bodies[0] for body in bodies):
            raise Stop(f"{COPIES} requests under one Idempotency-Key got different answers: {bodies}")
        if sum(answer.replayed for answer in answers) != COPIES - 1:
            raise Stop(f"Of {COPIES} requests under one Idempotency-Key, {COPIES - 1} must be replays: {answers}")
        other = self._api.place(order | {"currency": "USD"}, key)
        if other.status != 422:
            raise Stop(f"Another order under the same Idempotency-Key got {other.status}, not 422: {other.body}")
        return _sent(str(bodies[0]["order_id"]), "API", order)

    def send_by_queue(self, method: str) -> Sent:
        """Put an order on the queue `COPIES` times."""
        order, order_id = self._order(f"queue-{method}", method), f"{self._word}-{method}".replace("_", "-")
        for _ in range(COPIES):
            self._queue.put(order_requested(order_id, order, f"c-{order_id}"))
        return _sent(order_id, "queue", order)

    def states(self, sent: Sequence[Sent]) -> dict[str, str]:
        """Return the state of each order, followed by `, mailed` if the customer got an email."""
        tables = self._deployment.tables()
        return {order.order_id: describe_state(tables.order(order.order_id)) for order in sent}

    def _order(self, name: str, method: str) -> dict[str, Any]:
        return an_order(sample_email(f"{self._word}-{name.replace('_', '-')}"), method)


def violations(
    sent: Sequence[Sent], states: Mapping[str, str], charges: Mapping[str, Sequence[Charge]]
) -> Iterator[str]:
    """Return a sentence for each broken guarantee."""
    for order in sent:
        name = f"{order.order_id} ({order.by})"
        if states[order.order_id] != order.state + MAILED:
            yield f"{name} is {states[order.order_id]}, should be {order.state}{MAILED}"
        found = sorted((charge.status, charge.amount) for charge in charges.get(order.order_id, ()))
        expected = [("succeeded" if order.state == "paid" else "failed", order.total)]
        if found != expected:
            yield f"{name} has charges {found} in the ledger, should have {expected}"


def smoke(deployment: Deployment) -> list[str]:
    """Send the orders, wait until they are final, and return the violations. Raises Stop if the test cannot run."""
    if deployment.stage == "prod":
        raise Stop("The smoke test charges cards, so it runs only on stages with the payment sandbox.")
    run = Smoke(deployment)
    with Steps() as steps:
        with steps.step(f"{2 * len(FINAL)} orders, each {COPIES} times"):
            sent = [send(method) for method in FINAL for send in (run.send_by_api, run.send_by_queue)]
        with steps.step("all orders final", total=len(sent)) as tell:

            def all_final() -> bool:
                final = sum(state.endswith(MAILED) for state in run.states(sent).values())
                tell(done=final)
                return final == len(sent)

            try:
                wait_until(all_final, deadline_s=DEADLINE_S, what="every order to be final", every_s=1.0)
            except TimeoutError as error:
                console.print(f"{error}", style="red", markup=False)
        with steps.step("the ledger"):
            charges: dict[str, list[Charge]] = defaultdict(list)
            for order_id, charge in deployment.ledger().charges_by_order():
                charges[order_id].append(charge)
    return list(violations(sent, run.states(sent), charges))


def _sent(order_id: str, by: str, order: Mapping[str, Any]) -> Sent:
    total = sum(item["quantity"] * item["unit_price"] for item in order["items"])
    return Sent(order_id, by, FINAL[order["payment_method"]], total)


def main() -> int:
    """Run the smoke test. Returns 1 if a guarantee is broken, 2 if the test could not run."""
    parser = argparse.ArgumentParser(prog="make smoke", usage="make smoke [STAGE=local|sandbox]", description=__doc__)
    parser.add_argument("stage", nargs="?", default="local", choices=("local", "sandbox", "prod"))
    try:
        found = smoke(find(parser.parse_args().stage))
    except (Stop, NotAccepted, TimeoutError, ClientError, BotoCoreError, stripe.StripeError) as error:
        console.print(f"\n{error}", style="red", markup=False)
        return 2
    for line in found:
        console.print(line, style="red", markup=False)
    console.print("BROKEN" if found else "Every order ended once, and every card was charged once.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
