"""The local AWS says what is wrong, and never outlives what it was started for."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tools.local.ministack import ROOT, LocalStackError, MiniStack, answers, free_port
from tools.local.stack import LocalStack
from tools.progress import wait_until

STARTS_ONE = """
import sys
from pathlib import Path
from tools.local.ministack import MiniStack
ministack = MiniStack(Path(sys.argv[1]), int(sys.argv[2]))
ministack.start()
print("started", flush=True)
input()
"""


def test_it_ends_with_the_process_that_started_it_even_if_that_is_killed(tmp_path: Path) -> None:
    port = free_port()
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE, str(tmp_path), str(port)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        assert answers(f"http://127.0.0.1:{port}")
        starter.kill()
    wait_until(lambda: not answers(f"http://127.0.0.1:{port}"), deadline_s=10, what="the local AWS to end")


def test_a_port_that_somebody_has_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalStackError, match=f"Port {port} is taken"):
            LocalStack(tmp_path, port).start()
    assert list(tmp_path.iterdir()) == []


def test_one_that_dies_at_its_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ministack = MiniStack(tmp_path, taken.getsockname()[1])
        with pytest.raises(LocalStackError, match=r"ended at its start(.|\n)*already in use"):
            ministack.start()
