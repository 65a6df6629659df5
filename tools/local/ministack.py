"""One MiniStack process: started on its own port, and stopped with all its workers."""

import os
import random
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tools.local import processes
from tools.local.gateway import END_WITH_STDIN, TOKEN_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
REGION = "eu-central-1"
START_DEADLINE_S = 60.0
# Below the ephemeral range, so that no outgoing connection takes the port after it was found free.
PORTS = range(20_000, 30_000)


class LocalStackError(Exception):
    """The local AWS or the deployment to it failed. The text ends with the last lines of the log."""

    def __init__(self, message: str, log: Path | None = None, lines: int = 15) -> None:
        super().__init__(message)
        self.tail = log.read_text(errors="replace").splitlines()[-lines:] if log and log.exists() else []

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  | {line}" for line in self.tail)])


def aws_environment(endpoint: str, token: str) -> dict[str, str]:
    """Return the variables that a client of the local AWS needs. They cannot reach a real account."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        TOKEN_VARIABLE: token,
    }


def clean_environment() -> dict[str, str]:
    """Return the environment without AWS settings: no profiles, endpoints or credentials of real accounts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return kept | {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def is_free(port: int) -> bool:
    """Return whether a server can listen on this port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a free port. Raises LocalStackError if none is found."""
    for port in random.sample(PORTS, 50):
        if is_free(port):
            return port
    raise LocalStackError("No free port was found from 20000 to 29999. Name one: PORT=4567")


class MiniStack:
    """The process. Its log is `<directory>/ministack.log`. The folders of its workers are in `<directory>/tmp`.

    Without `stays`, it ends with the process that started it, also if that process is killed.
    """

    def __init__(self, directory: Path, port: int, *, stays: bool = False) -> None:
        self.port = port
        self._stays = stays
        self.endpoint = f"http://127.0.0.1:{port}"
        self.token = secrets.token_urlsafe(32)
        self.log = directory / "ministack.log"
        self.tmp = directory / "tmp"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id. Raises LocalStackError before the start."""
        if self._process is None:
            raise LocalStackError("The local AWS was not started.")
        return self._process.pid

    def require_free_port(self) -> None:
        """Raise LocalStackError if another process has the port."""
        if not is_free(self.port):
            raise LocalStackError(f"Port {self.port} is taken. Name another one (PORT=4567), or none for a free one.")

    def start(self, on_start: Callable[["MiniStack"], None] = lambda _: None) -> None:
        """Start the process, call `on_start`, and wait until MiniStack answers.

        Raises LocalStackError with the end of the log if the process ends or does not answer in time.
        """
        self.tmp.mkdir(parents=True)
        settings = {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "IOT_MTLS_ENABLED": "0",  # the MQTT port ignores BIND_HOST
            TOKEN_VARIABLE: self.token,  # the gateway demands it, Lambda workers inherit it
            "MINISTACK_REGION": REGION,
            "TMPDIR": str(self.tmp),  # MiniStack leaves the folders of its workers behind
        }
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tools.local.gateway", *([] if self._stays else [END_WITH_STDIN])],
                cwd=ROOT,
                env=clean_environment() | settings,
                stdin=subprocess.DEVNULL if self._stays else subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # one group, so that its workers end with it
            )
        on_start(self)
        self._wait_until_it_answers(self._process)

    def stop(self) -> None:
        """Kill the process and its workers, and wait for its end."""
        if self._process is not None:
            self._process.poll()
            if self._process.returncode is None:
                processes.end_group(self._process.pid)
                self._process.wait()
            if self._process.stdin:
                self._process.stdin.close()

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_DEADLINE_S
        while not answers(self.endpoint):
            if process.poll() is not None:
                self.stop()
                raise LocalStackError(f"MiniStack ended at its start (status {process.returncode}).", log=self.log)
            if time.monotonic() > deadline:
                self.stop()
                raise LocalStackError(f"MiniStack does not answer after {START_DEADLINE_S:.0f} s.", log=self.log)
            time.sleep(0.05)


def answers(endpoint: str) -> bool:
    """Return whether MiniStack answers there."""
    try:
        with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2) as response:  # noqa: S310 - loopback
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
