"""The journal tells who held which message and when, also of workers that died."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.faults.journal import Journal, journaled


def message(order: str, id: str, receive: int = 1) -> dict[str, Any]:
    body = json.dumps({"data": {"order_id": order}})
    return {"messageId": id, "body": body, "attributes": {"ApproximateReceiveCount": str(receive)}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def handled(path: Path, handler: Any, *messages: dict[str, Any]) -> Any:
    return journaled(handler, str(path), "naive", "payment")({"Records": [*messages]}, None)


def dies(*_: Any) -> Any:
    raise KeyboardInterrupt  # nothing catches it, as nothing catches SIGKILL


def test_each_message_is_noted_with_its_end_and_whether_it_failed(path: Path) -> None:
    answer = {"batchItemFailures": [{"itemIdentifier": "m-2"}]}
    assert handled(path, lambda *_: answer, message("ord_1", "m-1"), message("ord_2", "m-2", 3)) is answer
    one, two = Journal(path).read()
    assert (one.variant, one.function, one.order, one.receive, one.failed) == ("naive", "payment", "ord_1", 1, False)
    assert (two.order, two.message, two.receive, two.failed) == ("ord_2", "m-2", 3, True)
    assert one.ended_at_ms is not None
    assert one.ended_at_ms >= one.at_ms


def test_a_delivery_whose_worker_died_has_no_end_and_the_worker_is_at_work_on_it(path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        handled(path, dies, message("ord_1", "m-1"))
    journal = Journal(path)
    (delivery,) = journal.read()
    assert delivery.ended_at_ms is None
    assert journal.at_work([delivery.pid]) == {"ord_1"}
    assert journal.at_work([delivery.pid + 1]) == set()


def test_where_the_handler_raises_all_have_failed(path: Path) -> None:
    def raises(*_: Any) -> Any:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the handler's own, unchanged
        handled(path, raises, message("ord_1", "m-1"), message("ord_2", "m-2"))
    assert [each.failed for each in Journal(path).read()] == [True, True]


def test_a_line_that_is_being_written_is_read_the_next_time(path: Path) -> None:
    handled(path, lambda *_: None, message("ord_1", "m-1"))
    text = path.read_text()
    path.write_text(text[:-5])
    journal = Journal(path)
    assert [each.ended_at_ms for each in journal.read()] == [None]
    path.write_text(text)
    assert [each.ended_at_ms is None for each in journal.read()] == [False]
