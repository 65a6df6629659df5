"""Kills workers hard in the middle of their work, and only counts a kill that provably was one."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.local.observe import Tables
from tools.local.running import Running

LOOK_EVERY_S = 0.05
# A claim with this much of its lease gone may have been left by a try that ended on its own.
FRESH_S = 1.5


@dataclass(frozen=True)
class Kill:
    """All workers of a function, ended at once. `held`: the claims they held then, record key to owner token.

    `at_ms`: when, in epoch milliseconds.
    """

    function: str
    pids: tuple[int, ...]
    held: Mapping[str, str]
    at_ms: int = 0

    def is_proven_by(self, records: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether the core itself found, later, that a try was cut short: another took over and was told uncertain."""
        return any(
            key in records and records[key]["owner"] != owner and records[key].get("uncertain") is True
            for key, owner in self.held.items()
        )


class Killer:
    """Watches a function's claims and kills its workers while they hold some.

    `counts_for` says whether a claim, by its key, may prove a kill of these workers: not if its try may end without a
    commit anyway, or is in other hands.
    """

    def __init__(
        self, running: Running, function: str, operation: str, counts_for: Callable[[str, Sequence[int]], bool]
    ) -> None:
        self.function = function
        self.kills: list[Kill] = []
        self._running = running
        self._name = running.outputs[f"{function}FunctionName"]
        self._operation = operation
        self._counts_for = counts_for
        self._tables = Tables(running)
        self._lease_s = _lease_s(running, self._name)

    def run(self, wanted: int, stop: threading.Event) -> None:
        """Kill until there are `wanted` kills or `stop` is set."""
        while len(self.kills) < wanted and not stop.wait(LOOK_EVERY_S):
            self.strike()

    def strike(self) -> Kill | None:
        """Kill all workers of the function if they are at work now, else nobody."""
        if not self._fresh():
            return None
        pids = self._running.workers(self._name)
        _signal(pids, signal.SIGSTOP)  # what the table says next is then true until they die
        held = {key: owner for key, owner in self._fresh().items() if self._counts_for(key, pids)}
        if not held:
            _signal(pids, signal.SIGCONT)
            return None
        _signal(pids, signal.SIGKILL)
        kill = Kill(self.function, tuple(pids), held, time.time_ns() // 1_000_000)
        self.kills.append(kill)
        return kill

    def _fresh(self) -> dict[str, str]:
        """The claims that workers seem to hold: fresh, and not left by those whom we killed before."""
        dead = {owner for kill in self.kills for owner in kill.held.values()}
        fresh_until_ms = (time.time() + self._lease_s - FRESH_S) * 1000
        return {
            record["id"]: record["owner"]
            for record in self._tables.records(self._operation)
            if record["status"] == "INPROGRESS"
            and record["in_progress_expiration"] > fresh_until_ms
            and record["owner"] not in dead
        }


def _lease_s(running: Running, function_name: str) -> float:
    """How long a claim of the function holds: to the end of its invocation, and the skew."""
    configuration = running.client("lambda").get_function_configuration(FunctionName=function_name)
    return float(configuration["Timeout"]) + float(configuration["Environment"]["Variables"]["LEASE_SKEW_S"])


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
