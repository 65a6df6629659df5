"""What the buttons do, and what they say when they do not."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import Depth, Queues
from tools.operate.redrive import Redriven, Selection

from lab.console import VARIANTS, actions
from lab.console.actions import ActionRefused, Actions
from lab.console.sent_orders import SentOrder, SentOrders
from lab.tests.console.conftest import charges, done, mails, row
from lab.variants import NAIVE, THIS_REPO, Variant
from lab.variants.observation import Observation

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
    monkeypatch.setattr(LocalDeployment, "client", lambda _, service: made.client(service))
    return made


@pytest.fixture
def sent_orders() -> SentOrders:
    """Nothing was sent."""
    return SentOrders()


@pytest.fixture
def press(cloud: Cloud, sent_orders: SentOrders) -> Actions:
    """The buttons; both variants' outputs are called as they are named."""
    del cloud
    names = [f"{variant.prefix}{name}" for variant in VARIANTS for name in NAMES]
    return Actions(LocalDeployment(URL, dict(zip(names, names, strict=True)), Path()), VARIANTS, sent_orders)


def test_an_order_goes_to_every_variant_under_one_id_and_the_variants_own_address(press: Actions, cloud: Cloud) -> None:
    said = press("send-one")
    (naive, this_repo) = cloud.sent
    assert (naive[0], this_repo[0]) == ("NaiveOrdersQueueUrl", "OrdersQueueUrl")
    assert naive[1]["data"]["order_id"] == this_repo[1]["data"]["order_id"]
    assert "+naive@" in naive[1]["data"]["customer"]["email"]
    assert said.text == "Order 1 was sent to both pipelines."


def test_five_times_is_one_order_in_five_messages(press: Actions, cloud: Cloud, sent_orders: SentOrders) -> None:
    press("send-five-times")
    assert len(cloud.sent) == 10
    assert len({event["data"]["order_id"] for _, event in cloud.sent}) == 1
    (entry,) = sent_orders.all()
    assert (entry.copies, len(entry.sends)) == (5, 5)


def test_a_hundred_are_a_hundred_orders_of_which_ten_cards_are_declined(
    press: Actions, cloud: Cloud, sent_orders: SentOrders
) -> None:
    press("send-hundred")
    assert (len(sent_orders.all()), len(cloud.sent)) == (100, 200)
    assert sum(not entry.expected.pays for entry in sent_orders.all()) == 10


@pytest.mark.parametrize(("name", "kind"), [("kill", "die_after"), ("drop", "answer_lost"), ("stall", "stalled")])
def test_a_fault_is_armed_in_every_variant(
    press: Actions, cloud: Cloud, sent_orders: SentOrders, name: str, kind: str
) -> None:
    said = press(name)
    assert cloud.armed == [("armed#naive#payment", kind), ("armed#this-repo#payment", kind)]
    assert sent_orders.armed is not None
    assert sent_orders.armed.kind == kind
    assert "Armed in both pipelines" in said.text


def test_the_provider_stops_and_starts_for_all_and_says_where_there_is_nothing_to_do(
    press: Actions, cloud: Cloud
) -> None:
    with pytest.raises(ActionRefused, match="is running"):
        press("start-provider")
    press("stop-provider")
    assert cloud.stopped == {"PaymentSandboxFunctionName", "NaivePaymentSandboxFunctionName"}
    with pytest.raises(ActionRefused, match="stopped already"):
        press("stop-provider")
    with pytest.raises(ActionRefused, match="Start it first"):
        press("audit")
    press("start-provider")
    assert cloud.stopped == set()


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
    assert press("replay").text == "Messages moved back from the DLQs: Naive 2, This repository 2."
    assert wishes == [Selection("payments", everything=True)] * 2


def audited(monkeypatch: pytest.MonkeyPatch, by_variant: dict[Variant, Observation], operators: list[Any]) -> None:
    """Set the observations, and the findings of `make audit`."""
    monkeypatch.setattr(actions, "observe", lambda variant, _: by_variant[variant])
    found = SimpleNamespace(run=lambda: SimpleNamespace(wrong=operators))
    monkeypatch.setattr(actions, "Auditor", lambda *_: found)


def right(variant: Variant, entry: SentOrder, times: int = 1) -> Observation:
    return Observation(charges(entry, times), mails(variant, entry), [done(entry)], frozenset(), frozenset())


def test_the_audit_names_the_failed_orders_of_each_variant(
    press: Actions, sent_orders: SentOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = sent_orders.add(5)
    audited(monkeypatch, {NAIVE: right(NAIVE, entry, times=5), THIS_REPO: right(THIS_REPO, entry)}, [])
    said = press("audit")
    assert said.text == "Audit of 1 orders. Failed: Naive 1, This repository 0."
    naive, this_repo = said.report
    assert naive["findings"] == [{"what": "charged more than once", "orders": [entry.order_id]}]
    assert this_repo["findings"] == []


def test_an_order_that_is_not_final_has_not_failed(
    press: Actions, sent_orders: SentOrders, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = sent_orders.add(1)
    on_its_way = Observation(charges(entry), [], [row(entry, "placed")], frozenset({entry.order_id}), frozenset())
    late = SimpleNamespace(kind="late", detail="placed", order_id=entry.order_id)
    audited(monkeypatch, {NAIVE: right(NAIVE, entry), THIS_REPO: on_its_way}, [late])
    said = press("audit")
    assert said.report[1]["findings"] == []
    assert "1 are not final yet" in said.text


def parked_in_both(monkeypatch: pytest.MonkeyPatch, sent_orders: SentOrders, operators_kind: str) -> SentOrder:
    """An order in a DLQ of each variant, of which an operator's audit finds this."""
    entry = sent_orders.add(1)
    parked = Observation([], [], [row(entry, "placed")], frozenset(), frozenset({entry.order_id}))
    found = SimpleNamespace(kind=operators_kind, detail="payment.charge", order_id=entry.order_id)
    audited(monkeypatch, {NAIVE: parked, THIS_REPO: parked}, [found])
    return entry


@pytest.mark.parametrize("kind", ["late", "parked"])
def test_an_order_in_a_dlq_is_listed_and_has_not_failed(
    press: Actions, sent_orders: SentOrders, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    entry = parked_in_both(monkeypatch, sent_orders, kind)
    said = press("audit")
    assert said.text == (
        "Audit of 1 orders. Failed: Naive 0, This repository 0. 2 are in a DLQ: not lost, a replay continues them."
    )
    for variant in said.report:
        assert (variant["findings"], variant["failed_orders"], variant["parked"]) == ([], 0, [entry.order_id])
