"""The rules that requests are checked by do bite."""

import json
from typing import Any

import pytest

from tests.harness.dynamodb_rules import RESERVED, broken

GOOD: dict[str, Any] = {
    "TableName": "t",
    "Key": {"id": {"S": "1"}},
    "ConditionExpression": "#owner = :me AND attribute_not_exists(expiration)",
    "UpdateExpression": "SET #status = :me, attempt = if_not_exists(attempt, :me) REMOVE outbox",
    "ExpressionAttributeNames": {"#owner": "owner", "#status": "status"},
    "ExpressionAttributeValues": {":me": {"S": "m"}},
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
CONDITION = "#owner = :me AND #status = :me AND attempt = :me"


def changed(**more: Any) -> bytes:
    return json.dumps({name: value for name, value in (GOOD | more).items() if value is not None}).encode()


def test_a_good_request_breaks_nothing() -> None:
    assert list(broken("UpdateItem", changed())) == []


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"ConditionExpression": CONDITION + " AND status = :me"}, "reserved words: ['status']"),
        ({"ConditionExpression": CONDITION + " AND data = :me"}, "reserved words: ['data']"),
        ({"ConditionExpression": CONDITION + " AND x = :you"}, "not defined: [':you']"),
        ({"ConditionExpression": CONDITION + " AND #x = :me"}, "not defined: ['#x']"),
        ({"ConditionExpression": "attempt = :me"}, "defined and not used: ['#owner']"),
        ({"UpdateExpression": "SET #status = :me, outbox = :me REMOVE outbox"}, "a path is changed twice"),
        ({"Key": {"id": {"S": ""}}}, "an empty key"),
        ({"ExpressionAttributeValues": {":me": {"S": "é" * 205_000}}}, "an item of more than 400 KB"),
        (
            {"ConditionExpression": None, "UpdateExpression": "SET #owner = :me, #status = :me"},
            "an old image is asked for without a condition",
        ),
    ],
)
def test_a_bad_request_is_named(more: dict[str, Any], fault: str) -> None:
    (found,) = broken("UpdateItem", changed(**more))

    assert found.startswith(fault)


def test_a_bad_transaction_is_named() -> None:
    entry = {"Update": GOOD}
    body = json.dumps({"ClientRequestToken": "x" * 37, "TransactItems": [entry, entry]}).encode()

    token, twice = broken("TransactWriteItems", body)

    assert token == "a token of 37 characters"
    assert twice.startswith("two writes to one item")


def test_the_list_of_reserved_words_is_there() -> None:
    assert {"STATUS", "OWNER", "DATA", "STATE", "ITEMS", "TOTAL"} <= RESERVED
    assert len(RESERVED) > 550
