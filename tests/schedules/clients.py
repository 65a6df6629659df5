"""boto3 clients whose network is the explorer. They are light or real.

A light client reads the parameters and returns the answer without botocore's work of serialising, signing and parsing.
It sends the same bytes and returns or raises the same as a real client: test_clients.py compares them. Only clients
that never retry by themselves are light, as runtime.make_client makes them.
"""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary, WeakSet

from botocore.client import BaseClient
from moto.core.models import botocore_stubber

from tests.schedules.model import Answer, Call, read, response

REAL = BaseClient._make_api_call  # type: ignore[attr-defined]


class Clients:
    """Replaces the network of every boto3 client. `send` takes a request and returns the answer, or raises."""

    def __init__(self, send: Callable[[Call], Answer], new_token: Callable[[], str], *, light: bool) -> None:
        self._send = send
        self._new_token = new_token
        self._light = light
        self._connected: WeakSet[Any] = WeakSet()  # real clients
        self._services: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # of light clients

    def make_api_call(self, client: Any, operation: str, params: dict[str, Any]) -> Any:
        """In place of `BaseClient._make_api_call`. Raises what botocore raises."""
        params = self.with_token(operation, params)
        if self._light and client.meta.config.retries.get("total_max_attempts") == 1:
            call = self.call(client, operation, params)
            return parsed(client, operation, self._send(call))
        if client not in self._connected:
            self._connected.add(client)
            # botocore asks every handler of the event: where moto is imported, its own would answer as well.
            client.meta.events.unregister("before-send", botocore_stubber)
            client.meta.events.register_first("before-send", self._before_send)
        return REAL(client, operation, params)

    def with_token(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Add a token to a transaction that has none, as botocore would, but one that repeats."""
        if operation == "TransactWriteItems" and "ClientRequestToken" not in params:
            return {**params, "ClientRequestToken": self._new_token()}
        return params

    def call(self, client: Any, operation: str, params: dict[str, Any]) -> Call:
        """Return the request that a real client sends."""
        model = client.meta.service_model
        if client not in self._services:
            self._services[client] = str(model.service_id.hyphenize())
        service, url = self._services[client], client.meta.endpoint_url
        if service == "s3":
            body = params["Body"]
            host = url.replace("//", f"//{params['Bucket']}.")
            return Call(service, operation, {}, body, f"{host}/{quote(params['Key'])}")
        raw = json.dumps(params).encode()
        path = model.operation_model(operation).http["requestUri"]
        return Call(service, operation, json.loads(raw), raw, url + path)

    def _before_send(self, event_name: str, request: Any, **_: Any) -> Any:
        """botocore's hook: in place of the network."""
        call = read(event_name, request)
        return response(call, self._send(call))


def parsed(client: Any, operation: str, answer: Answer) -> dict[str, Any]:
    """Return an answer as botocore parses it, or raise its ClientError."""
    metadata = {
        "HTTPStatusCode": answer.status,
        "HTTPHeaders": {name.lower(): value for name, value in answer.headers},
        "RetryAttempts": 0,
        "MaxAttemptsReached": True,  # one attempt
    }
    if answer.status == HTTPStatus.OK:
        return {**json.loads(answer.content or b"{}"), "ResponseMetadata": metadata}
    fields: dict[str, Any] = {}
    if answer.content.startswith(b"<"):  # S3's errors are XML
        error = {"Code": re.findall(r"<Code>(\w+)</Code>", answer.content.decode())[0]}
    else:
        body = json.loads(answer.content)
        error = {"Message": body.get("Message", ""), "Code": body["__type"].partition("#")[2]}
        shape = client.meta.service_model.shape_for_error_code(error["Code"])
        fields = {name: body[name] for name in (shape.members if shape else ()) if name in body}
    said = {"Error": error, "ResponseMetadata": metadata, **fields}
    raise client.exceptions.from_code(error["Code"])(said, operation)
