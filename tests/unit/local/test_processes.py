"""Processes are told apart by pid and start, found by their command line, and ended with all that they started."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from tools.local import processes
from tools.progress import wait_until

# Starts a child in its group, says so, and waits for ever.
PARENT = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'input()', *sys.argv[1:]]); print(1); input()"


@pytest.fixture
def group() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process and its child, and the mark on both command lines."""
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [sys.executable, "-uc", PARENT, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    process.stdout.readline()
    yield process, mark
    processes.end_group(process.pid)
    process.stdout.close()
    process.stdin.close()
    process.wait()


def test_a_process_is_found_by_a_part_of_its_command_line(group: tuple[subprocess.Popen[bytes], str]) -> None:
    process, mark = group
    assert wait_until(lambda: len(processes.find(mark)) == 2, deadline_s=10, what="both to be found")
    assert process.pid in processes.find(mark)


def test_ending_a_group_ends_its_leader_and_its_children(group: tuple[subprocess.Popen[bytes], str]) -> None:
    process, mark = group
    processes.end_group(process.pid)
    assert processes.started_at(process.pid) is None
    wait_until(lambda: not processes.find(mark), deadline_s=10, what="both to be gone")


def test_a_living_process_has_a_start_that_does_not_change() -> None:
    assert processes.started_at(os.getpid()) is not None
    assert processes.started_at(os.getpid()) == processes.started_at(os.getpid())


def test_a_process_that_is_gone_has_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert processes.started_at(process.pid) is None
