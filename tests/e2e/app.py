"""The deployed app as a test uses it: clients, observations, and a way to kill workers."""

import os
import signal
import uuid
from collections.abc import Callable
from typing import Any

from tools.domain import an_order, api_client, order_requested, orders_queue
from tools.local import logs
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import Ledger, Mail, Mailbox, Queues, Receipts, Tables
from tools.progress import wait_until

# A killed worker's message is back after the visibility timeout, six times that of its function.
WITHIN_S = 120.0


class App:
    """One app for the whole session. Each test uses orders and addresses of its own, which `new_*` make."""

    def __init__(self, running: LocalDeployment) -> None:
        self.running = running
        self.outputs = running.outputs
        self.api = api_client(running)
        self.queue = orders_queue(running)
        self.ledger = Ledger(running)
        self.mailbox = Mailbox(running)
        self.tables = Tables(running)
        self.receipts = Receipts(running)
        self.queues = Queues(running)

    def new_order(self, payment_method: str = "pm_card_visa", **other: Any) -> dict[str, Any]:
        """An order from a customer whom nobody else is."""
        return an_order(f"{uuid.uuid4().hex}@example.com", payment_method, **other)

    def new_order_id(self) -> str:
        return f"ord_{uuid.uuid4().hex}"

    def place(self, order: dict[str, Any], key: str | None = None) -> str:
        """Place an order by the API, as a client does. Answers its id; fails the test unless it is accepted."""
        answer = self.api.place(order, key or uuid.uuid4().hex)
        assert answer.status == 202, answer
        return answer.headers["location"].removeprefix("/orders/")

    def put(self, order: dict[str, Any], order_id: str | None = None) -> str:
        """Put an order straight on the queue. Answers its id."""
        order_id = order_id or self.new_order_id()
        self.queue.put(order_requested(order_id, order, f"c-{order_id}"))
        return order_id

    def final(self, order_id: str) -> dict[str, Any]:
        """The order's row once it is final: paid or declined, and mailed."""

        def look() -> dict[str, Any] | None:
            row = self.tables.order(order_id)
            return row if row and "mailed_at" in row else None

        return wait_until(look, deadline_s=WITHIN_S, what=f"order {order_id} to be final")

    def mails_to(self, order: dict[str, Any]) -> list[Mail]:
        return self.mailbox.mails_to(order["customer"]["email"])

    def dead_letters(self, order_id: str) -> list[dict[str, Any]]:
        """What lies in any DLQ and names this order."""
        names = ("OrdersDlq", "PaymentsDlq", "EmailsDlq")
        return [message for name in names for message in self.queues.messages(name) if order_id in message["Body"]]

    def lines(self, function: str) -> list[dict[str, Any]]:
        """What a function (Api, Order, Payment, Email, Relay, Sweep, PaymentSandbox) logged, as JSON."""
        return logs.lines(self.running, self.outputs[f"{function}FunctionName"])

    def kill_workers(self, function: str, at: Callable[[], Any]) -> list[int]:
        """Wait until `at` gives something true, then kill all workers of the function. Answers their pids.

        Fails the test if there was none to kill.
        """
        wait_until(at, deadline_s=WITHIN_S, what=f"the moment to kill {function}", every_s=0.01)
        pids = self.running.workers(self.outputs[f"{function}FunctionName"])
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert pids, f"no {function} worker was there to be killed"
        return pids
