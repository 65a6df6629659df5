"""What a worker process takes from its surroundings: time, randomness, owner ids, threads and AWS clients.

All code reads these from `current()`. Tests install a Runtime of their own with `install()`.
"""

import http.client
import io
import os
import random
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import boto3
import urllib3.connection
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


def reserve_s() -> float:
    """Return the seconds that an invocation keeps for what follows its last commit or its last send."""
    return float(os.environ["RESERVE_S"])


class _TimedReader(io.RawIOBase):
    """Reads an answer from a socket. The socket's timeout bounds the whole answer, and not each read."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self._timeout_s = sock.gettimeout()
        self._began_s = time.monotonic()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._timeout_s is None:
            return self._raw.readinto(buffer)
        left_s = self._timeout_s - (time.monotonic() - self._began_s)
        if left_s <= 0:
            raise TimeoutError(f"the answer took more than {self._timeout_s} s")
        self._sock.settimeout(left_s)
        try:
            return self._raw.readinto(buffer)
        finally:
            self._sock.settimeout(self._timeout_s)  # the connection is used again

    def close(self) -> None:
        self._raw.close()
        super().close()


class TimedResponse(http.client.HTTPResponse):
    """An HTTP answer that must be complete within the read timeout: head, body and trailer together.

    A read timeout bounds each read: an answer that arrives byte by byte would outlive every deadline.
    https://docs.python.org/3/library/socket.html#socket.socket.settimeout
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_TimedReader(self.fp.detach(), sock))


# botocore and requests, which the SDK of the payment provider uses, both open connections of this class.
urllib3.connection.HTTPConnection.response_class = TimedResponse


def make_client(service: Service) -> Any:
    """Make a boto3 client with explicit timeouts. The default of 60 s and several tries would outlive any lease.

    botocore does not retry: a retry would hide whether an answer was lost or the request was refused, and botocore
    knows no deadline. The store sends DynamoDB writes again. All other requests are repeated with their message.

    In Lambda, parameter validation is off and the user agent is a constant: both cost 40% of a request's CPU time.
    Elsewhere, validation shows each wrong parameter.
    """
    config = Config(
        connect_timeout=float(os.environ["CLIENT_CONNECT_TIMEOUT_S"]),
        read_timeout=float(os.environ["CLIENT_READ_TIMEOUT_S"]),
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=50,  # more than the threads of a worker, so that no thread waits for a connection
        parameter_validation="AWS_LAMBDA_FUNCTION_NAME" not in os.environ,
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
