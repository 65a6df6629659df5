"""`make up` and `make down` touch the process that they started and no other."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.local import __main__ as command
from tools.local import processes, state
from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import LocalStackError, MiniStack

OUTPUTS = {"ApiUrl": "http://127.0.0.1:4567/api", "PaymentSandboxFunctionName": "sandbox-1"}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `.local/` of the test's own."""
    here = tmp_path / ".local"
    here.mkdir()
    monkeypatch.setattr(state, "DIRECTORY", here)
    for name in ("STATE", "OUTPUTS", "ENVIRONMENT"):
        monkeypatch.setattr(state, name, here / getattr(state, name).name)
    return here


@pytest.fixture
def somebody() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads its own group."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    yield process
    process.kill()
    process.communicate()


def recorded(pid: int, started_at: str | None, outputs: bool = True) -> None:
    state.STATE.write_text(json.dumps({"pid": pid, "started_at": started_at, "port": 4567}))
    if outputs:
        state.record_deployment(LocalDeployment("http://127.0.0.1:4567", OUTPUTS, state.DIRECTORY / "tmp", "token-1"))


def test_clients_read_the_token_from_a_file_of_this_user_only() -> None:
    recorded(os.getpid(), processes.started_at(os.getpid()))
    assert "AWS_SESSION_TOKEN=token-1\n" in state.ENVIRONMENT.read_text()
    assert state.ENVIRONMENT.stat().st_mode & 0o077 == 0
    running = state.running()
    assert (running.endpoint, running.local_key) == ("http://127.0.0.1:4567", {"X-Local-Key": "token-1"})
    assert running.session.get_credentials().token == "token-1"


def test_each_local_aws_has_a_token_of_its_own(tmp_path: Path) -> None:
    first, second = (MiniStack(tmp_path, 4567).token for _ in range(2))
    assert first != second
    assert len(first) >= 32


def test_up_a_second_time_starts_nothing_and_says_how_to_deploy_anew(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(os.getpid(), processes.started_at(os.getpid()))
    command.up(port=None)
    assert "Already up on port 4567" in capsys.readouterr().out


def test_down_ends_the_recorded_process_and_clears_its_files(
    somebody: subprocess.Popen[bytes], directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(somebody.pid, processes.started_at(somebody.pid))
    command.down()
    assert somebody.wait(timeout=10) != 0
    assert not directory.exists()
    assert "port 4567 is gone" in capsys.readouterr().out


def test_down_leaves_a_process_alone_that_only_got_the_same_pid(
    somebody: subprocess.Popen[bytes], directory: Path
) -> None:
    recorded(somebody.pid, "another start")
    command.down()
    assert somebody.poll() is None
    assert not directory.exists()


def test_down_ends_a_local_aws_whose_deployment_was_interrupted(somebody: subprocess.Popen[bytes]) -> None:
    recorded(somebody.pid, processes.started_at(somebody.pid), outputs=False)
    command.down()
    assert somebody.wait(timeout=10) != 0


def test_down_with_nothing_up_says_so(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory.rmdir()
    command.down()
    assert "Nothing is up" in capsys.readouterr().out


def test_what_needs_a_running_stack_says_how_to_get_one() -> None:
    with pytest.raises(LocalStackError, match="`make up` starts one"):
        state.running()


def test_an_unknown_function_is_answered_with_the_names_there_are() -> None:
    recorded(os.getpid(), processes.started_at(os.getpid()))
    with pytest.raises(LocalStackError, match=r"FUNCTION=payment_sandbox$"):
        command.show_logs("nonsense")
