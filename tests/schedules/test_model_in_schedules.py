"""moto and the store model give the same answers to the requests of real schedules.

Two kinds of requests are left out. moto would apply a transaction again that is sent again under its token. And the
transactions of the ledger belong to the payment sandbox.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import boto3
import pytest
import requests
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.schedules.clients import REAL
from tests.schedules.dynamodb import Refused, Tables
from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import every_state
from tests.schedules.random_requests import TABLES
from tests.schedules.scenarios import SCENARIOS
from tests.schedules.test_model import CLIENT, create_tables

MODEL = Tables.call


class MotoTables:
    """moto, brought to the model's state whenever the search returns to another state."""

    def __init__(self) -> None:
        self.client: Any = boto3.client("dynamodb", **CLIENT)  # type: ignore[call-overload]
        self.sums: object = None  # of the model's tables after the last request
        self.asked = 0
        self.differences: list[str] = []

    def ask(self, operation: str, request: dict[str, Any]) -> object:
        """moto's answer, past the bench."""
        try:
            said = REAL(self.client, operation, request)
        except ClientError as error:
            response: dict[str, Any] = dict(error.response)
            reasons = [(reason.get("Code"), reason.get("Item")) for reason in response.get("CancellationReasons", [])]
            return response["Error"]["Code"], response.get("Item"), reasons
        return said.get("Item"), said.get("Attributes") or None

    def begin(self, tables: Tables) -> None:
        """Its tables as the model's are now."""
        for table, key in TABLES.items():
            for item in REAL(self.client, "Scan", {"TableName": table})["Items"]:
                REAL(self.client, "DeleteItem", {"TableName": table, "Key": {key: item[key]}})
            for item in tables.items[table].values():
                REAL(self.client, "PutItem", {"TableName": table, "Item": item})


@pytest.fixture
def moto_tables(
    environment: ExplorerEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MotoTables]:
    with mock_aws(), monkeypatch.context() as patch:
        # moto takes hold of requests as well, by which the provider is reached.
        patch.setattr(requests.adapters.HTTPAdapter, "send", environment.to_provider)
        it = MotoTables()
        with monkeypatch.context() as unseen:
            unseen.setattr(BaseClient, "_make_api_call", REAL)
            create_tables(it.client)

        def both(tables: Tables, operation: str, request: dict[str, Any]) -> dict[str, Any]:
            if tables.sums != it.sums:
                it.begin(tables)
            known = request.get("ClientRequestToken") in tables.tokens or request.get("TableName") == "ledger"
            refused = None
            try:
                answer = MODEL(tables, operation, request)
                ours: object = (answer.get("Item"), answer.get("Attributes") or None)
            except Refused as error:
                refused = error
                reasons = [(one.get("Code"), one.get("Item")) for one in error.body.get("CancellationReasons", [])]
                ours = (error.code, error.body.get("Item"), reasons)
            if not known and "ledger" not in str(request):
                it.asked += 1
                theirs = it.ask(operation, request)
                if ours != theirs:  # told at the end: production code would catch an error that is raised here
                    it.differences.append(f"{operation} {request}: {ours}, {theirs}")
            it.sums = dict(tables.sums)
            if refused:
                raise refused
            return answer

        patch.setattr(Tables, "call", both)
        yield it


@pytest.mark.parametrize("name", ["order", "order-batch", "api", "api-reused", "email", "payment"])
def test_moto_answers_what_is_asked_in_schedules_as_the_model_does(
    environment: ExplorerEnvironment, moto_tables: MotoTables, name: str
) -> None:
    schedules = 0
    for played in islice(every_state(environment, SCENARIOS[name], 1), 60):
        assert not played.broken
        schedules += 1

    assert not moto_tables.differences
    assert schedules > 50
    assert moto_tables.asked > schedules
