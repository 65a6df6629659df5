"""The payment provider, called with Stripe's own SDK.

Each call returns the intent as it is now, also if Stripe answers with an error that contains the intent: a declined
card, or a state that forbids the call. Everything else is raised as an error of the engine (errors.py), and so is an
answer that does not fit the order.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import replace

import stripe

from functions.payment.errors import Missing, Replayed, mismatch, to_step_error
from functions.payment.intent import Intent, intent_in_error, parse_intent
from shared.idempotency import Attempt, NotDone, Permanent, as_not_done, client, logger, request_s, runtime
from shared.orders import OrderPlaced

# With the queue's back-off, five attempts take at least seven seconds. By then a new intent can be read.
MISSING_ATTEMPTS = 5

stripe.enable_telemetry = False
logging.getLogger("stripe").setLevel(logging.WARNING)  # below this level the SDK logs what it sends and receives


class Provider:
    """Payment intents. Safe to share between threads: each thread has its own connection.

    A call raises NotDone instead of starting if it could not end before the step's deadline, or if the calls that may
    follow could not.
    """

    def __init__(self, url: str, secret_arn: str, connect_s: float, read_s: float) -> None:
        """`connect_s` and `read_s`: timeouts of one request, in seconds."""
        self._url = url
        self._secret_arn = secret_arn
        self._timeout = (connect_s, read_s)
        self._client: stripe.StripeClient | None = None

    def create(self, order: OrderPlaced, attempt: Attempt) -> Intent:
        """Create an unconfirmed intent for the order. For about a day, repeated calls return the same intent.

        Raises NotDone or Permanent.
        """

        def create_with(key: str) -> Intent:
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
                then_s=request_s(),  # its id is fixed on the row
            )

        try:
            return create_with(order.order_id)
        except Replayed:
            # The provider returns its stored failure under this key for a day. A second intent charges no card.
            return create_with(f"{order.order_id}/{attempt.number}")

    def retrieve(self, order: OrderPlaced, intent_id: str, attempt: Attempt) -> Intent:
        """Return the order's intent as it is now. Raises NotDone or Permanent."""
        return self._ask(
            "retrieve",
            order,
            intent_id,
            attempt,
            lambda api: api.v1.payment_intents.retrieve(intent_id),
            then_s=request_s(),  # the id of a new intent is fixed on the row
        )

    def confirm(self, order: OrderPlaced, intent: Intent, attempt: Attempt) -> Intent:
        """Charge the card and return the intent afterwards. Raises NotDone, Unknown or Permanent.

        The call names no payment method. A declined intent has lost its method, so confirming it again charges nothing.
        """
        return self._ask(
            "confirm",
            order,
            intent.id,
            attempt,
            lambda api: api.v1.payment_intents.confirm(
                intent.id,
                {"error_on_requires_action": True},  # the customer is not present to act
                # Each attempt has its own key: under a used key the provider returns a stored 5xx for a day. The
                # intent's own state prevents a second charge.
                {"idempotency_key": f"{intent.id}/confirm/{attempt.number}"},
            ),
            charges=True,
            then_s=sum(self._timeout),  # the same attempt cancels a declined intent
        )

    def cancel(self, order: OrderPlaced, intent: Intent, attempt: Attempt) -> Intent:
        """Cancel an unpaid intent. An intent that was paid in the meantime stays paid. Raises NotDone or Permanent."""
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
        then_s: float = 0,
    ) -> Intent:
        """Make a call and check its answer.

        `intent_id`: the intent that the call names. `charges`: the call charges somebody. `then_s`: the seconds that
        the step needs after the call. Raises Permanent if the provider does not know the intent after several
        attempts: the intent stays on the order row, because a second intent could be a second charge.
        """

        def once() -> Intent:
            return self._once(what, order, intent_id, attempt, call, charges=charges, then_s=then_s)

        try:
            return once()
        except Missing as missing:
            if attempt.number < MISSING_ATTEMPTS:
                raise NotDone(str(missing)) from missing
        try:
            return once()  # an outage may have used up the attempts, and this was the first such answer
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
        then_s: float,
    ) -> Intent:
        api = self._connected()
        attempt.require(sum(self._timeout) + then_s)
        try:
            answer = call(api)
        except stripe.StripeError as error:
            if isinstance(error, stripe.AuthenticationError) and self._client is api:
                self._client = None  # the key was rotated: the next call fetches it again
            intent, request_id = intent_in_error(error), error.request_id
            if intent is None:
                raise to_step_error(what, error, charges=charges) from error
        else:
            intent = parse_intent(answer)
            request_id = answer.last_response.request_id if answer.last_response else None
        logger.info("provider", call=what, intent=intent.id, status=intent.status, request_id=request_id)
        if wrong := mismatch(what, intent, order, intent_id):
            raise wrong
        return intent

    def _connected(self) -> stripe.StripeClient:
        """Return the SDK's client. The API key is fetched once. Raises NotDone if the key cannot be read."""
        api = self._client
        if api is None:
            with as_not_done("fetch the API key"):
                secret = client("secretsmanager").get_secret_value(SecretId=self._secret_arn)
            api = self._client = stripe.StripeClient(
                secret["SecretString"].strip(),
                base_addresses={"api": self._url},
                http_client=stripe.RequestsClient(timeout=self._timeout),
                max_network_retries=0,  # the SDK knows no deadline, and the message is redelivered
            )
        return api


def provider() -> Provider:
    """Return the process's provider. Raises KeyError naming a variable that is not set."""
    return runtime.current().single(provider, _from_environment)


def _from_environment() -> Provider:
    return Provider(
        url=os.environ["PROVIDER_URL"],
        secret_arn=os.environ["PROVIDER_SECRET_ARN"],
        connect_s=float(os.environ["PROVIDER_CONNECT_TIMEOUT_S"]),
        read_s=float(os.environ["PROVIDER_READ_TIMEOUT_S"]),
    )
