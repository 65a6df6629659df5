"""Names, samples and API clients of the orders application. With ledger.py, an application of another domain
replaces this file.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from shared.idempotency import Image
from shared.orders.audit import OPERATIONS
from tools.progress import wait_until

ORDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
QUEUES = ("Orders", "Payments", "Emails")  # as the outputs spell them: OrdersQueueUrl, OrdersDlqUrl
PROVIDER = "payment_sandbox"  # a function that is not part of the pipeline
PROVIDER_URL = "PaymentSandboxUrl"  # the end of the output's name; a second pipeline puts a prefix before it
PAYMENT_FUNCTION = "PaymentFunctionName"
EMAIL_OPERATION = "email.send"

# Outputs that scripts of other people read. `make up` writes them to .local/outputs.json.
OUTPUTS = (
    "ApiUrl",
    "OrdersQueueUrl",
    "OrdersDlqUrl",
    "PaymentsQueueUrl",
    "PaymentsDlqUrl",
    "EmailsQueueUrl",
    "EmailsDlqUrl",
    "IdempotencyTableName",
    "OrdersTableName",
    "ReceiptsBucketName",
    PROVIDER_URL,
)

# The attributes of a row and of a log line that a trace shows: ids, times, states. No customer, no items, no free text.
ROW_FIELDS = (
    "order_id", "state", "total", "currency", "payment_method", "intent_id", "charge_id", "settling", "decline_reason",
    "mail", "mail_id", "correlation_id", "sweeps",
)  # fmt: skip
LOG_FIELDS = (
    "operation", "attempt", "uncertain", "receive_count", "reason", "detail", "error", "code", "call", "intent",
    "status", "event_id", "state", "sweeps", "message_id",
)  # fmt: skip

API_TIMEOUT_S = 30  # an HTTP API waits so long for its function
API_DEADLINE_S = 30.0
RETRY_STATUSES = (409, 429, 502, 503, 504)  # the client repeats the request with the same key


def record_key(operation: str, order_id: str) -> str:
    """Return the key of an order's idempotency record."""
    return f"{operation}#{order_id}"


def parse_record_key(key: str) -> tuple[str, str] | None:
    """Return operation and order id of a record's key, or None if the key has another form."""
    operation, _, order_id = key.partition("#")
    return (operation, order_id) if operation in OPERATIONS and order_id else None


def receipt_key(order_id: str) -> str:
    """Return the key of an order's receipt in its bucket."""
    return f"receipts/{order_id}.html"


MAILED = ", mailed"


def describe_state(row: Image | None) -> str:
    """Return the state of an order row. An order is final when its customer got an email: `paid, mailed`."""
    state = (row or {}).get("state", {}).get("S", "missing")
    return f"{state}{MAILED}" if row and "mailed_at" in row else state


def an_order(
    email: str, payment_method: str = "pm_card_visa", unit_price: int = 1250, quantity: int = 2, currency: str = "EUR"
) -> dict[str, Any]:
    """Return a valid order with one line and without an id. `unit_price` is in minor units."""
    return {
        "customer": {"name": "A. Buyer", "email": email},
        "currency": currency,
        "items": [{"sku": "A-1", "quantity": quantity, "unit_price": unit_price}],
        "payment_method": payment_method,
    }


def sample_email(name: str) -> str:
    """Return an address of SES's mailbox simulator, which accepts email while the account is in SES's sandbox.

    https://docs.aws.amazon.com/ses/latest/dg/send-an-email-from-console.html
    """
    return f"success+{name}@simulator.amazonses.com"


def order_requested(order_id: str, order: Mapping[str, Any], correlation_id: str = "c-1") -> dict[str, Any]:
    """Return the event that requests `order`, as a partner puts it on the orders queue."""
    return {
        "specversion": "1.0",
        "id": f"{order_id}/order.requested",
        "source": "partner.example",
        "type": "order.requested",
        "time": "2026-01-01T00:00:00Z",
        "subject": order_id,
        "datacontenttype": "application/json",
        "correlationid": correlation_id,
        "data": {"order_id": order_id, **order},
    }


@dataclass(frozen=True)
class Response:
    """An answer of the API. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def replayed(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"


class NotAccepted(Exception):
    """The API refused an order. The text has its answer."""


class ApiClient:
    """A client of the orders API, with the credentials of an IAM identity."""

    def __init__(self, url: str, credentials: Credentials, region: str) -> None:
        self._url = url
        self._credentials = credentials
        self._region = region
        self._http = URLLib3Session(timeout=API_TIMEOUT_S, max_pool_connections=32)

    def place(self, order: Mapping[str, Any], key: str | None) -> Response:
        """Send POST /orders once. `order` has no id. Without `key`, the request has no Idempotency-Key header."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.send("POST", "/orders", headers, json.dumps(order))

    def place_until_accepted(self, order: Mapping[str, Any], key: str) -> Response:
        """Send POST /orders until the API accepts the order. Raises NotAccepted, and TimeoutError after 30 s."""

        def attempt() -> Response | None:
            answer = self.place(order, key)
            if answer.status in RETRY_STATUSES:
                return None
            if answer.status != 202:
                raise NotAccepted(f"The API answered {answer.status}: {answer.body}")
            return answer

        return wait_until(attempt, deadline_s=API_DEADLINE_S, what="the API to accept an order", every_s=0.5)

    def look(self, order_id: str) -> Response:
        """Send GET /orders/{id}."""
        return self.send("GET", f"/orders/{order_id}", {}, "")

    def send(self, method: str, path: str, headers: Mapping[str, str], body: str) -> Response:
        """Send a signed request (Signature Version 4, service execute-api)."""
        request = AWSRequest(method, self._url + path, headers=dict(headers), data=body)
        SigV4Auth(self._credentials, "execute-api", self._region).add_auth(request)
        answer = self._http.send(request.prepare())
        kind = answer.headers.get("content-type", "")
        text = answer.content.decode()
        return Response(
            answer.status_code,
            {name.lower(): value for name, value in answer.headers.items()},
            json.loads(text) if "json" in kind and text else text,
        )


class OrdersQueue:
    """The orders queue, as a partner or a backfill uses it."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs = sqs
        self._url = url

    def put(self, event: Mapping[str, Any]) -> str:
        """Send an event. Returns its message id."""
        sent = self._sqs.send_message(QueueUrl=self._url, MessageBody=json.dumps(event))
        return str(sent["MessageId"])


class Target(Protocol):
    """A deployed application: a stage of an account, or the one on the laptop."""

    @property
    def outputs(self) -> Mapping[str, str]: ...

    @property
    def session(self) -> Any: ...

    def client(self, service: str) -> Any: ...


def api_client(target: Target) -> ApiClient:
    """Return a client of the target's API with the target's credentials."""
    session = target.session
    return ApiClient(target.outputs["ApiUrl"], session.get_credentials(), session.region_name)


def orders_queue(target: Target) -> OrdersQueue:
    """Return the target's orders queue."""
    return OrdersQueue(target.client("sqs"), target.outputs["OrdersQueueUrl"])
