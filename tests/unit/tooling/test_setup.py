"""On a machine that lacks something, setup.sh stops at once and prints what to do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[3] / "tools" / "setup.sh"
NEEDED = ("sh", "awk", "df", "rm", "env", "dirname")


@pytest.mark.parametrize(
    ("command", "script", "message"),
    [
        (None, "", "Python 3.11 or newer is needed, 3.13 is best; found: no python3 at all"),
        ("python3", 'case "$1" in --version) echo "Python 3.8.1" ;; *) exit 1 ;; esac', "found: Python 3.8.1"),
        (
            "python3.13",
            'case "$*" in "-m venv"*) exit 1 ;; -c*) echo python3.13 ;; esac',
            "apt-get install python3-venv",
        ),
        ("df", 'echo "Filesystem 1024-blocks Used Available"; echo "/dev/x 2000000 1500000 500000 75% /"', "488 MB"),
    ],
)
def test_what_the_machine_lacks_is_named(tmp_path: Path, command: str | None, script: str, message: str) -> None:
    clone, path = tmp_path / "clone", tmp_path / "bin"
    clone.mkdir()
    path.mkdir()
    for tool in NEEDED:
        (path / tool).symlink_to(shutil.which(tool) or tool)
    if command:
        (path / command).unlink(missing_ok=True)
        (path / command).write_text(f"#!/bin/sh\n{script}\n")
        (path / command).chmod(0o755)
    done = subprocess.run(
        [str(SETUP), "python"],
        cwd=clone,
        env={"PATH": str(path), "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert list(clone.iterdir()) == []
