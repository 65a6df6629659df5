"""What the buttons do, and what they say when they do not."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from tools.local.observe import Depth, Queues
from tools.local.running import Running
from tools.operate.redrive import Redriven, Selection

from lab.console import LANES, actions
from lab.console.actions import Actions, CouldNot
from lab.console.app import console
from lab.console.book import Book, Entry
from lab.console.feed import Feed
from lab.contrast.verdict import Witnessed
from lab.demo.lanes import NAIVE, OURS, Lane
from lab.tests.console.conftest import HOST, Answer, ask, charges, done, mails, row, sight
from lab.tests.console.test_guard import ORIGIN, token_of

NAMES = ("OrdersQueueUrl", "PaymentSandboxFunctionName", "FaultsTableName")
URL = "http://127.0.0.1:1"


class Cloud:
    """An AWS that notes what it is asked for. Functions in `stopped` may not run; `is_down`: it does not answer."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.armed: list[tuple[str, str]] = []
        self.stopped: set[str] = set()
        self.is_down = False

    def client(self, service: str) -> Any:
        return {"sqs": self._sqs, "lambda": self._lambda, "dynamodb": self._dynamodb}[service]

    @property
    def _sqs(self) -> Any:
        return SimpleNamespace(send_message=self._send)

    @property
    def _lambda(self) -> Any:
        return SimpleNamespace(
            get_function_concurrency=lambda **of: (
                {"ReservedConcurrentExecutions": 0} if of["FunctionName"] in self.stopped else {}
            ),
            put_function_concurrency=lambda **of: self.stopped.add(of["FunctionName"]),
            delete_function_concurrency=lambda **of: self.stopped.discard(of["FunctionName"]),
        )

    @property
    def _dynamodb(self) -> Any:
        return SimpleNamespace(
            put_item=lambda **of: self.armed.append((of["Item"]["id"]["S"], of["Item"]["kind"]["S"]))
        )

    def _send(self, **of: str) -> dict[str, str]:
        if self.is_down:
            raise EndpointConnectionError(endpoint_url=URL)
        self.sent.append((of["QueueUrl"], json.loads(of["MessageBody"])))
        return {"MessageId": "m-1"}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Whatever asks AWS asks this."""
    made = Cloud()
    monkeypatch.setattr(Running, "client", lambda _, service: made.client(service))
    return made


@pytest.fixture
def book() -> Book:
    """Nothing was sent."""
    return Book()


@pytest.fixture
def press(cloud: Cloud, book: Book) -> Actions:
    """The buttons; both lanes' outputs are called as they are named."""
    del cloud
    names = [f"{lane.prefix}{name}" for lane in LANES for name in NAMES]
    return Actions(Running(URL, dict(zip(names, names, strict=True)), Path()), LANES, book)


def test_an_order_goes_to_every_lane_under_one_id_and_the_lanes_own_address(press: Actions, cloud: Cloud) -> None:
    said = press("send-one")
    (naive, ours) = cloud.sent
    assert (naive[0], ours[0]) == ("NaiveOrdersQueueUrl", "OrdersQueueUrl")
    assert naive[1]["data"]["order_id"] == ours[1]["data"]["order_id"]
    assert "+naive@" in naive[1]["data"]["customer"]["email"]
    assert said.text == "Order 1 went to every pipeline."


def test_five_times_is_one_order_in_five_messages(press: Actions, cloud: Cloud, book: Book) -> None:
    press("send-five-times")
    assert len(cloud.sent) == 10
    assert len({event["data"]["order_id"] for _, event in cloud.sent}) == 1
    (entry,) = book.entries()
    assert (entry.copies, len(entry.sends)) == (5, 5)


def test_a_hundred_are_a_hundred_orders_of_which_ten_cards_are_declined(
    press: Actions, cloud: Cloud, book: Book
) -> None:
    press("send-hundred")
    assert (len(book.entries()), len(cloud.sent)) == (100, 200)
    assert sum(not entry.expected.pays for entry in book.entries()) == 10


@pytest.mark.parametrize(("name", "kind"), [("kill", "die_after"), ("drop", "answer_lost"), ("stall", "stalled")])
def test_trouble_is_armed_in_every_lane_alike(press: Actions, cloud: Cloud, book: Book, name: str, kind: str) -> None:
    said = press(name)
    assert cloud.armed == [("armed#naive#payment", kind), ("armed#ours#payment", kind)]
    assert book.armed is not None
    assert book.armed.kind == kind
    assert "Armed in every pipeline" in said.text


