"""On a machine that lacks something, setting up stops at once and says what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[3] / "tools" / "setup.sh"
NEEDED = ("sh", "awk", "df", "rm", "env", "dirname")


class Machine:
    """A folder to set up in, with nothing on its PATH but basic tools and what a test puts there."""

    def __init__(self, home: Path) -> None:
        self.clone = home / "clone"
        self.bin = home / "bin"
        self.clone.mkdir()
        self.bin.mkdir()
        for tool in NEEDED:
            found = shutil.which(tool)
            assert found, tool
            (self.bin / tool).symlink_to(found)

    def has(self, command: str, script: str) -> None:
        """Put a shell script on the PATH."""
        path = self.bin / command
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def set_up(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SETUP), "python"],
            cwd=self.clone,
            env={"PATH": str(self.bin), "HOME": os.environ["HOME"]},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_python_it_says_which_one_is_needed(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed, 3.13 is best; found: no python3 at all" in done.stderr


def test_an_old_python_is_named_with_what_is_needed(machine: Machine) -> None:
    machine.has("python3", 'case "$1" in --version) echo "Python 3.8.1" ;; *) exit 1 ;; esac')
    done = machine.set_up()
    assert done.returncode == 1
    assert "found: Python 3.8.1" in done.stderr
    assert "make setup PYTHON=/path/to/python3.13" in done.stderr


def test_a_python_without_venv_is_answered_with_the_package_to_install(machine: Machine) -> None:
    machine.has("python3.13", 'case "$*" in "-m venv"*) exit 1 ;; -c*) echo python3.13 ;; esac')
    done = machine.set_up()
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


def test_too_little_disk_is_said_before_anything_is_installed(machine: Machine) -> None:
    machine.has("df", 'echo "Filesystem 1024-blocks Used Available"; echo "/dev/x 2000000 1500000 500000 75% /"')
    done = machine.set_up()
    assert done.returncode == 1
    assert "1500 MB of free disk are needed" in done.stderr
    assert "there are 488 MB" in done.stderr
    assert list(machine.clone.iterdir()) == []
