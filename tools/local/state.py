"""What `make up` leaves behind so that others find the local AWS: `.local/` in the clone."""

import json
import shutil
from dataclasses import asdict, dataclass

from tools.local import processes
from tools.local.errors import LocalStackError
from tools.local.gateway import TOKEN_VARIABLE
from tools.local.ministack import ROOT, MiniStack
from tools.local.running import Running

DIRECTORY = ROOT / ".local"
STATE = DIRECTORY / "state.json"
OUTPUTS = DIRECTORY / "outputs.json"
ENVIRONMENT = DIRECTORY / "env"


@dataclass(frozen=True)
class State:
    """The process behind `.local/`. `started_at` tells it from a later one that got the same pid."""

    pid: int
    started_at: str
    port: int

    def is_alive(self) -> bool:
        return processes.started_at(self.pid) == self.started_at


def read() -> State | None:
    return State(**json.loads(STATE.read_text())) if STATE.exists() else None


def record_process(ministack: MiniStack) -> None:
    """Note the process as soon as there is one: `make down` must find it whatever happens next."""
    state = State(ministack.pid, processes.started_at(ministack.pid) or "", ministack.port)
    STATE.write_text(json.dumps(asdict(state)) + "\n")


def record_deployment(running: Running) -> None:
    """Write what clients read. The outputs come last: where they are, the app is ready."""
    ENVIRONMENT.touch(mode=0o600)  # the token is for this user only
    ENVIRONMENT.write_text("".join(f"{name}={value}\n" for name, value in running.environment.items()))
    OUTPUTS.write_text(json.dumps(running.outputs, indent=2) + "\n")


def running() -> Running:
    """The app that `make up` deployed. Raises LocalStackError if there is none."""
    state = read()
    if state is None or not state.is_alive() or not OUTPUTS.exists():
        raise LocalStackError("No local stack is running: `make up` starts one.")
    environment = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines())
    outputs = json.loads(OUTPUTS.read_text())
    return Running(environment["AWS_ENDPOINT_URL"], outputs, DIRECTORY / "tmp", environment[TOKEN_VARIABLE])


def clear() -> None:
    shutil.rmtree(DIRECTORY, ignore_errors=True)
