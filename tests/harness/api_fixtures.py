"""The API as a client meets it: HTTP in, HTTP out, by the event that API Gateway makes of a request."""

import base64
import copy
import io
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from functions.api.handler import handler
from shared.idempotency import logger
from tests.harness.moto_world import World

SAMPLE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "events" / "api.json").read_text())
ORDER: dict[str, Any] = json.loads(SAMPLE["body"])
KEY = "8e03978e-40d5-43e8-bc93-6894a57f9324"


def role(session: str, unique_id: str = "AROAEXAMPLEROLEID", account: str = "111122223333") -> dict[str, Any]:
    """`authorizer.iam` for a session of a role."""
    return {"accountId": account, "userId": f"{unique_id}:{session}", "cognitoIdentity": None}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def problem(self) -> str:
        """The problem's name; asserts that it is one, whole, by RFC 9457."""
        assert self.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "status", "detail"} <= self.json.keys() <= {*self.json.keys(), "errors"}
        assert self.json["status"] == self.status
        return str(self.json["type"].rpartition(":")[2])

    @property
    def errors(self) -> dict[str, str]:
        return {error["field"]: error["rule"] for error in self.json["errors"]}


@dataclass(frozen=True)
class Api:
    world: World
    log: io.StringIO

    def post(self, body: Any = ORDER, key: str | None = KEY, **more: Any) -> Answer:
        """POST /orders. `body`: text and bytes go as they are, anything else as JSON."""
        headers = {"content-type": "application/json", **({} if key is None else {"idempotency-key": key})}
        text = body if isinstance(body, str | bytes) else json.dumps(body)
        return self.send("POST", "/orders", text, **{"headers": headers | more.pop("headers", {}), **more})

    def get(self, order_id: str, **more: Any) -> Answer:
        return self.send("GET", f"/orders/{order_id}", **more)

    def send_to(self, prefix: str, method: str, path: str, body: str = "", **more: Any) -> Answer:
        """Send through a custom domain with a mapping key. https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-mappings.html"""
        return self.send(method, prefix + path, body, route=_route_of(method, path), **more)

    def send(
        self,
        method: str,
        path: str,
        body: str | bytes = "",
        *,
        headers: dict[str, str] | None = None,
        iam: dict[str, Any] | None = SAMPLE["requestContext"]["authorizer"]["iam"],
        seconds: float = 29,
        route: tuple[str, dict[str, str]] | None = None,
    ) -> Answer:
        event = copy.deepcopy(SAMPLE)
        event |= {"rawPath": path, "headers": headers or {}, "isBase64Encoded": isinstance(body, bytes)}
        event["routeKey"], event["pathParameters"] = route or _route_of(method, path)
        event["body"] = base64.b64encode(body).decode() if isinstance(body, bytes) else body
        event["requestContext"]["http"] |= {"method": method, "path": path}
        event["requestContext"]["authorizer"] = None if iam is None else {"iam": iam}
        answer = handler(event, self.world.context(seconds))
        return Answer(
            answer["statusCode"], {name.lower(): value for name, value in answer["headers"].items()}, answer["body"]
        )

    @property
    def orders(self) -> list[dict[str, Any]]:
        """The rows there are."""
        found: list[dict[str, Any]] = self.world.dynamodb.scan(TableName="orders")["Items"]
        return found

    @property
    def records(self) -> list[dict[str, Any]]:
        """The idempotency records there are."""
        found: list[dict[str, Any]] = self.world.dynamodb.scan(TableName="idempotency")["Items"]
        return found

    @property
    def stored(self) -> bool:
        return bool(self.orders or self.records)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What was logged."""
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


def _route_of(method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return route and path parameters as API Gateway matches them, for any method."""
    if found := re.fullmatch(r"/orders/([^/]*)", path):
        return f"{method} /orders/{{id}}", {"id": found[1]}
    return f"{method} {path}", {}


@pytest.fixture
def api(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setenv("RESERVE_S", "0.25")
    log = io.StringIO()
    out = logger.registered_handler
    assert isinstance(out, logging.StreamHandler)
    before = out.setStream(log)
    yield Api(world, log)
    out.setStream(before)


def counts(printed: str) -> dict[str, int]:
    """The metrics in EMF lines, all of the API's one operation."""
    found: dict[str, int] = {}
    for line in printed.splitlines():
        emf = json.loads(line)
        if "_aws" in emf:
            assert emf["operation"] == "order.request"
            for metric in emf["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
                found[metric["Name"]] = found.get(metric["Name"], 0) + int(emf[metric["Name"]][0])
    return found
