"""Deliver messages to the steps of a variant, and read the effects."""

import itertools
import json
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest
import stripe
from aws_lambda_powertools.utilities.batch.exceptions import BatchProcessingError
from tests.harness.interceptor import Killed
from tests.harness.moto_world import World
from tests.harness.observations import Mailbox
from tests.harness.provider_connection import ProviderConnection

NEXT = {"order": "payments", "payment": "emails"}
STEP_OF = {"payments": "payment", "emails": "email"}
ADDRESS = "buyer@example.com"


@dataclass(frozen=True)
class Message:
    """A message on the queue of a step."""

    step: str
    id: str
    body: str


@dataclass
class Shop:
    """The three steps of a variant, and the effects on order ord_1 over 2500 EUR cents."""

    world: World
    connection: ProviderConnection
    mailbox: Mailbox
    provider: stripe.StripeClient  # the test's own
    steps: dict[str, ModuleType]
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def order(self, method: str = "pm_card_visa") -> Message:
        """The order, in a message of its own each time."""
        data = {
            "order_id": "ord_1",
            "customer": {"name": "A. Buyer", "email": ADDRESS},
            "currency": "EUR",
            "items": [{"sku": "A-1", "quantity": 2, "unit_price": 1250}],
            "payment_method": method,
        }
        return Message("order", f"message-{next(self._numbers)}", json.dumps({"data": data}))

    def deliver(self, message: Message, seconds: float = 30.0) -> bool:
        """Hand a message to its step's worker; whether SQS may delete it. `seconds`: how long the worker has."""
        record = {
            "messageId": message.id,
            "body": message.body,
            "attributes": {"ApproximateReceiveCount": "1"},
            "messageAttributes": {},
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEXT_QUEUE_URL", self.world.queues.get(NEXT.get(message.step, ""), ""))
            try:
                answer = self.steps[message.step].handler({"Records": [record]}, self.world.context(seconds))
            except BatchProcessingError:  # Powertools raises where all of a batch failed: Lambda takes it for the same
                return False
        return bool(answer["batchItemFailures"] == [])

    def deliver_and_die(self, message: Message, seconds: float = 30.0) -> None:
        """Hand a message to a worker that is killed, as planned on the wire."""
        with pytest.raises(Killed):
            self.deliver(message, seconds)

    def sent(self, queue: str) -> list[Message]:
        """What was sent to a queue since the last look."""
        return [Message(STEP_OF[queue], each["MessageId"], each["Body"]) for each in self.world.messages(queue)]

    def to_payment(self, method: str = "pm_card_visa") -> Message:
        """The order as the order step passed it on."""
        assert self.deliver(self.order(method))
        (message,) = self.sent("payments")
        return message

    def to_email(self) -> Message:
        """The order as the payment step passed it on."""
        assert self.deliver(self.to_payment())
        (message,) = self.sent("emails")
        return message

    def finish(self) -> None:
        """Deliver all that was sent on, each message once; none may fail."""
        for queue in ("payments", "emails"):
            for message in self.sent(queue):
                assert self.deliver(message)

    def forget(self) -> None:
        """A day later: the provider has pruned its keys."""
        self.provider.raw_request("delete", "/v1/sandbox/idempotency_keys")

    @property
    def charges(self) -> list[tuple[str, int]]:
        """Status and amount of every charge in the provider's ledger."""
        found = self.provider.v1.charges.list({"limit": 100}).data
        return [(entry.status, entry.amount) for entry in found if entry.metadata["order_id"] == "ord_1"]

    @property
    def state(self) -> str:
        row = self.world.row("ord_1")
        assert row
        return str(row["state"]["S"])

    @property
    def mails(self) -> int:
        return len([address for address, _ in self.mailbox.mails if address == ADDRESS])

    def remembers(self, message: Message) -> bool:
        """Whether the naive variant's record of a message is there."""
        return self.world.record(message.id) is not None


PAID = ("succeeded", 2500)


def check_done_once(shop: Shop, state: str, charges: list[tuple[str, Any]]) -> None:
    """Check that the order was charged, recorded and emailed once."""
    assert shop.charges == charges
    assert shop.state == state
    assert "mailed_at" in (shop.world.row("ord_1") or {})
    assert shop.mails == 1
