"""`make order` prints the order's id, waits until the order is final, and prints its story."""

from typing import Any, cast

import pytest

from tools import order as command
from tools.account import Stop
from tools.domain import Response
from tools.operate.deployment import Deployment
from tools.operate.trace import Story

ROWS = {"requested": {"state": {"S": "requested"}}, "final": {"state": {"S": "paid"}, "mailed_at": {"S": "now"}}}


class Stage:
    """A stage that accepts the order and shows its rows one after the other, the last one forever."""

    def __init__(self, *rows: str) -> None:
        self._rows = list(rows)
        self.placed: list[dict[str, Any]] = []

    def place_until_accepted(self, order: dict[str, Any], _: str) -> Response:
        self.placed.append(order)
        return Response(202, {}, {"order_id": "api_1"})

    def order(self, order_id: str) -> dict[str, Any]:
        assert order_id == "api_1"
        return ROWS[self._rows.pop(0) if len(self._rows) > 1 else self._rows[0]]


def run(monkeypatch: pytest.MonkeyPatch, api: Stage, stage: str = "local") -> int:
    monkeypatch.setattr(command, "api_client", lambda _: api)
    monkeypatch.setattr(Deployment, "tables", lambda _: api)
    monkeypatch.setattr(command, "trace", lambda _, order_id: Story(order_id, row={"state": "shown"}))
    return command.order(Deployment(stage, "here", {}, cast(Any, None)), "pm_card_visa", "", 2500, deadline_s=1)


def test_an_order_that_becomes_final_is_status_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = Stage("requested", "final")
    assert run(monkeypatch, api) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["api_1", "api_1: state shown"]
    assert [item["unit_price"] for item in api.placed[0]["items"]] == [2500]


def test_an_order_that_is_not_final_in_time_is_status_1_and_shows_where_to_look(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, Stage("requested"), stage="sandbox") == 1
    written = capsys.readouterr()
    assert "api_1: state shown" in written.out
    assert "api_1 is not final after 1 s" in written.err
    assert "make dlq STAGE=sandbox" in written.err


def test_prod_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Stop, match="real order"):
        run(monkeypatch, Stage(), stage="prod")
