"""What the payment provider says: every charge, by order. Read as the payment function does, with its key."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import stripe

from shared.idempotency import iso, runtime
from tools.operate.deployment import Deployment
from tools.operate.parked import ORDER_ID

PAGE = 100
# Stripe takes 100 requests a second, the payment functions among them, a test key 25: https://docs.stripe.com/rate-limits
PAGE_EVERY_S = 0.2
INTENTS_LOOKED_AT = 1000  # by a trace, newest first

stripe.enable_telemetry = False


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge that was executed. `amount` in minor units, `currency` upper case, `at` RFC 3339."""

    id: str
    intent_id: str
    status: str
    amount: int
    currency: str
    refunded: bool
    at: str

    @property
    def stands(self) -> bool:
        """The customer has paid, and not got it back."""
        return self.status == "succeeded" and not self.refunded


class Ledger:
    """The provider's account."""

    def __init__(self, deployment: Deployment) -> None:
        told = deployment.told("payment")
        secret = deployment.client("secretsmanager").get_secret_value(SecretId=told["PROVIDER_SECRET_ARN"])
        self._api = stripe.StripeClient(
            secret["SecretString"].strip(),
            base_addresses={"api": told["PROVIDER_URL"]},
            http_client=stripe.RequestsClient(timeout=(5, 30)),
            max_network_retries=4,  # it reads only
        )

    def charges(self) -> Iterator[tuple[str, Charge]]:
        """Every charge with its order's id, newest first; those of no order of ours are somebody else's."""
        for page in self._pages(self._api.v1.charges, {}):
            for found in page:
                order_id = (found.get("metadata") or {}).get("order_id") or ""
                if ORDER_ID.fullmatch(order_id):
                    yield order_id, _charge(found)

    def intent(self, intent_id: str) -> dict[str, Any] | None:
        """An intent as it stands; None where the provider does not know it."""
        try:
            return self._api.v1.payment_intents.retrieve(intent_id).to_dict()
        except stripe.InvalidRequestError:
            return None

    def of_intent(self, intent_id: str) -> list[Charge]:
        """The charges of one intent, newest first; none where the provider does not know it."""
        try:
            return [
                _charge(found)
                for page in self._pages(self._api.v1.charges, {"payment_intent": intent_id})
                for found in page
            ]
        except stripe.InvalidRequestError:
            return []

    def intents_of(self, order_id: str, since: str) -> tuple[list[dict[str, Any]], bool]:
        """Intents made for an order since then (RFC 3339), and whether all that could be were looked at.

        By walking: Stripe's search lags behind by a minute or more.
        """
        found: list[dict[str, Any]] = []
        looked_at = 0
        for page in self._pages(self._api.v1.payment_intents, {}):
            for intent in page:
                if iso(intent["created"] * 1000) < since[:19]:
                    return found, True
                if (intent.get("metadata") or {}).get("order_id") == order_id:
                    found.append(intent)
            looked_at += len(page)
            if looked_at >= INTENTS_LOOKED_AT:
                return found, False
        return found, True

    def _pages(self, service: Any, query: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        query = {**query, "limit": PAGE}
        while True:
            page = service.list(query)
            data = [entry.to_dict() for entry in page.data]
            yield data
            if not page.has_more:
                return
            query["starting_after"] = data[-1]["id"]
            runtime.current().clock.sleep(PAGE_EVERY_S)


def whole_second(epoch_s: int) -> str:
    """RFC 3339, UTC, without the fraction that nobody told."""
    return iso(epoch_s * 1000).removesuffix(".000Z") + "Z"


def _charge(found: dict[str, Any]) -> Charge:
    return Charge(
        id=found["id"],
        intent_id=found.get("payment_intent") or "",
        status=found["status"],
        amount=found["amount"],
        currency=found["currency"].upper(),
        refunded=bool(found.get("refunded")),
        at=whole_second(found["created"]),
    )
