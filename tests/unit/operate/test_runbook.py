"""The runbook's tables name what the code knows, no more and no less."""

import inspect
import re
from pathlib import Path

import botocore.session
from botocore import xform_name

from functions.email import ses
from shared.idempotency import sending
from shared.orders.repository import Orders
from tests.e2e import book
from tests.unit.operate.conftest import QUEUES
from tools.operate.judging import KINDS, NOTES

ROOT = Path(__file__).parents[3]
SERVICES = ("cloudformation", "dynamodb", "lambda", "logs", "s3", "secretsmanager", "sqs", "sts")
# https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
ACTIONS = {
    "dynamodb:TransactGetItems": "dynamodb:GetItem",
    "s3:HeadObject": "s3:GetObject",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
    "sqs:SendMessageBatch": "sqs:SendMessage",
}
# Without it S3 answers 403 where there is no such object.
UNSAID = {"s3:ListBucket"}


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in book.sections()[heading].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def reasons_in_the_code() -> set[str]:
    """All for which something is parked."""
    patterns = {
        "functions/payment/handler.py": r'Permanent\("(\w+)"',
        "functions/payment/troubles.py": r'return "(\w+)"|case "(\w+)" \| "(\w+)", _',
        "functions/email/ses.py": r'Permanent\("(\w+)"',
        "functions/relay/handler.py": r'failed\[.+\] = "(\w+)"',
        "shared/idempotency/errors.py": r'super\(\).__init__\("(\w+)"',
        "shared/idempotency/events.py": r'Permanent\("(\w+)"',
        "shared/idempotency/batch.py": r'Permanent\("(\w+)"',
        "shared/orders/writes.py": r'Permanent\("(\w+)"',
    }
    found = {
        reason
        for path, pattern in patterns.items()
        for match in re.finditer(pattern, (ROOT / path).read_text())
        for reason in match.groups()
        if reason
    }
    return found | set(ses._REFUSED.values())


def test_every_reason_for_which_something_is_parked_is_explained() -> None:
    table = {name for reason, *_ in rows("A message is in a DLQ") for name in names(reason)}
    assert table == {"none"} | reasons_in_the_code()


def test_every_kind_of_finding_is_explained_in_the_audits_own_words() -> None:
    table = {names(kind)[0]: (meaning, what) for kind, meaning, what in rows("What the audit says")}
    assert {kind: meaning for kind, (meaning, _) in table.items()} == KINDS
    assert {kind for kind, (_, what) in table.items() if what == "a note"} == NOTES


def test_every_link_leads_to_a_section() -> None:
    anchors = {heading.lower().replace(" ", "-") for heading in book.sections()}
    assert set(re.findall(r"\(#([^)]+)\)", book.TEXT)) <= anchors


def test_every_section_with_commands_says_what_to_do_in_this_order() -> None:
    wanted = ["Inspect", "Diagnose", "Repair", "Redrive", "Verify"]
    for heading, text in book.sections().items():
        if book.commands(text):
            steps = [word for word in re.findall(r"^\*\*(\w+)", text, re.MULTILINE) if word in wanted]
            assert steps == wanted, heading


def test_queues_in_commands_are_queues() -> None:
    named = set(re.findall(r"QUEUE=(\w+)", "\n".join(book.commands(book.TEXT))))
    assert named <= {*QUEUES, "relay"}


def actions_of_the_commands() -> set[str]:
    """The IAM actions behind the requests that the commands' source makes."""
    tools = ROOT / "tools"
    files = [*tools.glob("operate/*.py"), tools / "account.py", tools / "deployed.py"]
    theirs = [inspect.getsource(sending), inspect.getsource(Orders.get)]
    source = "\n".join([*(file.read_text() for file in files), *theirs])
    called = set(re.findall(r'\.(?:get_paginator\(")?(\w+)["(]', source))
    clients = {name: botocore.session.get_session().get_service_model(name) for name in SERVICES}
    made = {f"{name}:{op}" for name, of in clients.items() for op in of.operation_names if xform_name(op) in called}
    return {ACTIONS.get(action, action) for action in made}


def test_an_operators_rights_are_what_the_commands_ask_for_and_no_others() -> None:
    table = {name for _, actions in rows("Rights") for name in names(actions) if ":" in name}
    assert table == actions_of_the_commands() | UNSAID | {"dynamodb:RestoreTableToPointInTime"}
