"""The runbook's tables name what the code knows, no more and no less."""

import re
from pathlib import Path

from functions.email import ses
from tests.e2e import book
from tests.unit.operate.conftest import QUEUES
from tools.operate.judging import KINDS, NOTES

ROOT = Path(__file__).parents[3]


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
