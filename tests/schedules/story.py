"""Stories: random runs with many orders, copies, delays, old replays, deleted records, different clocks and faults.

Hypothesis generates the stories. It shrinks a story that breaks an invariant to its shortest form.
"""

import json
import time
from typing import Any

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.schedules import provider
from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import Report
from tests.schedules.invariants import ALWAYS, FINALLY, a_late_claim_is_refused, broken
from tests.schedules.run import Run, Stuck
from tests.schedules.scenarios import Scenario, order_requested, queue, stream

METHODS = ("pm_card_visa", "pm_card_chargeDeclined", "pm_sandbox_error_after", "pm_sandbox_drop")
# Two workers' clocks may differ by as much as the lease allows for: LEASE_SKEW_S, 2 s, is 1 s to either side.
SKEW_MS = 1000
FAULTS = 6
# A late claim may be applied if clocks differ: docs/correctness.md, "late claim".
AT_EVERY_REST = tuple(rule for rule in ALWAYS if rule is not a_late_claim_is_refused)
STORY = Scenario("story", lambda *_: None, frozenset({"paid", "declined"}), mailed=True, relayed=True)


class Story(RuleBasedStateMachine):
    """The invariants hold whenever no worker runs, and every order ends."""

    environment: ExplorerEnvironment
    report: Report

    @initialize()
    def begin(self) -> None:
        self.trace: list[str] = []
        self.run: Run = Run(self.environment, FAULTS, most=2000, trace=self.trace)
        self.environment.run = self.run
        queue(self.run, "orders")
        stream(self.run)
        queue(self.run, "payments")
        queue(self.run, "emails")
        self.ordered: dict[str, str] = {}

    @rule(number=st.integers(1, 3), method=st.sampled_from(METHODS), copies=st.integers(1, 2))
    def order(self, number: int, method: str, copies: int) -> None:
        """A new order, or a copy of an order: one id, one request."""
        order_id = f"ord_{number}"
        method = self.ordered.setdefault(order_id, method)
        for _ in range(copies):
            self.run.model.queues.put("orders", {"MessageBody": order_requested(order_id, method)})

    @rule(data=st.data(), moves=st.integers(1, 12))
    def go_on(self, data: st.DataObject, moves: int) -> None:
        """Random moves, some with faults."""
        for _ in range(moves):
            if not self.run.active and not self.run.settle():
                return
            self.run.move(data.draw(st.sampled_from(self.run.moves()), label="move"))

    @rule(skew_ms=st.integers(-SKEW_MS, SKEW_MS))
    def clocks_differ(self, skew_ms: int) -> None:
        """Workers that start from now on have a different clock."""
        self.run.skew_ms = skew_ms

    @rule(seconds=st.integers(1, 120))
    def time_passes(self, seconds: int) -> None:
        """Leases expire, and messages become visible."""
        self.run.clock.advance(seconds)

    @precondition(lambda self: any(self.run.model.queues.sent.values()))
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        """A message of any age is delivered again: by SQS, from a DLQ, or by a person."""
        queues = self.run.model.queues
        name = data.draw(st.sampled_from([name for name, sent in queues.sent.items() if sent]), label="queue")
        message = data.draw(st.sampled_from(queues.sent[name]), label="message")
        queues.put(name, {"MessageBody": message.body})

    @precondition(lambda self: not self.run.active and self.forgettable())
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        """A record is deleted, by TTL or a person. Records of payments may be in progress."""
        key = data.draw(st.sampled_from(self.forgettable()), label="record")
        self.run.model.tables.call("DeleteItem", {"TableName": "idempotency", "Key": {"id": {"S": key}}})

    @rule()
    def a_day_at_the_provider(self) -> None:
        """The provider deletes its idempotency keys."""
        provider.forget_keys(self.run.model)

    @invariant()
    def the_promise_holds_at_every_rest(self) -> None:
        if not self.run.active:
            self.check(broken(STORY, self.run, AT_EVERY_REST))

    def forgettable(self) -> list[str]:
        """Return the records that may be deleted. There are none before the relay has read the stream.

        A record whose late claim may still arrive stays: docs/correctness.md, "late claim".
        """
        if any(source.label == "r" and source.next_ms() is not None for source in self.run.sources):
            return []
        records = self.run.model.tables.items["idempotency"]
        done = {key for (key,), record in records.items() if record["status"] == {"S": "COMPLETED"}}
        late = {key for request in self.run.late for key in request.key}
        return sorted((done | {key for (key,) in records if key.startswith("payment.charge#")}) - late)

    def check(self, wrong: list[str]) -> None:
        if wrong:
            note("\n".join(self.trace))
        assert not wrong

    def teardown(self) -> None:
        """Run to the end without more faults."""
        self.run.faults_left = 0
        try:
            while self.run.active or self.run.settle() or self.run.late:
                self.run.move(self.run.moves()[0])
        except Stuck as stuck:
            self.check([str(stuck)])
        if self.ordered:
            self.check(broken(STORY, self.run, AT_EVERY_REST + FINALLY))
            self.check(list(self.wrongly_ended()))
        self.report.schedules += 1
        self.report.ended += 1
        self.report.moves += len(self.trace)
        self.report.met.update(fault[-1] for fault in self.run.faults)

    def wrongly_ended(self) -> Any:
        """Yield the orders whose final state does not fit their card."""
        for (order_id,), row in self.run.model.tables.items["orders"].items():
            wanted = "declined" if "Declined" in self.ordered[order_id] else "paid"
            if row["state"] != {"S": wanted}:
                yield f"{order_id} ends {json.dumps(row['state'])}"


def tell(environment: ExplorerEnvironment, stories: int, steps: int, *, same_each_time: bool) -> Report:
    """Run a number of stories with a number of steps. `same_each_time`: the stories do not depend on a seed."""
    Story.environment = environment
    Story.report = Report("story", FAULTS, walk=True)
    begun = time.process_time()
    drawn = settings(
        max_examples=stories,
        stateful_step_count=steps,
        derandomize=same_each_time,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(Story, settings=drawn)
    except AssertionError as error:
        Story.report.violations.append(("", "\n".join([str(error), *getattr(error, "__notes__", ())])))
    Story.report.seconds = time.process_time() - begun
    return Story.report
