"""Orders as clients send them: signed, over the HTTP API, or as a CloudEvent straight on the orders queue."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from tools.local.ministack import REGION
from tools.local.running import Running

TIMEOUT_S = 30  # after that an HTTP API answers for its function


@dataclass(frozen=True)
class Response:
    """What the API answered. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def replayed(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"


class ApiClient:
    """A client of the orders API as some IAM identity."""

    def __init__(self, url: str, credentials: Credentials, region: str) -> None:
        self._url = url
        self._credentials = credentials
        self._region = region
        self._http = URLLib3Session(timeout=TIMEOUT_S, max_pool_connections=32)

    def place(self, order: Mapping[str, Any], key: str | None) -> Response:
        """POST /orders. `order` is the event's data without `order_id`; no `key`, no Idempotency-Key header."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.send("POST", "/orders", headers, json.dumps(order))

    def look(self, order_id: str) -> Response:
        """GET /orders/{id}."""
        return self.send("GET", f"/orders/{order_id}", {}, "")

    def send(self, method: str, path: str, headers: Mapping[str, str], body: str) -> Response:
        """Send any request, signed (Signature Version 4, service execute-api)."""
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


def local_api(running: Running) -> ApiClient:
    """A client of the local AWS, which takes any credentials."""
    return ApiClient(running.outputs["ApiUrl"], Credentials("test", "test"), REGION)


class OrdersQueue:
    """The way of a partner or a backfill: straight onto the queue."""

    def __init__(self, sqs: Any, url: str) -> None:
        self._sqs = sqs
        self._url = url

    def put(self, event: Mapping[str, Any]) -> str:
        """Send an event. Answers its message id."""
        sent = self._sqs.send_message(QueueUrl=self._url, MessageBody=json.dumps(event))
        return str(sent["MessageId"])


def local_queue(running: Running) -> OrdersQueue:
    """The orders queue of the local AWS."""
    return OrdersQueue(running.client("sqs"), running.outputs["OrdersQueueUrl"])


def order_requested(order_id: str, order: Mapping[str, Any], correlation_id: str = "c-1") -> dict[str, Any]:
    """The event that puts `order` on the queue."""
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


def an_order(
    email: str, payment_method: str = "pm_card_visa", unit_price: int = 1250, quantity: int = 2, currency: str = "EUR"
) -> dict[str, Any]:
    """A valid order of one line, without an id; `unit_price` in minor units."""
    return {
        "customer": {"name": "A. Buyer", "email": email},
        "currency": currency,
        "items": [{"sku": "A-1", "quantity": quantity, "unit_price": unit_price}],
        "payment_method": payment_method,
    }
