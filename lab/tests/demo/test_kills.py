"""A kill hits workers that hold a claim, and counts only where the core itself found later that a try was cut short."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import pytest

from lab.demo import kills
from lab.demo.kills import Kill, Killer

KILL = Kill("Payment", (4711,), {"payment.charge#ord_1": "mine"})
KEY = "payment.charge#ord_1"


@pytest.mark.parametrize(
    ("record", "proven"),
    [
        ({"owner": "next", "uncertain": True}, True),
        ({"owner": "mine", "uncertain": False}, False),  # it committed before it died
        ({"owner": "next", "uncertain": False}, False),  # it gave its claim back before it died
    ],
)
def test_only_a_takeover_as_uncertain_proves_it(record: dict[str, Any], proven: bool) -> None:
    assert KILL.is_proven_by({KEY: record}) is proven


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


class FakeDeployment:
    """One function with one worker and a timeout of ten seconds; a lease lasts eleven."""

    def __init__(self, pid: int) -> None:
        self.outputs = {"PaymentFunctionName": "payment"}
        self._pid = pid

    def workers(self, _: str) -> list[int]:
        return [self._pid]

    def client(self, _: str) -> "FakeDeployment":
        return self

    def get_function_configuration(self, **_: str) -> dict[str, Any]:
        return {"Timeout": 10, "Environment": {"Variables": {"LEASE_SKEW_S": "1"}}}


class Tables:
    claims: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, _: Any) -> None: ...

    def records(self, _: str) -> list[dict[str, Any]]:
        return self.claims


def claim(**other: Any) -> dict[str, Any]:
    lease_until_ms = (time.time() + 11) * 1000
    return {"id": KEY, "owner": "mine", "status": "INPROGRESS", "in_progress_expiration": lease_until_ms} | other


def killer(
    monkeypatch: pytest.MonkeyPatch, worker: subprocess.Popen[bytes], mine: bool = True, **record: Any
) -> Killer:
    monkeypatch.setattr(kills, "Tables", Tables)
    monkeypatch.setattr(Tables, "claims", [claim(**record)])
    running: Any = FakeDeployment(worker.pid)

    def counts(key: str, pids: Sequence[int]) -> bool:
        assert (key, [*pids]) == (KEY, [worker.pid])
        return mine

    return Killer(running, "Payment", "payment.charge", counts)


def test_a_worker_with_a_fresh_claim_is_killed(
    monkeypatch: pytest.MonkeyPatch, worker: subprocess.Popen[bytes]
) -> None:
    kill = killer(monkeypatch, worker).kill_workers()
    assert kill is not None
    assert (kill.pids, kill.claims) == ((worker.pid,), {KEY: "mine"})
    assert worker.wait(timeout=10) == -9


OLD_MS = 1_000


@pytest.mark.parametrize(
    "not_at_work", [{"status": "COMPLETED"}, {"in_progress_expiration": OLD_MS}, {"mine": False}], ids=str
)
def test_a_worker_without_one_lives_on(
    monkeypatch: pytest.MonkeyPatch, worker: subprocess.Popen[bytes], not_at_work: dict[str, Any]
) -> None:
    assert killer(monkeypatch, worker, **not_at_work).kill_workers() is None
    assert worker.poll() is None


def test_the_claim_of_a_killed_worker_proves_no_second_kill(
    monkeypatch: pytest.MonkeyPatch, worker: subprocess.Popen[bytes]
) -> None:
    once = killer(monkeypatch, worker)
    assert once.kill_workers()
    assert once.kill_workers() is None
    assert len(once.kills) == 1
