"""The actions behind the buttons. Each returns what it did, or raises ActionRefused with the reason."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from tools.domain import orders_queue
from tools.local.local_deployment import LocalDeployment
from tools.local.observe import QUEUES, Queues
from tools.operate.audit import Auditor
from tools.operate.deployment import Deployment
from tools.operate.redrive import Selection, redrive
from tools.progress import Steps

from lab.console.page_state import TITLES
from lab.console.sent_orders import Armed, SentOrders
from lab.demo.sender import SentMessage
from lab.faults.fault_table import FaultTable
from lab.faults.plan import Fault, Kind
from lab.variants import THIS_REPO, Variant
from lab.variants.observation import observe
from lab.variants.outcomes import classify

A_HUNDRED = 100
DECLINED_EACH = 10  # of a hundred orders every tenth has a card that is declined
CLIENTS = 8
ARMED = {
    Kind.DIE_AFTER: "the worker dies after the charge, before it can record the charge",
    Kind.ANSWER_LOST: "the card is charged, and the answer is lost",
    Kind.STALLED: "the worker stalls before the charge until its lease has expired, then continues",
}


class ActionRefused(Exception):
    """Nothing was done. The message tells a person why."""


@dataclass(frozen=True)
class ActionResult:
    """What was done. `report` holds the findings of an audit for each variant."""

    text: str
    report: Sequence[dict[str, Any]] = ()


class Actions:
    """Actions by name. An action may run beside others, not twice at once."""

    def __init__(self, running: LocalDeployment, variants: Sequence[Variant], sent_orders: SentOrders) -> None:
        self._running = running
        self._variants = variants
        self._sent_orders = sent_orders
        self._queues = {variant: orders_queue(variant.of(running)) for variant in variants}
        self._lambda = running.client("lambda")
        self._faults = FaultTable(running.client("dynamodb"), running.outputs["FaultsTableName"])
        self._all: dict[str, Callable[[], ActionResult]] = {
            "send-one": lambda: self._send(1),
            "send-five-times": lambda: self._send(5),
            "send-hundred": self._send_hundred,
            "kill": lambda: self._arm(Kind.DIE_AFTER),
            "drop": lambda: self._arm(Kind.ANSWER_LOST),
            "stall": lambda: self._arm(Kind.STALLED),
            "stop-provider": self._stop_provider,
            "start-provider": self._start_provider,
            "replay": self._replay,
            "audit": self._audit,
        }
        self._at_work = {name: threading.Lock() for name in self._all}

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def __call__(self, name: str) -> ActionResult:
        """Raises CouldNot, or what the local AWS raises."""
        if not self._at_work[name].acquire(blocking=False):
            raise ActionRefused("This action is still running.")
        try:
            return self._all[name]()
        finally:
            self._at_work[name].release()

    def _send(self, copies: int, *, pays: bool = True) -> ActionResult:
        entry = self._sent_orders.add(copies, pays=pays)
        for _ in range(copies):
            at_ms = time.time_ns() // 1_000_000
            for variant in self._variants:
                self._queues[variant].put(variant.event(entry.order_id, entry.data))
            entry.sends.append(SentMessage(entry.order_id, at_ms, "straight to the queue"))
        times = "" if copies == 1 else f", {copies} times"
        return ActionResult(f"Order {entry.number} was sent to both pipelines{times}.")

    def _send_hundred(self) -> ActionResult:
        first = self._sent_orders.total + 1
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(lambda n: self._send(1, pays=n % DECLINED_EACH != 0), range(A_HUNDRED)))
        declined = A_HUNDRED // DECLINED_EACH
        return ActionResult(
            f"Orders {first} to {self._sent_orders.total} were sent to both pipelines; {declined} will be declined."
        )

    def _arm(self, kind: Kind) -> ActionResult:
        self._sent_orders.armed = Armed(kind, time.time_ns() // 1_000_000)
        for variant in self._variants:
            self._faults.arm(variant.name, "payment", Fault(kind))
        return ActionResult(f"Armed in both pipelines. At the next charge {ARMED[kind]}. Send an order.")

    def _providers(self) -> Iterator[str]:
        for variant in self._variants:
            yield variant.of(self._running).outputs["PaymentSandboxFunctionName"]

    def _is_stopped(self, function: str) -> bool:
        answer = self._lambda.get_function_concurrency(FunctionName=function)
        return bool(answer.get("ReservedConcurrentExecutions") == 0)

    def _stop_provider(self) -> ActionResult:
        """Lambda's own emergency stop: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html"""
        if all(map(self._is_stopped, self._providers())):
            raise ActionRefused("The payment provider is stopped already.")
        for function in self._providers():
            self._lambda.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
        return ActionResult(
            "The payment provider does not answer now. Orders wait, and move to a DLQ after some minutes."
        )

    def _start_provider(self) -> ActionResult:
        if not any(map(self._is_stopped, self._providers())):
            raise ActionRefused("The payment provider is running already.")
        for function in self._providers():
            self._lambda.delete_function_concurrency(FunctionName=function)
        return ActionResult("The payment provider answers again.")

    def _replay(self) -> ActionResult:
        moved = dict.fromkeys(self._variants, 0)
        for variant in self._variants:
            deployment, queues = self._deployment(variant), Queues(variant.of(self._running))
            for queue in map(str.lower, QUEUES):
                if not queues.depth(f"{queue.capitalize()}Dlq").total:
                    continue  # a redrive of an empty queue takes seconds
                done = redrive(deployment, Selection(queue, everything=True))
                moved[variant] += done.moved.total()
                if done.failed:
                    raise ActionRefused(f"{TITLES[variant.name]}, {queue}: {done.failed} messages could not be moved.")
        if not any(moved.values()):
            raise ActionRefused("No message is in a DLQ.")
        counts = ", ".join(f"{TITLES[variant.name]} {count}" for variant, count in moved.items())
        return ActionResult(f"Messages moved back from the DLQs: {counts}.")

    def _audit(self) -> ActionResult:
        if any(map(self._is_stopped, self._providers())):
            raise ActionRefused("The payment provider is stopped, so its ledger cannot be read. Start it first.")
        entries = self._sent_orders.all()
        if not entries:
            raise ActionRefused("No order was sent yet.")
        report = [self._judged(variant) for variant in self._variants]
        failed_orders = ", ".join(f"{each['title']} {each['failed_orders']}" for each in report)
        early = sum(each["unfinished"] for each in report)
        so_far = f" {early} are not final yet: run the audit again later." if early else ""
        parked = sum(len(each["parked"]) for each in report)
        aside = f" {parked} are in a DLQ: not lost, a replay continues them." if parked else ""
        return ActionResult(f"Audit of {len(entries)} orders. Failed: {failed_orders}.{so_far}{aside}", report)

    def _judged(self, variant: Variant) -> dict[str, Any]:
        """Findings by the same rules for each variant, and by `make audit` for this repository as well."""
        expected = [variant.expected(entry.expected) for entry in self._sent_orders.all()]
        outcomes = classify(expected, observe(variant, self._running))
        wrong = {
            "charged more than once": outcomes.charged_twice,
            "emailed more than once": outcomes.mailed_twice,
            # An order that is not final may be recorded later.
            "charged, not recorded": tuple(id for id in outcomes.charged_not_recorded if id not in outcomes.stuck),
            "not final, and no message left": outcomes.lost,
        }
        findings = [{"what": what, "orders": list(ids)} for what, ids in wrong.items() if ids]
        if variant is THIS_REPO:
            operator = Auditor(self._deployment(variant), Steps(Console(quiet=True)), 0).run()
            findings += [
                {"what": f"make audit: {each.kind}, {each.detail}", "orders": [each.order_id]}
                for each in operator.wrong
                if each.order_id not in outcomes.stuck
                and not (each.order_id in outcomes.parked and each.kind in ("late", "parked"))
            ]
        failed_orders = {order_id for each in findings for order_id in each["orders"]}
        return {
            "title": TITLES[variant.name],
            "findings": findings,
            "failed_orders": len(failed_orders),
            "parked": list(outcomes.parked),
            "unfinished": len(outcomes.stuck),
            "by": "the same, and `make audit`" if variant is THIS_REPO else "ledger, mailbox, rows and queues",
        }

    def _deployment(self, variant: Variant) -> Deployment:
        running = variant.of(self._running)
        return Deployment("local", f"local at {running.endpoint}", running.outputs, running.session, running.endpoint)
