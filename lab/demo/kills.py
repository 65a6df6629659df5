"""Kill workers with SIGKILL while they hold a claim. Count a kill only if the engine found it later."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.local.local_deployment import LocalDeployment
from tools.local.observe import Tables

LOOK_EVERY_S = 0.05
# An attempt that ended may have left an older claim.
FRESH_S = 1.5


@dataclass(frozen=True)
class Kill:
    """The death of all workers of a function at `at_ms` (epoch milliseconds).

    `claims` maps the record keys of their claims to the owner tokens.
    """

    function: str
    pids: tuple[int, ...]
    claims: Mapping[str, str]
    at_ms: int = 0

    def is_proven_by(self, records: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether the engine found an attempt that did not end: another attempt took over as uncertain."""
        return any(
            key in records and records[key]["owner"] != owner and records[key].get("uncertain") is True
            for key, owner in self.claims.items()
        )


class Killer:
    """Watches the claims of a function and kills its workers while they hold one.

    `counts_for` gets a record key and pids. It returns whether a takeover of that claim would prove the kill.
    """

    def __init__(
        self, running: LocalDeployment, function: str, operation: str, counts_for: Callable[[str, Sequence[int]], bool]
    ) -> None:
        self.function = function
        self.kills: list[Kill] = []
        self._running = running
        self._name = running.outputs[f"{function}FunctionName"]
        self._operation = operation
        self._counts_for = counts_for
        self._tables = Tables(running)
        self._lease_s = _lease_s(running, self._name)

    def run(self, count: int, stop: threading.Event) -> None:
        """Kill until there are `count` kills or `stop` is set."""
        while len(self.kills) < count and not stop.wait(LOOK_EVERY_S):
            self.kill_workers()

    def kill_workers(self) -> Kill | None:
        """Kill all workers of the function if they are at work now. Returns None if they are not."""
        if not self._fresh():
            return None
        pids = self._running.workers(self._name)
        _signal(pids, signal.SIGSTOP)  # the table cannot change before they die
        claims = {key: owner for key, owner in self._fresh().items() if self._counts_for(key, pids)}
        if not claims:
            _signal(pids, signal.SIGCONT)
            return None
        _signal(pids, signal.SIGKILL)
        kill = Kill(self.function, tuple(pids), claims, time.time_ns() // 1_000_000)
        self.kills.append(kill)
        return kill

    def _fresh(self) -> dict[str, str]:
        """Fresh claims, except those of workers that were killed before."""
        dead = {owner for kill in self.kills for owner in kill.claims.values()}
        fresh_until_ms = (time.time() + self._lease_s - FRESH_S) * 1000
        return {
            record["id"]: record["owner"]
            for record in self._tables.records(self._operation)
            if record["status"] == "INPROGRESS"
            and record["in_progress_expiration"] > fresh_until_ms
            and record["owner"] not in dead
        }


def _lease_s(running: LocalDeployment, function_name: str) -> float:
    """Seconds of a lease: the timeout of the function and the clock skew."""
    configuration = running.client("lambda").get_function_configuration(FunctionName=function_name)
    return float(configuration["Timeout"]) + float(configuration["Environment"]["Variables"]["LEASE_SKEW_S"])


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
