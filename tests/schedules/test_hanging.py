"""Each request in turn gets no answer, for as long as the worker lives: the handler still ends in time.

The worker starts with the least time with which a step may start, or with little more. All other requests are answered
at once, or as late as possible. Waiting threads wait at the same time.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from functions.relay.handler import NotRelayed
from stacks.times import ANSWER_S
from tests.harness.interceptor import Killed
from tests.schedules.environment import OF_FUNCTION, ExplorerEnvironment
from tests.schedules.explorer import play
from tests.schedules.faults import Fault
from tests.schedules.green_threads import current
from tests.schedules.model import Call
from tests.schedules.run import Invocation, Run
from tests.schedules.scenarios import SCENARIOS, TIMEOUTS_S
from tests.schedules.sources import QueueSource

REQUEST_S = {"provider": 1.0}  # 0.6 s for all others
BACK_OFF = "sqs ChangeMessageVisibilityBatch"
CONSUMERS = ("order", "order-batch", "payment-cold", "payment-declined-once", "payment-other-create", "email-once")


@dataclass
class Hanging:
    """The requests that get no answer, by name. `applied`: the service applies them all the same.

    `slow`: all others are answered as late as possible. `first`: so many copies of the worker's first request get no
    answer either. `more_s`: the seconds that the worker has in addition to the least time.
    """

    names: frozenset[str] = frozenset()
    applied: bool = False
    slow: bool = False
    first: int = 0
    more_s: float = 0.0
    seen: dict[str, None] = field(default_factory=dict)  # the names of all requests, in their order
    ends: list[tuple[Invocation, int]] = field(default_factory=list)  # with the time of the end, in epoch milliseconds
    entries: list[str] = field(default_factory=list)  # receipts whose visibility a worker set

    def hangs(self, call: Call) -> bool:
        """Record a request. Returns whether it gets no answer."""
        name = f"{call.service} {call.operation}"
        if call.operation == "UpdateItem":
            name += f": {call.body['UpdateExpression'][:40]}"
        first = set(self.seen) <= {name} and self.first > 0
        self.first -= first
        self.seen[name] = None
        if name == BACK_OFF:
            self.entries += [entry["ReceiptHandle"] for entry in call.body["Entries"]]
        return name in self.names or first


@dataclass(frozen=True)
class Waiting:
    """What a thread parks at while it waits for an answer."""

    until_ms: int


@pytest.fixture
def run_once(environment: ExplorerEnvironment, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Hanging], Run]:
    """Return a function that runs the first worker of a scenario while requests hang."""
    meet, end = Run._meet, Run._end

    def run_once(name: str, hanging: Hanging) -> Run:
        def meet_or_hang(run: Run, call: Call, apply: Callable[..., Any], lost: Callable[[], Exception]) -> Any:
            hangs = hanging.hangs(call)
            if not hangs and not hanging.slow:
                return meet(run, call, apply, lost)
            thread = current()
            if thread.process.dead:
                raise Killed
            _continue(thread.park(call))
            answer = None if hangs and not hanging.applied else run._answer(call, Fault.NONE, apply)
            until_ms = run.clock.ms + round(REQUEST_S.get(call.service, 0.6) * 1000)
            _continue(thread.park(Waiting(until_ms)))
            run.clock.ms = max(run.clock.ms, until_ms)
            if hangs:
                raise lost()
            return answer

        def end_and_record(run: Run, it: Invocation) -> None:
            hanging.ends.append((it, run.clock.ms))
            end(run, it)

        SCENARIOS[name].start(environment, 0, None)  # the workers before this one have answers
        with monkeypatch.context() as patch:
            patch.setitem(TIMEOUTS_S, name.partition("-")[0], least_s(name) + hanging.more_s)
            patch.setattr(Run, "_meet", meet_or_hang)
            patch.setattr(Run, "_end", end_and_record)
            played = play(environment, SCENARIOS[name], [], 0, first_in_time)
        return played.run

    return run_once


def _continue(order: object) -> None:
    if isinstance(order, BaseException):
        raise order


def first_in_time(run: Run, _: list[str], possible: list[str]) -> str | None:
    """Choose the thread that does not wait, or waits for the shortest time. Stop after the first worker."""
    if not run.active:
        return None if run.started else possible[0]
    parked = {thread.name: thread.parked_at for thread in run._ready()}
    waits = {name: at.until_ms if isinstance(at, Waiting) else 0 for name, at in parked.items()}
    return min((name for name in possible if name in waits), key=lambda name: waits[name])


def least_s(name: str) -> float:
    """Return the seconds with which a worker of this scenario just starts its step."""
    variables = OF_FUNCTION[name.partition("-")[0]]
    return float(variables["STEP_NEEDS_S"]) + float(variables["RESERVE_S"])


def hung(run_once: Callable[[str, Hanging], Run], name: str, more_s: Sequence[float]) -> Iterator[tuple[Hanging, Run]]:
    """Run the scenario while no request hangs, one does, two do, and all do from one on."""
    for slow, first, more in itertools.product((False, True), (0, 3), more_s):
        tried: set[frozenset[str]] = set()
        left = [frozenset[str]()]
        while left:
            names = left.pop()
            if names in tried:
                continue
            tried.add(names)
            for applied in (False, True):
                hanging = Hanging(names, applied, slow, first, more)
                yield hanging, run_once(name, hanging)
                seen = list(hanging.seen)
                if len(names) < 2:
                    left += [names | {other} for other in seen]
                left += [frozenset(seen[n:]) for n in range(len(seen)) if names <= set(seen[n:])]


def ended_in_time(hanging: Hanging) -> Any:
    """Return the process of the only worker. Asserts that its answer came before Lambda would have stopped it."""
    [(it, end_ms)] = hanging.ends
    left_s = (it.process.deadline_ms - end_ms) / 1000
    assert left_s >= ANSWER_S, f"the answer came with {left_s} s left, {hanging}"
    return it.process


@pytest.mark.parametrize("name", CONSUMERS)
def test_a_consumer_ends_in_time_reports_the_right_records_and_sets_their_visibility(
    run_once: Callable[[str, Hanging], Run], name: str
) -> None:
    runs = 0
    for hanging, run in hung(run_once, name, (0, 0.75)):
        process = ended_in_time(hanging)
        assert process.returned, process.crashed
        failed = {entry["itemIdentifier"] for entry in process.result["batchItemFailures"]}
        [queue] = [source.queue for source in run.sources if isinstance(source, QueueSource)]
        left = {message.id: message for message in run.model.queues.waiting[queue] if message.receives}
        assert failed == set(left)
        assert not run.facts.offences, "a record is neither done nor parked nor reported"
        if failed:
            receipts = {message.receipt for message in left.values()}
            assert receipts <= set(hanging.entries), f"no back-off, {hanging}"
        assert run.facts.counted, "no metrics"
        runs += 1
    assert runs > 4


def test_the_relay_ends_in_time_and_reports_a_batch_that_is_not_sent(run_once: Callable[[str, Hanging], Run]) -> None:
    for hanging, run in hung(run_once, "relay", [n / 10 for n in range(20)]):
        process = ended_in_time(hanging)
        sent = {message.body for waiting in run.model.queues.sent.values() for message in waiting}
        assert isinstance(process.crashed, NotRelayed | None)
        assert process.crashed or len(sent) == 2, hanging
        assert run.facts.counted or process.crashed, "no metrics"


def test_the_api_ends_in_time_and_says_what_is_known(run_once: Callable[[str, Hanging], Run]) -> None:
    for hanging, run in hung(run_once, "api", [n / 10 for n in range(20)]):
        process = ended_in_time(hanging)
        stored = bool(run.model.tables.items["orders"])
        assert process.result["statusCode"] in ({202, 504} if stored else {504}), hanging
        assert run.facts.counted or process.result["statusCode"] == 504, "no metrics"
