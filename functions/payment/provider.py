"""The payment provider: Stripe's own SDK, its answers in the words of a step.

Every call answers with the intent as it stands, also where Stripe spells that as an error with the intent inside: a
declined card, a state that forbids the call. Anything else is raised as one of the core's errors (troubles.py), and so
is an answer that does not fit the order.
"""

import functools
import logging
import os
from collections.abc import Callable
from dataclasses import replace

import stripe

from functions.payment.intent import Intent, read, read_from
from functions.payment.troubles import Missing, Replayed, mismatch, trouble
from shared import aws
from shared.idempotency import Attempt, NotDone, Permanent
from shared.idempotency.harmless import harmless
from shared.orders.events import OrderPlaced
from shared.telemetry import logger

# With the queue's back-off, five attempts take at least seven seconds. By then a new intent can be read.
MISSING_ATTEMPTS = 5

stripe.enable_telemetry = False
logging.getLogger("stripe").setLevel(logging.WARNING)  # below, it logs what was sent and received


class Provider:
    """Payment intents. Safe to share between threads: each has a connection of its own.

    No call starts that could not end, with the step's commit after it, before the worker is stopped: NotDone.
    """

    def __init__(self, url: str, secret_arn: str, connect_s: float, read_s: float) -> None:
        """`connect_s` and `read_s`: timeouts of one request, in seconds."""
        self._url = url
        self._secret_arn = secret_arn
        self._timeout = (connect_s, read_s)
        self._client: stripe.StripeClient | None = None

    def create(self, order: OrderPlaced, attempt: Attempt) -> Intent:
        """An intent for the order, not confirmed; for about a day the same one again. Raises NotDone, Permanent."""

        def under(key: str) -> Intent:
            return self._ask(
                "create",
                order,
                None,
                attempt,
                lambda api: api.v1.payment_intents.create(
                    {
                        "amount": order.total,
                        "currency": order.currency.lower(),
                        "payment_method": order.payment_method,
                        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
                        "metadata": {"order_id": order.order_id},
                    },
                    {"idempotency_key": key},
                ),
            )

        try:
            return under(order.order_id)
        except Replayed:
            # Under this key the failure is all there is for a day. An intent too many charges nobody.
            return under(f"{order.order_id}/{attempt.number}")

    def retrieve(self, order: OrderPlaced, intent_id: str, attempt: Attempt) -> Intent:
        """The order's intent as it is. Raises NotDone, Permanent."""
        return self._ask("retrieve", order, intent_id, attempt, lambda api: api.v1.payment_intents.retrieve(intent_id))

    def confirm(self, order: OrderPlaced, intent: Intent, attempt: Attempt) -> Intent:
        """Charge the card; answers what the intent came to. Raises NotDone, Unknown, Permanent.

        No payment method is named: a declined intent has lost its own, so that confirming it again charges nothing.
        """
        return self._ask(
            "confirm",
            order,
            intent.id,
            attempt,
            lambda api: api.v1.payment_intents.confirm(
                intent.id,
                {"error_on_requires_action": True},  # the customer is not here to do anything
                # Another key each try: under the same one a stored 5xx is all there is for a day. What keeps it from
                # being charged twice is the intent's own state.
                {"idempotency_key": f"{intent.id}/confirm/{attempt.number}"},
            ),
            charges=True,
            calls=2,  # a declined one is cancelled by the same try
        )

    def cancel(self, order: OrderPlaced, intent: Intent, attempt: Attempt) -> Intent:
        """End an intent that was not paid; one that was paid meanwhile stays so. Raises NotDone, Permanent."""
        found = self._ask("cancel", order, intent.id, attempt, lambda api: api.v1.payment_intents.cancel(intent.id))
        return replace(found, reason=intent.reason)

    def _ask(
        self,
        what: str,
        order: OrderPlaced,
        intent_id: str | None,
        attempt: Attempt,
        call: Callable[[stripe.StripeClient], stripe.PaymentIntent],
        *,
        charges: bool = False,
        calls: int = 1,
    ) -> Intent:
        """Make a call and check its answer.

        `intent_id`: the intent that the call names. `charges`: the call charges somebody. `calls`: so many must still
        find time. Raises Permanent if the provider does not know the intent after several attempts: the intent stays on
        the order row, since a second intent could be a second charge.
        """

        def once() -> Intent:
            return self._once(what, order, intent_id, attempt, call, charges=charges, calls=calls)

        try:
            return once()
        except Missing as missing:
            if attempt.number < MISSING_ATTEMPTS:
                raise NotDone(str(missing)) from missing
        try:
            return once()  # an outage may have used the attempts up, and this was the first such answer
        except Missing as missing:
            raise Permanent("intent_missing", str(missing)) from missing

    def _once(
        self,
        what: str,
        order: OrderPlaced,
        intent_id: str | None,
        attempt: Attempt,
        call: Callable[[stripe.StripeClient], stripe.PaymentIntent],
        *,
        charges: bool,
        calls: int,
    ) -> Intent:
        api = self._connected()
        attempt.require(calls * sum(self._timeout) + aws.request_s())
        try:
            answer = call(api)
        except stripe.StripeError as error:
            if isinstance(error, stripe.AuthenticationError) and self._client is api:
                self._client = None  # the key was rotated: the next call fetches it anew
            intent, request_id = read_from(error), error.request_id
            if intent is None:
                raise trouble(what, error, charges=charges) from error
        else:
            intent = read(answer)
            request_id = answer.last_response.request_id if answer.last_response else None
        logger.info("provider", call=what, intent=intent.id, status=intent.status, request_id=request_id)
        if wrong := mismatch(what, intent, order, intent_id):
            raise wrong
        return intent

    def _connected(self) -> stripe.StripeClient:
        """The SDK's client; the API key is fetched once. Raises NotDone where it can not be had."""
        api = self._client
        if api is None:
            with harmless("fetch the API key"):
                secret = aws.client("secretsmanager").get_secret_value(SecretId=self._secret_arn)
            api = self._client = stripe.StripeClient(
                secret["SecretString"].strip(),
                base_addresses={"api": self._url},
                http_client=stripe.RequestsClient(timeout=self._timeout),
                max_network_retries=0,  # it knows no deadline; the message comes back by itself
            )
        return api


@functools.cache
def provider() -> Provider:
    """The process's provider. Raises KeyError naming the variable that is not set."""
    return Provider(
        url=os.environ["PROVIDER_URL"],
        secret_arn=os.environ["PROVIDER_SECRET_ARN"],
        connect_s=float(os.environ["PROVIDER_CONNECT_TIMEOUT_S"]),
        read_s=float(os.environ["PROVIDER_READ_TIMEOUT_S"]),
    )
