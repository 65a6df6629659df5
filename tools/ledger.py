"""The payment provider's ledger: every charge and payment intent, read with Stripe's API. The only reader in tools/."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import stripe

from shared.idempotency import iso, runtime
from shared.orders.audit import Charge
from tools.domain import ORDER_ID

PAGE = 100
# Stripe accepts 100 requests a second, a test key 25, and the payment functions need some of them.
# https://docs.stripe.com/rate-limits
PAGE_EVERY_S = 0.2
INTENTS_MAX = 1000  # that a trace reads, newest first

stripe.enable_telemetry = False


class Ledger:
    """The provider's account. It reads; only `cancel` changes something, and `prune_keys` in the payment sandbox.

    Raises stripe.StripeError. `every_s`: the least seconds between two pages.
    """

    def __init__(self, url: str, key: str, every_s: float | None = None) -> None:
        self._every_s = PAGE_EVERY_S if every_s is None else every_s
        self._api = stripe.StripeClient(
            key,
            base_addresses={"api": url},
            http_client=stripe.RequestsClient(timeout=(5, 30)),
            max_network_retries=4,
        )

    def charges(self) -> list[dict[str, Any]]:
        """Return every charge that was executed, succeeded or failed, newest first."""
        return list(self._entries("/v1/charges"))

    def charges_by_order(self) -> Iterator[tuple[str, Charge]]:
        """Return every charge with the id of its order, newest first. Other applications' charges are left out."""
        for charge in self._entries("/v1/charges"):
            order_id = order_of(charge) or ""
            if ORDER_ID.fullmatch(order_id):
                yield order_id, parse_charge(charge)

    def charges_of(self, order_id: str) -> list[dict[str, Any]]:
        """Return the charges of one order, newest first."""
        return [charge for charge in self.charges() if order_of(charge) == order_id]

    def charges_of_intent(self, intent_id: str) -> list[Charge]:
        """Return the charges of one intent, newest first. Returns none if the provider does not know the intent."""
        try:
            return [parse_charge(charge) for charge in self._entries("/v1/charges", payment_intent=intent_id)]
        except stripe.InvalidRequestError:
            return []

    def intents(self) -> list[dict[str, Any]]:
        """Return every payment intent, newest first."""
        return list(self._entries("/v1/payment_intents"))

    def intent(self, intent_id: str) -> dict[str, Any] | None:
        """Return an intent, or None if the provider does not know it."""
        try:
            return self._request("get", f"/v1/payment_intents/{intent_id}")
        except stripe.InvalidRequestError:
            return None

    def cancel(self, intent_id: str) -> str | None:
        """Cancel an intent if its status allows that. Returns its status afterwards, None if it is not known."""
        with suppress(stripe.InvalidRequestError):  # the status says why the provider refuses
            self._request("post", f"/v1/payment_intents/{intent_id}/cancel")
        found = self.intent(intent_id)
        return found["status"] if found else None

    def intents_of(self, order_id: str, since: str) -> tuple[list[dict[str, Any]], bool]:
        """Return the intents made for an order since a time (RFC 3339), and whether all candidates were read.

        It reads page by page, because Stripe's search is a minute or more behind.
        """
        found: list[dict[str, Any]] = []
        for count, intent in enumerate(self._entries("/v1/payment_intents")):
            if iso(intent["created"] * 1000) < since[:19]:
                return found, True
            if count >= INTENTS_MAX:
                return found, False
            if order_of(intent) == order_id:
                found.append(intent)
        return found, True

    def prune_keys(self) -> None:
        """Delete all idempotency keys of the payment sandbox. A real provider deletes them after a day."""
        self._request("delete", "/v1/sandbox/idempotency_keys")

    def _entries(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Return the entries of a list, newest first. Each page is read when its first entry is needed."""
        cursor: dict[str, str] = {}
        while True:
            page = self._request("get", path, limit=PAGE, **query, **cursor)
            yield from page["data"]
            if not page["has_more"]:
                return
            cursor = {"starting_after": page["data"][-1]["id"]}
            if self._every_s:
                runtime.current().clock.sleep(self._every_s)

    def _request(self, method: str, path: str, **query: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._api.raw_request(method, path, **query).data
        return answer


def order_of(entry: dict[str, Any]) -> str | None:
    """Return the order id of a charge or intent, or None if the pipeline did not make it."""
    order_id: str | None = (entry.get("metadata") or {}).get("order_id")
    return order_id


def parse_charge(entry: dict[str, Any]) -> Charge:
    """Return a charge of the provider's API as a struct."""
    return Charge(
        id=entry["id"],
        intent_id=entry.get("payment_intent") or "",
        status=entry["status"],
        amount=entry["amount"],
        currency=entry["currency"].upper(),
        refunded=bool(entry.get("refunded")),
        at=whole_second(entry["created"]),
    )


def whole_second(epoch_s: int) -> str:
    """Format epoch seconds as RFC 3339 in UTC, without a fraction."""
    return iso(epoch_s * 1000).removesuffix(".000Z") + "Z"
