"""A long run goes on where it stopped, and its page is made of nothing but its state."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.chaos import leg as legs
from lab.chaos.page import page
from lab.chaos.replayer import Replayer
from lab.chaos.state import LEG, RunParameters, State, resume, save
from lab.chaos.totals import totals
from lab.demo.variant_report import FAILURES
from lab.variants import NAIVE, THIS_REPO

ASKED = RunParameters(orders=2 * LEG + 1, seed=7, faults=15)


def variant(**counts: int) -> dict[str, int]:
    nothing = dict.fromkeys((*FAILURES, "failed_orders", "dead_workers", "faults", "replayed"), 0)
    return nothing | {"orders": 10, "deliveries": 100, "cut_short": 8} | counts


def leg(**other: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"seconds": 90, "peak_mb": 200, "second_mails": {}, "violations": []}
    return found | {"variants": {"this-repo": variant(), "naive": variant(charged_twice=9, failed_orders=9)}} | other


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "build" / "chaos.json"


def test_the_legs_take_every_order_once() -> None:
    numbers = [number for leg in ASKED.legs for number in leg]
    assert numbers == list(range(ASKED.orders))
    assert [len(leg) for leg in ASKED.legs] == [LEG, LEG, 1]


def test_an_interrupted_run_continues_after_its_last_complete_leg(path: Path) -> None:
    save(State(ASKED, done=[leg()]), path)
    found = resume(path, ASKED.orders, ASKED.faults, seed=None)
    assert found is not None
    assert found.parameters == ASKED
    assert found.done == [leg()]
    assert found.left == ASKED.legs[1:]


@pytest.mark.parametrize("other", [{"orders": 5}, {"seed": 8}, {"faults": 1.0}])
def test_a_run_of_other_orders_seed_or_faults_starts_anew(path: Path, other: dict[str, Any]) -> None:
    save(State(ASKED, done=[leg()]), path)
    parameters = replace(ASKED, **other)
    assert resume(path, parameters.orders, parameters.faults, parameters.seed) is None


def test_a_run_with_other_versions_is_not_continued(path: Path) -> None:
    save(State(ASKED, versions={"python": "2.7"}, done=[leg()]), path)
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


def test_the_totals_are_the_sums_of_all_legs() -> None:
    found = totals(State(ASKED, done=[leg(), leg(second_mails={"ord_1": "a death"}, peak_mb=300)]))
    assert found.variants["naive"]["charged_twice"] == 18
    assert (found.seconds, found.peak_mb) == (180, 300)
    assert found.second_mails == {"ord_1": "a death"}
    assert (found.violations, found.too_few_deaths) == ([], "")


def test_a_violation_in_any_leg_is_reported() -> None:
    found = totals(State(ASKED, done=[leg(violations=["ord_1: 2 charges"]), leg()]))
    assert found.violations == ["ord_1: 2 charges"]


def test_too_few_deaths_are_reported_with_the_variant() -> None:
    state = State(ASKED, done=[leg(variants={"this-repo": variant(), "naive": variant(cut_short=4)})])
    assert "deliveries of naive" in totals(state).too_few_deaths
    text = page(state)
    assert "✗ **Too few deaths" in text
    assert "✓ This repository's pipeline is as promised" in text


def before(receives: int) -> dict[str, Any]:
    return {"received_before": {"DataType": "Number", "StringValue": str(receives)}}


class Sqs:
    """Queues as lists."""

    def __init__(self, **queues: list[dict[str, Any]]) -> None:
        self.queues = queues
        self._seen: set[str] = set()

    def receive_message(self, QueueUrl: str, **_: Any) -> dict[str, Any]:  # noqa: N803 - boto3's names
        found = [each for each in self.queues.get(QueueUrl, []) if each["ReceiptHandle"] not in self._seen]
        self._seen |= {each["ReceiptHandle"] for each in found}
        return {"Messages": found} if found else {}

    def send_message(self, QueueUrl: str, MessageBody: str, MessageAttributes: Any) -> None:  # noqa: N803
        self.queues.setdefault(QueueUrl, []).append({"Body": MessageBody, "MessageAttributes": MessageAttributes})

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        self.queues[QueueUrl] = [each for each in self.queues[QueueUrl] if each["ReceiptHandle"] != ReceiptHandle]


class FakeDeployment:
    """Queues that are called as their outputs are."""

    def __init__(self, sqs: Sqs) -> None:
        self._sqs = sqs
        names = [f"{name}{kind}Url" for name in ("Orders", "Payments", "Emails") for kind in ("Queue", "Dlq")]
        self.outputs = {f"{prefix}{name}": f"{prefix}{name}" for prefix in ("", "Naive") for name in names}

    def client(self, _: str) -> Sqs:
        return self._sqs


def test_a_replay_puts_everything_back_but_what_was_refused_for_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    sqs = Sqs(
        PaymentsDlqUrl=[
            {"Body": "one", "ReceiptHandle": "1", "MessageAttributes": {"x": "as_promised", **before(3)}},
            {"Body": "bad", "ReceiptHandle": "2", "MessageAttributes": {"reason": "key_reused"}},
        ],
        NaiveEmailsDlqUrl=[{"Body": "two", "ReceiptHandle": "3"}],
    )
    running: Any = FakeDeployment(sqs)
    monkeypatch.setattr(type(NAIVE), "of", lambda variant, _: OutputsOf(running, variant.prefix))
    replayer = Replayer(running, [THIS_REPO, NAIVE], receives=3)
    replayer.once()
    assert replayer.replayed == {"this-repo": 1, "naive": 1}
    assert sqs.queues["PaymentsQueueUrl"] == [{"Body": "one", "MessageAttributes": {"x": "as_promised", **before(6)}}]
    assert [each["Body"] for each in sqs.queues["PaymentsDlqUrl"]] == ["bad"]
    assert sqs.queues["NaiveEmailsQueueUrl"] == [{"Body": "two", "MessageAttributes": before(3)}]


class OutputsOf:
    def __init__(self, running: Any, prefix: str) -> None:
        self.outputs = {
            name.removeprefix(prefix): value for name, value in running.outputs.items() if name.startswith(prefix)
        }


def test_a_variant_without_progress_is_not_awaited() -> None:
    now = [0.0]
    stalled = legs.NoProgress(60.0, lambda: now[0])
    looks = []
    for at_s, final in ((1, 5), (50, 6), (109, 6), (110, 6), (111, 4), (170, 4), (171, 4)):
        now[0] = at_s
        looks.append(stalled.at(final))
    assert looks == [False, False, False, True, False, False, True]
