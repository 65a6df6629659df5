"""What a worker process takes from its surroundings: time, randomness, owner ids, threads and AWS clients.

All code reads these from `current()`. Tests install a Runtime of their own with `install()`.
"""

import os
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import boto3
from botocore.config import Config

# The services that functions call. The layer ships the descriptions of these and of no other
# (stacks/constructs/assets.py).
Service = Literal["dynamodb", "s3", "secretsmanager", "sesv2", "sqs"]

T = TypeVar("T")


class Clock(Protocol):
    """Time, as all code of a worker reads it."""

    def now_ms(self) -> int:
        """Return epoch milliseconds."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of the machine."""

    def now_ms(self) -> int:
        """Return epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def iso(now_ms: int) -> str:
    """Format epoch milliseconds as RFC 3339 text in UTC, to the millisecond."""
    seconds, ms = divmod(now_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03d}Z"


def request_s() -> float:
    """Return the seconds that one AWS request may take: connect, then read. botocore does not retry."""
    return float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]) + float(os.environ["CLIENT_READ_TIMEOUT_S"])


def make_client(service: Service) -> Any:
    """Make a boto3 client with explicit timeouts. The default of 60 s and several tries would outlive any lease.

    botocore does not retry: a retry would hide whether an answer was lost or the request was refused, and botocore
    knows no deadline. The store sends DynamoDB writes again. All other requests are repeated with their message.

    Parameter validation is off and the user agent is a constant: both cost 40% of a request's CPU time.
    """
    config = Config(
        connect_timeout=float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]),
        read_timeout=float(os.environ["CLIENT_READ_TIMEOUT_S"]),
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=50,  # more than the threads of a worker, so that no thread waits for a connection
        parameter_validation=False,
        user_agent=f"Boto3/{boto3.__version__} effectively-once",
    )
    return boto3.client(service, config=config)


def new_owner() -> str:
    """Return a fencing token: 128 random bits, different for every attempt."""
    return os.urandom(16).hex()


@dataclass(slots=True)
class Runtime:
    """The surroundings of one worker process. Safe to share between threads."""

    clock: Clock = field(default_factory=SystemClock)
    rng: random.Random = field(default_factory=random.SystemRandom)
    new_owner: Callable[[], str] = new_owner
    pool: Callable[[int], Executor] = ThreadPoolExecutor  # from a number of threads
    make_client: Callable[[Service], Any] = make_client
    _singles: dict[object, Any] = field(init=False, default_factory=dict)
    _lock: threading.RLock = field(init=False, default_factory=threading.RLock)

    def client(self, service: Service) -> Any:
        """Return the process's client of a service. Making one takes 50 ms."""
        return self.single(service, lambda: self.make_client(service))

    def single(self, key: object, make: Callable[[], T]) -> T:
        """Return the one object of this process under a key, made on first use. Concurrent threads get the same one."""
        with self._lock:
            if key not in self._singles:
                self._singles[key] = make()
            found: T = self._singles[key]
            return found


_installed = Runtime()


def current() -> Runtime:
    """Return the runtime of this process."""
    return _installed


def install(runtime: Runtime) -> Runtime:
    """Replace the runtime of this process. Returns the runtime that was installed before."""
    global _installed
    before, _installed = _installed, runtime
    return before


def client(service: Service) -> Any:
    """Return the process's boto3 client of a service."""
    return _installed.client(service)


def epoch_ms() -> int:
    """Return epoch milliseconds."""
    return _installed.clock.now_ms()
