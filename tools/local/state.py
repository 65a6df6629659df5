"""The files that `make up` writes for clients of the local AWS: `.local/` in the clone."""

import json
import shutil
from dataclasses import asdict, dataclass

from tools.local import processes
from tools.local.gateway import TOKEN_VARIABLE
from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import ROOT, LocalStackError, MiniStack

DIRECTORY = ROOT / ".local"
STATE = DIRECTORY / "state.json"
OUTPUTS = DIRECTORY / "outputs.json"
ENVIRONMENT = DIRECTORY / "env"


@dataclass(frozen=True)
class State:
    """The MiniStack process of `.local/`. `started_at` distinguishes it from a later process with the same pid."""

    pid: int
    started_at: str
    port: int

    def is_alive(self) -> bool:
        """Return whether the process still runs."""
        return processes.started_at(self.pid) == self.started_at


def read() -> State | None:
    """Return the recorded process, or None if there is none."""
    return State(**json.loads(STATE.read_text())) if STATE.exists() else None


def record_process(ministack: MiniStack) -> None:
    """Record the process right after its start: `make down` must find it even if `make up` is interrupted."""
    state = State(ministack.pid, processes.started_at(ministack.pid) or "", ministack.port)
    STATE.write_text(json.dumps(asdict(state)) + "\n")


def record_deployment(running: LocalDeployment) -> None:
    """Write the files for clients. The outputs are written last: if that file exists, the application is ready."""
    ENVIRONMENT.touch(mode=0o600)  # the file holds the token
    ENVIRONMENT.write_text("".join(f"{name}={value}\n" for name, value in running.environment.items()))
    OUTPUTS.write_text(json.dumps(running.outputs, indent=2) + "\n")


def running() -> LocalDeployment:
    """Return the application that `make up` deployed. Raises LocalStackError if it does not run."""
    state = read()
    if state is None or not state.is_alive() or not OUTPUTS.exists():
        raise LocalStackError("No local AWS is running. `make up` starts one.")
    environment = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines())
    outputs = json.loads(OUTPUTS.read_text())
    return LocalDeployment(environment["AWS_ENDPOINT_URL"], outputs, DIRECTORY / "tmp", environment[TOKEN_VARIABLE])


def clear() -> None:
    """Delete `.local/`."""
    shutil.rmtree(DIRECTORY, ignore_errors=True)