def test_the_provider_stops_and_starts_for_all_and_says_where_there_is_nothing_to_do(
    press: Actions, cloud: Cloud
) -> None:
    with pytest.raises(CouldNot, match="is running"):
        press("start-provider")
    press("stop-provider")
    assert cloud.stopped == {"PaymentSandboxFunctionName", "NaivePaymentSandboxFunctionName"}
    with pytest.raises(CouldNot, match="stopped already"):
        press("stop-provider")
    with pytest.raises(CouldNot, match="Start it first"):
        press("audit")
    press("start-provider")
    assert cloud.stopped == set()


def test_a_provider_that_is_stopped_in_one_lane_only_can_be_stopped_and_started(press: Actions, cloud: Cloud) -> None:
    cloud.stopped.add("NaivePaymentSandboxFunctionName")
    press("stop-provider")
    assert len(cloud.stopped) == 2
    cloud.stopped.remove("PaymentSandboxFunctionName")
    press("start-provider")
    assert cloud.stopped == set()


def test_an_empty_dlq_is_not_replayed(press: Actions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Queues, "depth", lambda *_: Depth(0, 0, 0))
    with pytest.raises(CouldNot, match="no message lies in a DLQ"):
        press("replay")


def test_every_dlq_with_messages_is_replayed_whatever_their_reason(
    press: Actions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Queues, "depth", lambda _, name: Depth(int(name == "PaymentsDlq"), 0, 0))
    wishes: list[Selection] = []

    def redrive(_: object, wish: Selection) -> Redriven:
        wishes.append(wish)
        done = Redriven()
        done.moved["received_too_often"] = 2
        return done

    monkeypatch.setattr(actions, "redrive", redrive)
    assert press("replay").text == "Messages put back from the DLQs: Naive 2, This repository 2."
    assert wishes == [Selection("payments", everything=True)] * 2


def test_what_can_not_be_replayed_is_said(press: Actions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Queues, "depth", lambda *_: Depth(1, 0, 0))
    failed = Redriven()
    failed.failed["AccessDenied"] = 1
    monkeypatch.setattr(actions, "redrive", lambda *_: failed)
    with pytest.raises(CouldNot, match="AccessDenied"):
        press("replay")


def audited(monkeypatch: pytest.MonkeyPatch, by_lane: dict[Lane, Witnessed], operators: list[Any]) -> None:
    """Let the witnesses say this, and an operator's audit find that."""
    monkeypatch.setattr(actions, "collect", lambda lane, _: by_lane[lane])
    found = SimpleNamespace(run=lambda: SimpleNamespace(wrong=operators))
    monkeypatch.setattr(actions, "Auditor", lambda *_: found)


def right(lane: Lane, entry: Entry, times: int = 1) -> Witnessed:
    return Witnessed(charges(entry, times), mails(lane, entry), [done(entry)], frozenset(), frozenset())


def test_without_orders_there_is_nothing_to_audit(press: Actions) -> None:
    with pytest.raises(CouldNot, match="no order was sent"):
        press("audit")


