"""One MiniStack process: started on a port of its own, watched until it answers, ended with all its workers."""

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
from tools.local.errors import LocalStackError
from tools.local.gateway import END_WITH_STDIN, TOKEN_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
REGION = "eu-central-1"
START_DEADLINE_S = 60.0
# Below the ephemeral range, so that nobody's outgoing connection sits on the port that was just found free.
PORTS = range(20_000, 30_000)


def aws_environment(endpoint: str, token: str) -> dict[str, str]:
    """The variables that a client of the local AWS needs. They cannot reach a real account."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        TOKEN_VARIABLE: token,
    }


def clean_environment() -> dict[str, str]:
    """The caller's environment without its AWS settings: profiles, endpoints and credentials of real accounts."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return kept | {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    for port in random.sample(PORTS, 50):
        if is_free(port):
            return port
    raise LocalStackError("No free port was found between 20000 and 30000: name one with PORT=.")


class MiniStack:
    """The process. Its log is `<directory>/ministack.log`; its workers' folders lie in `<directory>/tmp`.

    Unless it `stays`, it ends with the process that started it, also when that one is killed.
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
        if self._process is None:
            raise LocalStackError("The local AWS was not started.")
        return self._process.pid

    def require_free_port(self) -> None:
        """Raises LocalStackError if somebody else has the port."""
        if not is_free(self.port):
            raise LocalStackError(f"Port {self.port} is taken. Name another: PORT=4567, or none to have one found.")

    def start(self, on_start: Callable[["MiniStack"], None] = lambda _: None) -> None:
        """Start it, tell `on_start` at once, and wait until it answers.

        Raises LocalStackError, with the end of its log, if it dies or is not there in time.
        """
        self.tmp.mkdir(parents=True)
        settings = {
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "IOT_MTLS_ENABLED": "0",  # its MQTT port would ignore BIND_HOST
            TOKEN_VARIABLE: self.token,  # the gateway demands it, Lambda workers inherit it
            "MINISTACK_REGION": REGION,
            "TMPDIR": str(self.tmp),  # it leaves its workers' folders behind: ours go with this directory
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
    try:
        with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2) as response:  # noqa: S310 - loopback
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
