"""What the buttons do. Each says what it did, or raises CouldNot saying why it did nothing."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from tools.domain import orders_queue
from tools.local.observe import QUEUES, Queues
from tools.local.running import Running
from tools.operate.audit import Auditor
from tools.operate.deployment import Deployment
from tools.operate.redrive import Selection, redrive
from tools.progress import Steps

from lab.console.book import Armed, Book
from lab.console.view import TITLES
from lab.contrast.collect import collect
from lab.contrast.verdict import judge
from lab.demo.lanes import OURS, Lane
from lab.demo.sender import Sent
from lab.faults.arm import Faults
from lab.faults.plan import Fault, Kind

A_HUNDRED = 100
DECLINED_EACH = 10  # of a hundred orders every tenth has a card that is declined
CLIENTS = 8
ARMED = {
    Kind.DIE_AFTER: "the worker is killed as soon as its charge is made, before it can note it",
    Kind.ANSWER_LOST: "the charge is made and its answer never arrives",
    Kind.STALLED: "the worker stands still before the charge until its lease is over, then goes on",
}


class CouldNot(Exception):
    """Nothing was done; why, for a person."""


@dataclass(frozen=True)
class Said:
    """What was done. `report`: of an audit, per lane what was found."""

    text: str
    report: Sequence[dict[str, Any]] = ()


class Actions:
    """Each by its name, beside others but not beside itself."""

    def __init__(self, running: Running, lanes: Sequence[Lane], book: Book) -> None:
        self._running = running
        self._lanes = lanes
        self._book = book
        self._queues = {lane: orders_queue(lane.of(running)) for lane in lanes}
        self._lambda = running.client("lambda")
        self._faults = Faults(running.client("dynamodb"), running.outputs["FaultsTableName"])
        self._all: dict[str, Callable[[], Said]] = {
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

    def __call__(self, name: str) -> Said:
        """Raises CouldNot, or what the local AWS raises."""
        if not self._at_work[name].acquire(blocking=False):
            raise CouldNot("Not done a second time: the first is still at work.")
        try:
            return self._all[name]()
        finally:
            self._at_work[name].release()

    def _send(self, copies: int, *, pays: bool = True) -> Said:
        entry = self._book.open(copies, pays=pays)
        for _ in range(copies):
            at_ms = time.time_ns() // 1_000_000
            for lane in self._lanes:
                self._queues[lane].put(lane.event(entry.order_id, entry.data))
            entry.sends.append(Sent(entry.order_id, at_ms, "straight to the queue"))
        times = "" if copies == 1 else f", {copies} times"
        return Said(f"Order {entry.number} went to every pipeline{times}.")

    def _send_hundred(self) -> Said:
        first = self._book.total + 1
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(lambda n: self._send(1, pays=n % DECLINED_EACH != 0), range(A_HUNDRED)))
        declined = A_HUNDRED // DECLINED_EACH
        return Said(f"Orders {first} to {self._book.total} went to every pipeline; {declined} cards will be declined.")

    def _arm(self, kind: Kind) -> Said:
        self._book.armed = Armed(kind, time.time_ns() // 1_000_000)
        for lane in self._lanes:
            self._faults.arm(lane.name, "payment", Fault(kind))
        return Said(f"Armed in every pipeline: at its next charge {ARMED[kind]}. Send an order.")

    def _providers(self) -> Iterator[str]:
        for lane in self._lanes:
            yield lane.of(self._running).outputs["PaymentSandboxFunctionName"]

    def _is_stopped(self, function: str) -> bool:
        found = self._lambda.get_function_concurrency(FunctionName=function)
        return bool(found.get("ReservedConcurrentExecutions") == 0)

    def _stop_provider(self) -> Said:
        """Lambda's own emergency stop: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html"""
        if all(map(self._is_stopped, self._providers())):
            raise CouldNot("Nothing to stop: the payment provider is stopped already.")
        for function in self._providers():
            self._lambda.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)
        return Said("The payment provider answers nobody now. Orders wait; after some minutes they go to a DLQ.")

    def _start_provider(self) -> Said:
        if not any(map(self._is_stopped, self._providers())):
            raise CouldNot("Nothing to start: the payment provider is running.")
        for function in self._providers():
            self._lambda.delete_function_concurrency(FunctionName=function)
        return Said("The payment provider answers again.")

    def _replay(self) -> Said:
        moved = dict.fromkeys(self._lanes, 0)
        for lane in self._lanes:
            deployment, queues = self._deployment(lane), Queues(lane.of(self._running))
            for queue in map(str.lower, QUEUES):
                if not queues.depth(f"{queue.capitalize()}Dlq").total:
                    continue  # a redrive takes seconds to be sure of an empty one
                done = redrive(deployment, Selection(queue, everything=True))
                moved[lane] += done.moved.total()
                if done.failed:
                    raise CouldNot(f"{TITLES[lane.name]}, {queue}: {done.failed} stay where they are.")
        if not any(moved.values()):
            raise CouldNot("Nothing to replay: no message lies in a DLQ.")
        counts = ", ".join(f"{TITLES[lane.name]} {count}" for lane, count in moved.items())
        return Said(f"Messages put back from the DLQs: {counts}.")

    def _audit(self) -> Said:
        if any(map(self._is_stopped, self._providers())):
            raise CouldNot("No audit: the payment provider is stopped, and with it its ledger. Start it first.")
        entries = self._book.entries()
        if not entries:
            raise CouldNot("Nothing to audit: no order was sent yet.")
        report = [self._judged(lane) for lane in self._lanes]
        wronged = ", ".join(f"{each['title']} {each['wronged']}" for each in report)
        early = sum(each["unfinished"] for each in report)
        so_far = f" {early} are still on their way, so ask again when they are through." if early else ""
        parked = sum(len(each["parked"]) for each in report)
        aside = f" {parked} are in a DLQ: nothing in it is lost, and a replay goes on with it." if parked else ""
        return Said(f"Audit of {len(entries)} orders. Wronged: {wronged}.{so_far}{aside}", report)

    def _judged(self, lane: Lane) -> dict[str, Any]:
        """By the same witnesses in every lane; ours by an operator's audit (`make audit`) besides."""
        expected = [lane.expected(entry.expected) for entry in self._book.entries()]
        verdict = judge(expected, collect(lane, self._running))
        wrong = {
            "charged more than once": verdict.charged_twice,
            "mailed more than once": verdict.mailed_twice,
            # Of an order that is on its way nobody can say this yet.
            "charged, and no row says so": tuple(id for id in verdict.charged_not_recorded if id not in verdict.stuck),
            "not finished, and no message is left": verdict.lost,
        }
        findings = [{"what": what, "orders": list(ids)} for what, ids in wrong.items() if ids]
        if lane is OURS:
            operator = Auditor(self._deployment(lane), Steps(Console(quiet=True)), 0).run()
            findings += [
                {"what": f"make audit: {each.kind}, {each.detail}", "orders": [each.order_id]}
                for each in operator.wrong
                if each.order_id not in verdict.stuck
                and not (each.order_id in verdict.parked and each.kind in ("late", "parked"))
            ]
        wronged = {order_id for each in findings for order_id in each["orders"]}
        return {
            "title": TITLES[lane.name],
            "findings": findings,
            "wronged": len(wronged),
            "parked": list(verdict.parked),
            "unfinished": len(verdict.stuck),
            "by": "the same witnesses, and `make audit`" if lane is OURS else "ledger, mailbox, rows, queues",
        }

    def _deployment(self, lane: Lane) -> Deployment:
        running = lane.of(self._running)
        return Deployment("local", f"local at {running.endpoint}", running.outputs, running.session, running.endpoint)
