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
from tests.schedules.environment import OF_FUNCTION, ExplorerEnvironment
from tests.schedules.explorer import play
from tests.schedules.faults import Fault
from tests.schedules.green_threads import JOIN
from tests.schedules.handler_runs import Thread
from tests.schedules.model import Answer, Call
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
    asked: dict[tuple[str, bytes], tuple[int, bool]] = field(default_factory=dict)  # until when, and whether in vain
    ends: list[tuple[Invocation, int]] = field(default_factory=list)  # with the time of the end, in epoch milliseconds
    receipts: set[str] = field(default_factory=set)  # of the messages whose visibility a worker set

    def until_ms(self, thread: Thread, now_ms: int) -> int:
        """Return the time until which a thread waits for the answer to its request."""
        asked = (thread.name, thread.past)
        if asked not in self.asked:
            hangs = self._hangs(thread.parked_at)
            wait_s = REQUEST_S.get(thread.parked_at.service, 0.6) if hangs or self.slow else 0
            self.asked[asked] = now_ms + round(wait_s * 1000), hangs
        return self.asked[asked][0]

    def meet(self, run: Run, thread: Thread, call: Call, _: Fault) -> Answer | None:
        """Answer a request, or not, at its time. In place of Run._meet."""
        until_ms, hangs = self.asked[thread.name, thread.past]
        run.clock.ms = max(run.clock.ms, until_ms)
        answer = run._answer(call, Fault.NONE) if self.applied or not hangs else None
        thread.saw(answer and answer.said, run.clock.ms)
        return None if hangs else answer

    def choose(self, run: Run, _: list[str], possible: list[str]) -> str | None:
        """Choose the thread that waits for the shortest time. Stop after the first worker."""
        if not run.active:
            return None if run.started else possible[0]
        waits = {
            thread.name: 0 if thread.parked_at is JOIN else self.until_ms(thread, run.clock.ms)
            for thread in run._ready()
        }
        return min((name for name in possible if name in waits), key=lambda name: waits[name])

    def _hangs(self, call: Call) -> bool:
        name = f"{call.service} {call.operation}"
        if call.operation == "UpdateItem":
            name += f": {call.body['UpdateExpression'][:40]}"
        first = set(self.seen) <= {name} and len(self.asked) < self.first
        self.seen[name] = None
        if name == BACK_OFF:
            self.receipts |= {entry["ReceiptHandle"] for entry in call.body["Entries"]}
        return name in self.names or first


@pytest.fixture
def run_once(environment: ExplorerEnvironment, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Hanging], Run]:
    """Return a function that runs the first worker of a scenario while requests hang."""
    end = Run._end

    def run_once(name: str, hanging: Hanging) -> Run:
        def end_and_record(run: Run, it: Invocation) -> None:
            hanging.ends.append((it, run.clock.ms))
            end(run, it)

        SCENARIOS[name].start(environment, 0, None)  # the workers before this one have answers
        with monkeypatch.context() as patch:
            patch.setitem(TIMEOUTS_S, name.partition("-")[0], least_s(name) + hanging.more_s)
            patch.setattr(Run, "_meet", lambda run, *request: hanging.meet(run, *request))
            patch.setattr(Run, "_end", end_and_record)
            return play(environment, SCENARIOS[name], [], 0, hanging.choose).run

    return run_once


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
    for hanging, run in hung(run_once, name, (0, 0.75)):
        process = ended_in_time(hanging)
        assert process.returned, process.crashed
        failed = {entry["itemIdentifier"] for entry in process.result["batchItemFailures"]}
        [queue] = [source.queue for source in run.sources if isinstance(source, QueueSource)]
        left = {message.id: message for message in run.model.queues.waiting[queue] if message.receives}
        assert failed == set(left)
        assert not run.facts.offences, "a record is neither done nor parked nor reported"
        if failed:
            assert hanging.receipts == {message.receipt for message in left.values()}, f"no back-off, {hanging}"
        assert hanging.names or hanging.slow or hanging.first or not failed
        assert run.facts.counted, "no metrics"


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
