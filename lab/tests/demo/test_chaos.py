"""A long run goes on where it stopped, and its page is made of nothing but its state."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools.local.observe import Depth

from lab.chaos import __main__ as command
from lab.chaos import leg as legs
from lab.chaos.page import page
from lab.chaos.replay import Replayer
from lab.chaos.state import LEG, Asked, State, resume, save, set_aside
from lab.chaos.totals import totals
from lab.demo.comparison import WRONGS
from lab.demo.lanes import NAIVE, OURS

ASKED = Asked(orders=2 * LEG + 1, seed=7, faults=15)


def lane(**counts: int) -> dict[str, int]:
    nothing = dict.fromkeys((*WRONGS, "wronged", "dead_workers", "faults", "replayed"), 0)
    return nothing | {"orders": 10, "deliveries": 100, "cut_short": 8} | counts


def leg(**other: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"seconds": 90, "peak_mb": 200, "second_mails": {}, "violations": []}
    return found | {"lanes": {"ours": lane(), "naive": lane(charged_twice=9, wronged=9)}} | other


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "build" / "chaos.json"


def test_the_legs_take_every_order_once() -> None:
    numbers = [number for leg in ASKED.legs for number in leg]
    assert numbers == list(range(ASKED.orders))
    assert [len(leg) for leg in ASKED.legs] == [LEG, LEG, 1]


def test_an_interrupted_run_goes_on_after_its_last_whole_leg(path: Path) -> None:
    save(State(ASKED, done=[leg()]), path)
    found = resume(path, ASKED.orders, ASKED.faults, seed=None)
    assert found is not None
    assert found.asked == ASKED
    assert found.done == [leg()]
    assert found.left == ASKED.legs[1:]


def test_one_that_was_stopped_while_it_saved_has_its_state_before(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(State(ASKED, done=[leg()]), path)

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        save(State(ASKED, done=[leg(), leg()]), path)
    found = resume(path, ASKED.orders, ASKED.faults, ASKED.seed)
    assert found is not None
    assert len(found.done) == 1


@pytest.mark.parametrize("other", [{"orders": 5}, {"seed": 8}, {"faults": 1.0}])
def test_a_run_of_other_orders_seed_or_faults_starts_anew(path: Path, other: dict[str, Any]) -> None:
    save(State(ASKED, done=[leg()]), path)
    asked = replace(ASKED, **other)
    assert resume(path, asked.orders, asked.faults, asked.seed) is None


def test_a_finished_run_is_not_gone_on_with(path: Path) -> None:
    save(State(ASKED, done=[leg()] * 3), path)
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


def test_a_run_with_other_versions_is_not_gone_on_with(path: Path) -> None:
    save(State(ASKED, versions={"python": "2.7"}, done=[leg()]), path)
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


@pytest.mark.parametrize(
    "text", ["", "{}", "no JSON", json.dumps({"asked": {"orders": 1}, "versions": {}, "done": []})]
)
def test_a_file_that_is_no_state_is_no_run(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


def test_a_run_with_legs_of_another_size_is_not_gone_on_with(path: Path) -> None:
    save(State(replace(ASKED, leg=LEG // 2), done=[leg()]), path)
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


@pytest.mark.parametrize("done", [None, 3, [{}], [None], "x"])
def test_a_file_with_damaged_legs_is_no_run(path: Path, done: Any) -> None:
    save(State(ASKED, done=[]), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"done": done}))
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


def test_no_file_is_no_run(path: Path) -> None:
    assert resume(path, ASKED.orders, ASKED.faults, ASKED.seed) is None


def test_the_totals_are_the_sums_of_all_legs() -> None:
    found = totals(State(ASKED, done=[leg(), leg(second_mails={"ord_1": "a death"}, peak_mb=300)]))
    assert found.lanes["naive"]["charged_twice"] == 18
    assert (found.seconds, found.peak_mb) == (180, 300)
    assert found.second_mails == {"ord_1": "a death"}
    assert (found.violations, found.too_tame) == ([], "")


def test_a_violation_of_any_leg_breaks_the_run() -> None:
    found = totals(State(ASKED, done=[leg(violations=["ord_1: 2 charges"]), leg()]))
    assert found.violations == ["ord_1: 2 charges"]


def test_a_run_with_fewer_deaths_than_promised_says_so_and_which_lane_but_breaks_no_promise() -> None:
    state = State(ASKED, done=[leg(lanes={"ours": lane(), "naive": lane(cut_short=4)})])
    assert "fewer than 5 % of the deliveries of naive were" in totals(state).too_tame
    text = page(state)
    assert "✗ **Too tame" in text
    assert "✓ Ours kept its promise" in text


@pytest.mark.parametrize("faults", ["7.9", "51"])
def test_faults_that_prove_nothing_or_never_end_are_refused_before_anything_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], faults: str
) -> None:
    monkeypatch.setattr(command, "STATE", path)
    monkeypatch.setattr("sys.argv", ["chaos", "--faults", faults])
    with pytest.raises(SystemExit):
        command.main()
    assert "faults in 8 to 50 percent" in capsys.readouterr().err
    assert not path.exists()


def test_another_run_takes_nothing_of_an_unfinished_one_away(path: Path) -> None:
    save(State(ASKED, done=[leg()]), path)
    aside = set_aside(path)
    assert aside == path.parent / f"chaos-{ASKED.orders}-7-15-1.json"
    assert not path.exists()
    found = resume(aside, ASKED.orders, ASKED.faults, ASKED.seed)
    assert found is not None
    assert found.done == [leg()]
    save(State(ASKED, done=[leg(), leg()]), path)
    assert set_aside(path) == path.parent / f"chaos-{ASKED.orders}-7-15-2.json"


@pytest.mark.parametrize("legs", [0, 3])
def test_a_run_with_no_leg_or_all_legs_done_is_written_over(path: Path, legs: int) -> None:
    save(State(ASKED, done=[leg()] * legs), path)
    assert set_aside(path) is None
    assert path.exists()


def test_where_no_run_was_nothing_is_set_aside(path: Path) -> None:
    assert set_aside(path) is None


def test_the_page_names_seed_versions_and_each_second_mail_with_its_cause() -> None:
    done = [leg(second_mails=dict.fromkeys(("ord_1", "ord_2"), "worker 7 died with it"))]
    text = page(State(replace(ASKED, orders=10), versions={"python": "3.13.1"}, done=done))
    assert "SEED=7" in text
    assert "python 3.13.1" in text
    assert "- `ord_1`, `ord_2`: worker 7 died with it" in text
    assert "| charged twice | 0 | 9 |" in text
    assert "8 (8.0 %)" in text
    assert "✓ Ours kept its promise." in text


def test_the_page_of_a_broken_run_says_so_first_and_why() -> None:
    text = page(State(ASKED, done=[leg(violations=["ord_1: 2 charges"])]))
    assert "✗ **Not kept" in text
    assert "- ord_1: 2 charges" in text
    assert "✓" not in text


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


class Running:
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
            {"Body": "one", "ReceiptHandle": "1", "MessageAttributes": {"x": "kept", **before(3)}},
            {"Body": "bad", "ReceiptHandle": "2", "MessageAttributes": {"reason": "key_reused"}},
        ],
        NaiveEmailsDlqUrl=[{"Body": "two", "ReceiptHandle": "3"}],
    )
    running: Any = Running(sqs)
    monkeypatch.setattr(type(NAIVE), "of", lambda lane, _: OutputsOf(running, lane.prefix))
    replayer = Replayer(running, [OURS, NAIVE], receives=3)
    replayer.once()
    assert replayer.replayed == {"ours": 1, "naive": 1}
    assert sqs.queues["PaymentsQueueUrl"] == [{"Body": "one", "MessageAttributes": {"x": "kept", **before(6)}}]
    assert [each["Body"] for each in sqs.queues["PaymentsDlqUrl"]] == ["bad"]
    assert sqs.queues["NaiveEmailsQueueUrl"] == [{"Body": "two", "MessageAttributes": before(3)}]


class OutputsOf:
    def __init__(self, running: Any, prefix: str) -> None:
        self.outputs = {
            name.removeprefix(prefix): value for name, value in running.outputs.items() if name.startswith(prefix)
        }


def test_the_page_of_a_run_that_is_not_finished_says_so() -> None:
    assert "So far, after 1 of 3 legs:" in page(State(ASKED, done=[leg()]))
    assert "So far" not in page(State(ASKED, done=[leg()] * 3))


@pytest.fixture
def stop_after(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], int]]:
    """`make chaos SEED=7` with two legs to do, interrupted after so many; answers its exit status."""
    handled = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(command, "STATE", path)
    monkeypatch.setattr(command, "PAGE", path.with_suffix(".md"))
    monkeypatch.setattr("sys.argv", ["chaos", "--orders", str(2 * LEG), "--seed", "7"])

    def start(legs: int) -> int:
        def stopped(state: State) -> None:
            state.done += [leg()] * legs
            save(state, path)
            raise KeyboardInterrupt

        monkeypatch.setattr(command, "_run", stopped)
        return command.main()

    yield start
    signal.signal(signal.SIGTERM, handled)


def test_a_run_that_starts_beside_an_unfinished_one_says_where_that_is_kept(
    path: Path, stop_after: Callable[[int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    save(State(ASKED, done=[leg()]), path)
    assert stop_after(0) == 130
    kept = path.parent / f"chaos-{ASKED.orders}-7-15-1.json"
    assert kept.exists()
    assert f"build/{kept.name}" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize("legs", [0, 1])
def test_a_run_that_is_stopped_keeps_its_seed_and_a_page_of_its_whole_legs(
    path: Path, stop_after: Callable[[int], int], legs: int
) -> None:
    assert stop_after(legs) == 130
    found = resume(path, 2 * LEG, 10, seed=None)
    assert found is not None
    assert (found.asked.seed, len(found.done)) == (7, legs)
    assert path.with_suffix(".md").exists() == bool(legs)


def test_a_lane_that_gets_no_further_is_waited_for_no_longer() -> None:
    now = [0.0]
    stalled = legs.Stalled(60.0, lambda: now[0])
    looks = []
    for at_s, final in ((1, 5), (50, 6), (109, 6), (110, 6), (111, 4), (170, 4), (171, 4)):
        now[0] = at_s
        looks.append(stalled.at(final))
    assert looks == [False, False, False, True, False, False, True]


class Waiting:
    """A queue's depth at each look; the last one for ever."""

    def __init__(self, *depths: int) -> None:
        self.left = list(depths)
        self.looks = 0

    def depth(self, name: str) -> Depth:
        assert name == "Orders"
        self.looks += 1
        return Depth(self.left.pop(0) if len(self.left) > 1 else self.left[0], in_flight=9999, delayed=9999)


def leg_before(*queues: Waiting) -> Any:
    made: Any = object.__new__(legs.Leg)
    made._depths, made._late = queues, ""
    return made


def test_no_order_is_sent_while_a_lane_has_more_than_enough_to_begin_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    ours, naive = Waiting(0), Waiting(legs.MOST_WAITING + 1, legs.MOST_WAITING + 1, legs.MOST_WAITING)
    started = leg_before(ours, naive)
    started._held_back_s()
    assert (naive.looks, started._late) == (3, "")


def test_a_lane_that_does_not_begin_is_waited_for_once_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legs, "SETTLED_WITHIN_S", -1.0)
    stuck = Waiting(legs.MOST_WAITING + 1)
    started = leg_before(stuck)
    for _ in range(2):
        started._held_back_s()
    assert stuck.looks == 1
    assert "orders waiting" in started._late
