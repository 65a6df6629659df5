"""Processes of this machine: their start times and command lines, and how to end them."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")


def started_at(pid: int) -> str | None:
    """Return the start time of a process, as text of the kernel. Pid and start time together identify a process.

    Returns None if there is no such process, or only its zombie.
    """
    if not PROC.is_dir():
        started, _, state = _ps(pid).rpartition(" ")
        return None if not started or state.startswith("Z") else started.strip()
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else fields[19]  # proc(5): field 3 is the state, 22 the start time


def find(command_part: str) -> list[int]:
    """Return the pids of processes whose command line contains `command_part`, in ascending order."""
    return sorted(pid for pid, command in _commands() if command_part in command)


def end_group(pid: int, grace_s: float = 5.0) -> None:
    """Kill the process group that `pid` leads and wait until its leader is gone.

    Raises TimeoutError after `grace_s` seconds.
    """
    try:
        os.killpg(pid, signal.SIGKILL)  # nothing of a local AWS needs a graceful end
    except ProcessLookupError:
        return
    deadline = time.monotonic() + grace_s
    while started_at(pid) is not None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} still runs {grace_s:.0f} s after it was killed")
        time.sleep(0.02)


def _commands() -> Iterator[tuple[int, str]]:
    if not PROC.is_dir():
        for line in _ps_all().splitlines():
            pid, _, command = line.strip().partition(" ")
            yield int(pid), command
        return
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except (FileNotFoundError, ProcessLookupError):
                continue


def _ps(pid: int) -> str:
    command = ["ps", "-o", "lstart=", "-o", "stat=", "-p", str(pid)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.strip()


def _ps_all() -> str:
    command = ["ps", "-ax", "-o", "pid=", "-o", "command="]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
