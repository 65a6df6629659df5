"""The runbook's tables name what the code knows, no more and no less."""

import inspect
import re
from pathlib import Path

import botocore.session
from botocore import xform_name
from botocore.model import ServiceModel

from functions.email import ses
from functions.payment.errors import REFUSALS, End
from shared.idempotency import outbox
from shared.idempotency.store import Store
from shared.orders.audit import KINDS, NOTES
from shared.orders.repository import Orders
from tests.harness import runbook
from tools.account import current_account

ROOT = Path(__file__).parents[3]
SERVICES = ("cloudformation", "dynamodb", "lambda", "logs", "s3", "secretsmanager", "sqs", "sts")
# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
ACTIONS = {
    "dynamodb:TransactGetItems": "dynamodb:GetItem",
    "s3:HeadObject": "s3:GetObject",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}
# Without the first S3 answers 403 where there is no such object; the others are used by DynamoDB as it fills a copy.
UNSAID = {"s3:ListBucket", "dynamodb:BatchWriteItem", "dynamodb:Query"}


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in runbook.sections()[heading].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def reasons_in_the_code() -> set[str]:
    """All for which something is parked."""
    patterns = {
        "functions/payment/provider.py": r'Permanent\("(\w+)"',
        "functions/payment/errors.py": r'Permanent\("(\w+)"|WRONG_MODE = "(\w+)"',
        "functions/email/ses.py": r'Permanent\("(\w+)"',
        "functions/relay/handler.py": r'failed\[.+\] = "(\w+)"',
        "shared/idempotency/errors.py": r'super\(\).__init__\("(\w+)"',
        "shared/idempotency/events.py": r'Permanent\("(\w+)"(?: if \w+ else "(\w+)")?',
        "shared/idempotency/sqs.py": r'Permanent\("(\w+)"',
        "shared/orders/writes.py": r'Permanent\("(\w+)"',
    }
    found = {
        reason
        for path, pattern in patterns.items()
        for match in re.finditer(pattern, (ROOT / path).read_text())
        for reason in match.groups()
        if reason
    }
    parked = {refusal.reason for refusal in REFUSALS if refusal.end is End.PARKED}
    return found | parked | set(ses._REFUSED.values())


def test_every_reason_for_which_something_is_parked_is_explained() -> None:
    table = {name for reason, *_ in rows("A message is in a DLQ") for name in names(reason)}
    assert table == {"none"} | reasons_in_the_code()


def test_every_kind_of_finding_is_explained() -> None:
    table = {names(kind)[0]: what for kind, _, what in rows("What the audit says")}
    assert table.keys() == KINDS.keys()
    assert {kind for kind, what in table.items() if what == "a note"} == NOTES


def client(service: str) -> ServiceModel:
    """What the SDK knows of a service."""
    return botocore.session.get_session().get_service_model(service)


def actions_of_the_commands() -> set[str]:
    """The IAM actions behind the requests that the commands' source makes."""
    tools = ROOT / "tools"
    files = [
        *tools.glob("operate/*.py"),
        *(tools / f"{name}.py" for name in ("deployed", "queues", "tables")),
    ]
    source = "\n".join(
        [
            *(file.read_text() for file in files),
            *(
                inspect.getsource(each)
                for each in (current_account, outbox, Orders.get, Orders.mark_settling, Store.claim)
            ),
        ]
    )
    called = set(re.findall(r'\.(?:get_paginator\(")?(\w+)["(]', source))
    made = {f"{name}:{op}" for name in SERVICES for op in client(name).operation_names if xform_name(op) in called}
    return {ACTIONS.get(action, action) for action in made}


def requests_by_hand() -> dict[str, set[str]]:
    """The AWS CLI's commands for an account: DynamoDB's operation, and the parameters that it is given."""
    operations = {xform_name(op, "-"): op for op in client("dynamodb").operation_names}
    waiters = botocore.session.get_session().get_waiter_model("dynamodb")
    of_waiters = {xform_name(name, "-"): waiters.get_waiter(name).operation for name in waiters.waiter_names}
    found = {}
    for line in runbook.commands(runbook.TEXT, runbook.FOR_AN_ACCOUNT):
        aws, service, *words = line.split()
        assert (aws, service) == ("aws", "dynamodb")
        operation = of_waiters[words[1]] if words[0] == "wait" else operations[words[0]]
        found[operation] = {word.removeprefix("--") for word in words if word.startswith("--")}
    return found


def test_an_operators_rights_are_what_the_commands_ask_for_and_no_others() -> None:
    table = {name for _, actions in rows("Rights") for name in names(actions) if ":" in name}
    by_hand = {f"dynamodb:{operation}" for operation in requests_by_hand()}
    assert table == actions_of_the_commands() | by_hand | UNSAID


def test_commands_for_an_account_give_dynamodb_the_parameters_that_it_has_and_needs() -> None:
    for operation, given in requests_by_hand().items():
        shape = client("dynamodb").operation_model(operation).input_shape
        assert shape is not None
        assert {xform_name(name, "-") for name in shape.required_members} <= given, operation
        assert given <= {xform_name(name, "-") for name in shape.members}, operation
