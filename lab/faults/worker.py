"""A handler with faults around it. Without a planned fault, the real handler gets event and context unchanged."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from lab.faults import hooks
from lab.faults.apply_fault import THIS, Machine, apply_fault
from lab.faults.fault_table import FaultTable, InjectedFault
from lab.faults.hooks import Exchange
from lab.faults.order_calls import Attribution, OrderCalls, order_calls_of
from lab.faults.plan import Fault, Kind, plan

Handler = Callable[[Any, Any], Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Stall:
    """Times of a stall, in seconds from the start of the invocation: see inject.Stall."""

    remaining_s: float
    again_s: float
    until_s: float
    queue_url: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Stall":
        """Read the environment. Raises KeyError with the name of a missing variable."""
        return cls(
            remaining_s=float(environment["FAULTS_REMAINING_S"]),
            again_s=float(environment["FAULTS_AGAIN_S"]),
            until_s=float(environment["FAULTS_STALL_S"]),
            queue_url=environment["QUEUE_URL"],
        )


@dataclass(frozen=True)
class Setup:
    """Variant, function and plan of a worker. `slow_s` is in seconds. `stall` is None for a step without a lease."""

    variant: str
    function: str
    seed: int
    percent: float
    slow_s: float
    stall: Stall | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Setup":
        """Read the environment that inject.py sets. Raises KeyError with the name of a missing variable."""
        return cls(
            variant=environment["FAULTS_VARIANT"],
            function=environment["FAULTS_FUNCTION"],
            seed=int(environment["FAULTS_SEED"]),
            percent=float(environment["FAULTS_PERCENT"]),
            slow_s=float(environment["FAULTS_SLOW_S"]),
            stall=Stall.of(environment) if "FAULTS_STALL_S" in environment else None,
        )

    def draw(self, order: str, receive: int) -> Fault | None:
        return plan(self.seed, self.percent, self.function, order, receive)


class ShortenedContext:
    """Lambda's context with less remaining time. All other attributes are unchanged."""

    def __init__(self, context: Any, remaining_s: float, elapsed: Callable[[], float]) -> None:
        self._context = context
        self._elapsed = elapsed
        self._end = elapsed() + remaining_s

    def get_remaining_time_in_millis(self) -> int:
        true: int = self._context.get_remaining_time_in_millis()
        return max(0, min(int((self._end - self._elapsed()) * 1000), true))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class Worker:
    """Calls the real handler and applies the faults of its messages."""

    def __init__(self, real: Handler, faults: FaultTable, sqs: Any, setup: Setup, machine: Machine = THIS) -> None:
        """`faults` and `sqs` use clients of their own, apart from those of the handler."""
        self._real = real
        self._faults = faults
        self._sqs = sqs
        self._setup = setup
        self._machine = machine

    def __call__(self, event: Any, context: Any) -> Any:
        all_calls = order_calls_of(event, self._setup.draw)
        armed = self._arm(all_calls)
        if not any(order_calls.fault for order_calls in all_calls):
            return self._real(event, context)
        started = self._machine.elapsed()
        stall = self._setup.stall
        if stall and any(order_calls.fault and order_calls.fault.kind is Kind.STALLED for order_calls in all_calls):
            context = ShortenedContext(context, stall.remaining_s, self._machine.elapsed)
        with hooks.guarded(self._guard(Attribution(all_calls), started)):
            try:
                return self._real(event, context)
            finally:
                if armed and armed.fault and not armed.applied:
                    fault = armed.fault
                    self._ask(lambda: self._faults.put_back(self._setup.variant, self._setup.function, fault))

    def _arm(self, all_calls: list[OrderCalls]) -> OrderCalls | None:
        """Give an armed fault to the first message, and none to the others: they could end the worker before."""
        if not all_calls:
            return None
        fault = self._ask(lambda: self._faults.take(self._setup.variant, self._setup.function))
        if fault is None:
            return None
        for order_calls in all_calls:
            order_calls.fault = None
        all_calls[0].fault = fault
        return all_calls[0]

    def _guard(self, attribution: Attribution, started: float) -> hooks.Guard:
        setup = self._setup

        def guard(exchange: Exchange) -> Any:
            for order_calls in attribution.due(exchange.text, exchange.has_effect):
                order_calls.applied = True
                if order_calls.fault and self._note(order_calls, order_calls.fault.kind):
                    stall_s = self._stall(order_calls, self._machine.elapsed() - started)
                    return apply_fault(
                        order_calls.fault.kind, exchange, self._machine, slow_s=setup.slow_s, stall_s=stall_s
                    )
            return exchange.send()

        return guard

    def _stall(self, order_calls: OrderCalls, elapsed_s: float) -> float:
        """Seconds to stall from now. Make SQS deliver the message again meanwhile."""
        stall = self._setup.stall
        if stall is None or order_calls.fault is None or order_calls.fault.kind is not Kind.STALLED:
            return 0.0
        again_s = max(0, int(stall.again_s - elapsed_s))
        self._ask(
            lambda: self._sqs.change_message_visibility(
                QueueUrl=stall.queue_url, ReceiptHandle=order_calls.receipt, VisibilityTimeout=again_s
            )
        )
        return max(0.0, stall.until_s - elapsed_s)

    def _note(self, order_calls: OrderCalls, kind: Kind) -> bool:
        """Record a fault in table and log before it is applied. A fault that cannot be recorded is not applied."""
        setup = self._setup
        injected = InjectedFault(
            setup.variant,
            setup.function,
            order_calls.order,
            order_calls.receive,
            order_calls.calls,
            order_calls.message,
            kind,
            time.time_ns() // 1_000_000,
            os.getpid(),
        )
        recorded = bool(self._ask(lambda: self._faults.record(injected)))
        if recorded:
            _log("fault injected", fault=asdict(injected))
        return recorded

    def _ask(self, call: Callable[[], T]) -> T | None:
        """Call table or queue without the hooks. On an error, log it and return None: the handler must not fail."""
        try:
            with hooks.unguarded():
                return call()
        except (BotoCoreError, ClientError) as error:
            _log("no fault injected", error=str(error), variant=self._setup.variant, function=self._setup.function)
            return None


def _log(message: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"message": message, **fields}) + "\n")
    sys.stdout.flush()  # the process may die next
