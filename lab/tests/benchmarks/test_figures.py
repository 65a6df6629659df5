"""Figures, and what is written of them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.benchmarks import imports
from lab.benchmarks.counted import Counted
from lab.benchmarks.figure import Verdict, WrongEffect
from lab.benchmarks.measuring import Samples, interleaved
from lab.benchmarks.perf_page import BEGIN, END, fill

ROOT = Path(__file__).resolve().parents[3]


def test_a_quick_run_measures_and_writes_what_it_found(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab/benchmarks", "--quick", "--only", "own,batch", "--out", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    assert set(found) == {"own", "batch"}
    assert all(figure["quick"] and figure["rows"] and figure["verdicts"] for figure in found.values())
    assert all(figure["machine"]["boto3"] for figure in found.values())
    html = (tmp_path / "results.html").read_text()
    assert "Powertools" in html
    assert "http" not in html, "the page asks for nothing from outside"


def test_a_figure_whose_work_was_wrong_is_no_figure() -> None:
    planted = (
        "import sys; from lab/benchmarks import __main__ as main, environment; environment.enter()\n"
        "from lab/benchmarks import own; own.Client.transact_write_items = lambda self, **_: {}\n"
        "own.measure(True)"
    )

    done = subprocess.run([sys.executable, "-c", planted], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "WrongEffect: 0 requests, not 50" in done.stderr


def test_a_handler_that_makes_a_client_it_does_not_need_is_noticed() -> None:
    imports._check_clients("order", ("dynamodb",))

    with pytest.raises(WrongEffect, match="makes clients"):
        imports._check_clients("order", ("sqs",))


@pytest.mark.parametrize(
    ("value", "at_most", "met"), [(1.1, True, True), (1.11, True, False), (1.1, False, True), (1.09, False, False)]
)
def test_a_goal_is_met_at_its_own_value_and_missed_beyond_it(value: float, at_most: bool, met: bool) -> None:
    assert Verdict("it", value, 1.1, at_most).met is met


def test_a_ratio_is_of_the_rounds_and_not_of_the_medians() -> None:
    samples = Samples({"ours": [10.0, 40.0, 22.0], "theirs": [10.0, 20.0, 20.0]})

    assert samples.ratio("ours", "theirs") == pytest.approx(1.1)


def test_subjects_take_turns_and_the_first_round_does_not_count() -> None:
    turns: list[str] = []

    def turn(name: str) -> float:
        turns.append(name)
        return float(len(turns))

    samples = interleaved({"a": lambda: turn("a"), "b": lambda: turn("b")}, 2)

    assert turns == ["b", "a", "a", "b", "b", "a"]
    assert samples.by_subject == {"a": [3.0, 6.0], "b": [4.0, 5.0]}


def test_requests_to_other_tables_are_not_counted() -> None:
    counted = Counted()
    model: Any = type("Model", (), {"name": "PutItem"})
    for table in ("ledger", "orders"):
        context: dict[str, Any] = {}
        counted._ask({"TableName": table}, model, context)
        counted._note({"ConsumedCapacity": {"CapacityUnits": 2.0}}, context)

    assert counted.row() == {"requests": 1, "write units": 2.0, "read units": 0.0, "refused": 0, "which": "1 PutItem"}


def _results(quick: bool) -> dict[str, Any]:
    return {
        "own": {
            "title": "Own",
            "quick": quick,
            "rows": [{"": "ours", "µs": 12.5}],
            "verdicts": [{"what": "ours", "value": 12.5, "goal": 15.0, "at_most": True, "met": True}],
            "notes": ["A note."],
            "machine": {"cores": "2"},
        }
    }


def test_the_page_gets_its_numbers_between_the_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    fill(_results(quick=False), page)

    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}")
    assert text.endswith(f"{END}\nafter\n")
    assert "| ours | 12.5 |" in text
    assert "| ours | ≤ 15 | 12.5 | met |" in text
    assert "old" not in text


def test_a_quick_run_never_gets_into_the_page(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"{BEGIN}\nold\n{END}\n")

    with pytest.raises(ValueError, match="quick"):
        fill(_results(quick=True), page)
    assert "old" in page.read_text()


def test_the_marks_are_in_the_page() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()

    assert text.index(BEGIN) < text.index(END)
