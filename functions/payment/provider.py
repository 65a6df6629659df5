"""The payment provider, called with Stripe's own SDK.

Each call returns the intent as it is now, also if Stripe answers with an error that contains the intent: a declined
card, or a state that forbids the call. Everything else is raised as an error of the engine (errors.py), and so is an
answer that does not fit the order.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import stripe
from botocore.exceptions import BotoCoreError, ClientError

from functions.payment.errors import (
    KEY_PATIENCE_S,
    WRONG_MODE,
    StoredFailure,
    UnknownIntent,
    mismatch,
    refusal_of,
    to_step_error,
)
from functions.payment.intent import Intent, intent_in_error, parse_intent
from shared.idempotency import (
    Attempt,
    NotDone,
    Permanent,
    StepError,
    as_not_done,
    client,
    epoch_ms,
    logger,
    request_s,
    runtime,
)
from shared.orders import KeyUnusable, Order, parse_api_key

INTENT_PATIENCE_S = 60  # a new intent can be read long before
KEY_AGE_S = 300  # an older API key is fetched again before the next call
KEY_PAUSE_S = 60  # the least time between two fetches of one worker

stripe.enable_telemetry = False
logging.getLogger("stripe").setLevel(logging.WARNING)  # below this level the SDK logs what it sends and receives

Send = Callable[[stripe.StripeClient], stripe.PaymentIntent]


@dataclass(frozen=True, slots=True)
class Call:
    """One call about one order. `intent_id`: the intent that the call names; None for create.

    `charges`: the call charges somebody. `then_s`: the seconds that the step needs after the call.
    """

    what: str
    order: Order
    attempt: Attempt
    send: Send
    intent_id: str | None = None
    charges: bool = False
    then_s: float = 0

    def seconds_since(self, at: str | None) -> float:
        """Return the seconds since a time of the order's row (RFC 3339)."""
        return self.attempt.now_ms / 1000 - datetime.fromisoformat(at or "1970-01-01T00:00:00Z").timestamp()


@dataclass(frozen=True, slots=True)
class Connection:
    """The SDK's client with the API key of one fetch, or the reason why there is none."""

    fetched_ms: int
    key: str = ""
    api: stripe.StripeClient | None = None
    problem: str = ""


