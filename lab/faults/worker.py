"""A handler with faults around it. Where none is due, the handler gets what it would get without."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from lab.faults import hooks
from lab.faults.arm import Faults, Injected
from lab.faults.hooks import Exchange
from lab.faults.plan import Fault, Kind, plan
from lab.faults.strands import Attribution, Strand, strands_of
from lab.faults.strike import THIS, Machine, strike

Handler = Callable[[Any, Any], Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Stall:
    """Of a worker that stalls, in seconds from its start.

    `remaining_s`: what it is told of its time, so that its lease ends early; `again_s`: when its message is delivered
    again, on `queue_url`, the lease being over; `until_s`: when it goes on.
    """

    remaining_s: float
    again_s: float
    until_s: float
    queue_url: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Stall":
        """Raises KeyError naming the variable that is not set."""
        return cls(
            remaining_s=float(environment["FAULTS_REMAINING_S"]),
            again_s=float(environment["FAULTS_AGAIN_S"]),
            until_s=float(environment["FAULTS_STALL_S"]),
            queue_url=environment["QUEUE_URL"],
        )


@dataclass(frozen=True)
class Setup:
    """Where a worker stands, and what it draws from. `slow_s`: seconds; `stall` is None where there is no lease."""

    lane: str
    function: str
    seed: int
    percent: float
    slow_s: float
    stall: Stall | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Setup":
        """As inject.py has written it. Raises KeyError naming the variable that is not set."""
        return cls(
            lane=environment["FAULTS_LANE"],
            function=environment["FAULTS_FUNCTION"],
            seed=int(environment["FAULTS_SEED"]),
            percent=float(environment["FAULTS_PERCENT"]),
            slow_s=float(environment["FAULTS_SLOW_S"]),
            stall=Stall.of(environment) if "FAULTS_STALL_S" in environment else None,
        )

    def draw(self, order: str, receive: int) -> Fault | None:
        return plan(self.seed, self.percent, self.function, order, receive)


class Hurried:
    """Lambda's context for a worker that thinks it has less time than it has; all else is as it was."""

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
    """Calls the real handler, with the faults that its messages are due."""

    def __init__(self, real: Handler, faults: Faults, sqs: Any, setup: Setup, machine: Machine = THIS) -> None:
        """`faults` and `sqs` with clients of their own, which share nothing with those that are watched."""
        self._real = real
        self._faults = faults
        self._sqs = sqs
        self._setup = setup
        self._machine = machine

    def __call__(self, event: Any, context: Any) -> Any:
        strands = strands_of(event, self._setup.draw)
        armed = self._arm(strands)
        if not any(strand.fault for strand in strands):
            return self._real(event, context)
        started = self._machine.elapsed()
        stall = self._setup.stall
        if stall and any(strand.fault and strand.fault.kind is Kind.STALLED for strand in strands):
            context = Hurried(context, stall.remaining_s, self._machine.elapsed)
        with hooks.guarded(self._guard(Attribution(strands), started)):
            try:
                return self._real(event, context)
            finally:
                if armed and armed.fault and not armed.struck:
                    fault = armed.fault
                    self._ask(lambda: self._faults.put_back(self._setup.lane, self._setup.function, fault))

    def _arm(self, strands: list[Strand]) -> Strand | None:
        """Give what is armed to the first message, and nothing to the others, which might end the worker before."""
        if not strands:
            return None
        fault = self._ask(lambda: self._faults.take(self._setup.lane, self._setup.function))
        if fault is None:
            return None
        for strand in strands:
            strand.fault = None
        strands[0].fault = fault
        return strands[0]

    def _guard(self, attribution: Attribution, started: float) -> hooks.Guard:
        setup = self._setup

        def guard(exchange: Exchange) -> Any:
            for strand in attribution.due(exchange.text, exchange.has_effect):
                strand.struck = True
                if strand.fault and self._note(strand, strand.fault.kind):
                    stall_s = self._stall(strand, self._machine.elapsed() - started)
                    return strike(strand.fault.kind, exchange, self._machine, slow_s=setup.slow_s, stall_s=stall_s)
            return exchange.send()

        return guard

    def _stall(self, strand: Strand, elapsed_s: float) -> float:
        """How long to stall from now, in seconds; the message is to be delivered again while this worker does."""
        stall = self._setup.stall
        if stall is None or strand.fault is None or strand.fault.kind is not Kind.STALLED:
            return 0.0
        again_s = max(0, int(stall.again_s - elapsed_s))
        self._ask(
            lambda: self._sqs.change_message_visibility(
                QueueUrl=stall.queue_url, ReceiptHandle=strand.receipt, VisibilityTimeout=again_s
            )
        )
        return max(0.0, stall.until_s - elapsed_s)

    def _note(self, strand: Strand, kind: Kind) -> bool:
        """Into the table and the log, before it strikes. What can not be noted does not strike."""
        setup = self._setup
        injected = Injected(
            setup.lane,
            setup.function,
            strand.order,
            strand.receive,
            strand.calls,
            strand.message,
            kind,
            time.time_ns() // 1_000_000,
            os.getpid(),
        )
        noted = bool(self._ask(lambda: self._faults.note(injected)))
        if noted:
            _log("fault injected", fault=asdict(injected))
        return noted

    def _ask(self, call: Callable[[], T]) -> T | None:
        """Ask table or queue, past the hooks. Their trouble is not the handler's: None, and a line in the log."""
        try:
            with hooks.unguarded():
                return call()
        except (BotoCoreError, ClientError) as error:
            _log("no fault injected", error=str(error), lane=self._setup.lane, function=self._setup.function)
            return None


def _log(message: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"message": message, **fields}) + "\n")
    sys.stdout.flush()  # the process may not live to do it