def test_the_audit_names_whom_each_lane_wronged(press: Actions, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = book.open(5)
    audited(monkeypatch, {NAIVE: right(NAIVE, entry, times=5), OURS: right(OURS, entry)}, [])
    said = press("audit")
    assert said.text == "Audit of 1 orders. Wronged: Naive 1, This repository 0."
    naive, ours = said.report
    assert naive["findings"] == [{"what": "charged more than once", "orders": [entry.order_id]}]
    assert ours["findings"] == []


def test_what_only_an_operators_audit_finds_counts_for_ours(
    press: Actions, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = book.open(1)
    found = SimpleNamespace(kind="ledger_differs", detail="amount 1 instead of 2", order_id=entry.order_id)
    audited(monkeypatch, {NAIVE: right(NAIVE, entry), OURS: right(OURS, entry)}, [found])
    _, ours = press("audit").report
    assert ours["wronged"] == 1
    assert "ledger_differs" in ours["findings"][0]["what"]


def test_an_order_on_its_way_is_not_yet_wronged(press: Actions, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = book.open(1)
    on_its_way = Witnessed(charges(entry), [], [row(entry, "placed")], frozenset({entry.order_id}), frozenset())
    late = SimpleNamespace(kind="late", detail="placed", order_id=entry.order_id)
    audited(monkeypatch, {NAIVE: right(NAIVE, entry), OURS: on_its_way}, [late])
    said = press("audit")
    assert said.report[1]["findings"] == []
    assert "1 are still on their way" in said.text


def parked_in_both(monkeypatch: pytest.MonkeyPatch, book: Book, operators_kind: str) -> Entry:
    """An order in a DLQ of each lane, of which an operator's audit finds this."""
    entry = book.open(1)
    parked = Witnessed([], [], [row(entry, "placed")], frozenset(), frozenset({entry.order_id}))
    found = SimpleNamespace(kind=operators_kind, detail="payment.charge", order_id=entry.order_id)
    audited(monkeypatch, {NAIVE: parked, OURS: parked}, [found])
    return entry


@pytest.mark.parametrize("kind", ["late", "parked"])
def test_an_order_in_a_dlq_is_told_apart_and_not_called_wronged(
    press: Actions, book: Book, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    entry = parked_in_both(monkeypatch, book, kind)
    said = press("audit")
    assert said.text == (
        "Audit of 1 orders. Wronged: Naive 0, This repository 0. "
        "2 are in a DLQ: nothing in it is lost, and a replay goes on with it."
    )
    for lane in said.report:
        assert (lane["findings"], lane["wronged"], lane["parked"]) == ([], 0, [entry.order_id])


def test_what_else_is_wrong_with_an_order_in_a_dlq_is_told(
    press: Actions, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = parked_in_both(monkeypatch, book, "damaged_record")
    _, ours = press("audit").report
    assert (ours["wronged"], ours["parked"]) == (1, [entry.order_id])


def test_no_button_is_at_work_twice_at_once_but_others_are(
    press: Actions, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> Depth:
        began.set()
        go_on.wait(5)
        return Depth(0, 0, 0)

    monkeypatch.setattr(Queues, "depth", slow)
    refused: list[str] = []

    def first() -> None:
        try:
            press("replay")
        except CouldNot as error:
            refused.append(str(error))

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert began.wait(5)
        with pytest.raises(CouldNot, match="still at work"):
            press("replay")
        press("send-one")
        assert len(cloud.sent) == 2
    finally:
        go_on.set()
        thread.join()
    assert refused == ["Nothing to replay: no message lies in a DLQ."]


def pressed(press: Actions, book: Book, name: str) -> Answer:
    """Press it as the page does."""
    app = console(Feed(lambda: sight(book)), press, frozenset({HOST}))
    token = token_of(ask(app, "GET", "/"))
    return ask(app, "POST", f"/do/{name}", origin=ORIGIN, x_console_token=token)


def test_the_page_is_told_what_was_done(press: Actions, book: Book) -> None:
    answer = pressed(press, book, "send-one")
    assert (answer.status, json.loads(answer.body)) == (200, {"said": "Order 1 went to every pipeline.", "report": []})


def test_the_page_is_told_why_nothing_was_done(press: Actions, book: Book) -> None:
    answer = pressed(press, book, "audit")
    assert (answer.status, json.loads(answer.body)) == (
        200,
        {"could_not": "Nothing to audit: no order was sent yet."},
    )


def test_an_aws_that_does_not_answer_is_said(press: Actions, cloud: Cloud, book: Book) -> None:
    cloud.is_down = True
    answer = pressed(press, book, "send-one")
    assert answer.status == 502
    assert "The local AWS did not do it" in json.loads(answer.body)["could_not"]


def test_an_unknown_button_is_said(press: Actions, book: Book) -> None:
    assert pressed(press, book, "rm").status == 404


def test_an_unknown_order_has_no_timeline(press: Actions, book: Book) -> None:
    app = console(Feed(lambda: sight(book)), press, frozenset({HOST}))
    assert ask(app, "GET", "/orders/show-1").status == 404


def test_every_button_of_the_page_is_one_that_there_is(press: Actions, book: Book) -> None:
    page = ask(console(Feed(lambda: sight(book)), press, frozenset({HOST})), "GET", "/").body
    named = [part.partition('"')[0] for part in page.split('data-do="')[1:]]
    assert len(named) == 9
    assert all(name in press for name in named)