class Provider:
    """Payment intents. Safe to share between threads: each thread has its own connection.

    A call raises NotDone instead of starting if it could not end before the step's deadline, or if the calls that may
    follow could not.

    The API key is fetched again if it is older than KEY_AGE_S, and if an answer may come from a wrong key: so a
    corrected key is used within minutes.
    """

    def __init__(self, url: str, secret_arn: str, connect_s: float, read_s: float, *, livemode: bool) -> None:
        """`connect_s` and `read_s`: timeouts of one request, in seconds. `livemode`: this stage moves real money."""
        self._url = url
        self._secret_arn = secret_arn
        self._timeout = (connect_s, read_s)
        self._livemode = livemode
        self._connection: Connection | None = None

    def create(self, order: Order, attempt: Attempt) -> Intent:
        """Create an unconfirmed intent for the order. For about a day, repeated calls return the same intent.

        Raises NotDone, Declined or Permanent.
        """

        def create_with(key: str) -> Intent:
            def send(api: stripe.StripeClient) -> stripe.PaymentIntent:
                return api.v1.payment_intents.create(
                    {
                        "amount": order.total,
                        "currency": order.currency.lower(),
                        "payment_method": order.payment_method,
                        "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
                        "metadata": {"order_id": order.order_id},
                    },
                    {"idempotency_key": key},
                )

            return self._ask(Call("create", order, attempt, send, then_s=request_s()))  # its id is saved on the row

        try:
            return create_with(order.order_id)
        except StoredFailure:
            # The provider returns its stored failure under this key for a day. A second intent charges no card.
            return create_with(f"{order.order_id}/{attempt.number}")

    def retrieve(self, order: Order, intent_id: str, attempt: Attempt) -> Intent:
        """Return the order's intent as it is now. Raises NotDone or Permanent."""
        return self._ask(
            Call(
                "retrieve",
                order,
                attempt,
                lambda api: api.v1.payment_intents.retrieve(intent_id),
                intent_id,
                then_s=request_s(),  # the id of a new intent is saved on the row, or the row is read again
            )
        )

    def confirm(self, order: Order, intent: Intent, attempt: Attempt) -> Intent:
        """Charge the card and return the intent afterwards. Raises NotDone, Unknown, Declined or Permanent.

        The call names no payment method. A declined intent has lost its method, so confirming it again charges nothing.
        """

        def send(api: stripe.StripeClient) -> stripe.PaymentIntent:
            return api.v1.payment_intents.confirm(
                intent.id,
                {"error_on_requires_action": True},  # the customer is not present to act
                # Each attempt has its own key: under a used key the provider returns a stored 5xx for a day. The
                # intent's own state prevents a second charge.
                {"idempotency_key": f"{intent.id}/confirm/{attempt.number}"},
            )

        # The same attempt cancels a declined intent.
        return self._ask(Call("confirm", order, attempt, send, intent.id, charges=True, then_s=sum(self._timeout)))

    def cancel(self, order: Order, intent: Intent, attempt: Attempt) -> Intent:
        """Cancel an unpaid intent. An intent that was paid in the meantime stays paid.

        Raises NotDone, Unknown or Permanent.
        """
        found = self._ask(
            Call("cancel", order, attempt, lambda api: api.v1.payment_intents.cancel(intent.id), intent.id)
        )
        return replace(found, reason=intent.reason)

    def _ask(self, call: Call) -> Intent:
        """Make a call and check its answer. If a wrong API key may be the cause and there is a new one, ask once more.

        Raises Permanent if the provider still does not know the intent on the order row after INTENT_PATIENCE_S. The
        intent stays on the row, because a second intent could be a second charge.
        """
        connection = self._connected()
        try:
            return self._once(call, connection)
        except _Refused as refused:
            if not (refused.another_key and self._has_new_key(connection)):
                raise refused.error from refused
        try:
            return self._once(call, self._connected())
        except _Refused as refused:
            raise refused.error from refused

    def _once(self, call: Call, connection: Connection) -> Intent:
        """Send the call. Raises _Refused with the error of the engine."""
        order = call.order
        if connection.api is None:
            text = f"{call.what}: {connection.problem}"
            late = call.seconds_since(order.placed_at) >= KEY_PATIENCE_S
            raise _Refused(Permanent("api_key_unusable", text) if late else NotDone(text), another_key=True)
        call.attempt.require(sum(self._timeout) + call.then_s)
        try:
            answer = call.send(connection.api)
        except stripe.StripeError as error:
            intent, request_id = intent_in_error(error), error.request_id
            if intent is None:
                raise self._refused(call, error) from error
        else:
            intent = parse_intent(answer)
            request_id = answer.last_response.request_id if answer.last_response else None
        logger.info("provider", call=call.what, intent=intent.id, status=intent.status, request_id=request_id)
        if wrong := mismatch(call.what, intent, order, call.intent_id, self._livemode):
            raise _Refused(wrong, another_key=isinstance(wrong, Permanent) and wrong.reason == WRONG_MODE)
        return intent

    def _refused(self, call: Call, error: stripe.StripeError) -> "_Refused":
        order = call.order
        waited_s = call.seconds_since(order.placed_at)
        step_error = to_step_error(call.what, error, charges=call.charges, waited_s=waited_s)
        if isinstance(step_error, UnknownIntent):
            # An intent that is not on the row that was read is new, however old the order is.
            known_s = call.seconds_since(order.intent_at or order.placed_at) if order.intent_id else 0
            if known_s >= INTENT_PATIENCE_S:
                return _Refused(Permanent("intent_missing", str(step_error)), another_key=True)
            return _Refused(NotDone(str(step_error)), another_key=True)
        refusal = refusal_of(error)
        return _Refused(step_error, another_key=refusal is not None and refusal.another_key)

    def _connected(self) -> Connection:
        """Return the connection with a key of at most KEY_AGE_S. Raises NotDone if no key was ever read."""
        found = self._connection
        if found is None:
            with as_not_done("fetch the API key"):
                found = self._fetch()
        elif epoch_ms() - found.fetched_ms >= (KEY_AGE_S if found.api else KEY_PAUSE_S) * 1000:
            found = self._fetch_or_keep(found)
        return found

    def _has_new_key(self, used: Connection) -> bool:
        """Return whether there is another key than the one that was used. Fetches it at most every KEY_PAUSE_S."""
        found = self._connection or used
        if found is used and epoch_ms() - used.fetched_ms >= KEY_PAUSE_S * 1000:
            found = self._fetch_or_keep(used)
        return found.key != used.key

    def _fetch_or_keep(self, old: Connection) -> Connection:
        """Fetch the key again. If Secrets Manager fails, the old key stays in use until the next fetch is due."""
        try:
            return self._fetch()
        except (ClientError, BotoCoreError) as error:
            logger.warning("the API key was not fetched again", error=type(error).__name__)
            self._connection = replace(old, fetched_ms=epoch_ms())
            return self._connection

    def _fetch(self) -> Connection:
        now_ms = epoch_ms()
        secret = client("secretsmanager").get_secret_value(SecretId=self._secret_arn)
        try:
            key = parse_api_key(secret)
        except KeyUnusable as unusable:
            self._connection = Connection(now_ms, problem=str(unusable))
            return self._connection
        old = self._connection
        if old is not None and old.api is not None and old.key == key:
            self._connection = replace(old, fetched_ms=now_ms)
            return self._connection
        api = stripe.StripeClient(
            key,
            base_addresses={"api": self._url},
            http_client=stripe.RequestsClient(timeout=self._timeout),
            max_network_retries=0,  # the SDK knows no deadline, and the message is redelivered
        )
        self._connection = Connection(now_ms, key, api)
        return self._connection


class _Refused(Exception):
    """The call gave no intent that can be used. `error`: what the step raises. `another_key`: the key may be wrong."""

    def __init__(self, error: StepError, *, another_key: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.another_key = another_key


def provider() -> Provider:
    """Return the process's provider. Raises KeyError naming a variable that is not set."""
    return runtime.current().single(provider, _from_environment)


def _from_environment() -> Provider:
    return Provider(
        url=os.environ["PROVIDER_URL"],
        secret_arn=os.environ["PROVIDER_SECRET_ARN"],
        connect_s=float(os.environ["PROVIDER_CONNECT_TIMEOUT_S"]),
        read_s=float(os.environ["PROVIDER_READ_TIMEOUT_S"]),
        livemode=os.environ["PROVIDER_LIVEMODE"] == "true",
    )
