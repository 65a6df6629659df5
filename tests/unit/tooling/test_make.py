"""What is missing on make's command line is said before anything but Python is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = ("requirements/dev.txt", "requirements/layer.txt", "requirements/payment.txt", "package-lock.json")


class Clone:
    """A clone in which nothing is installed yet, and an installer that only takes note."""

    def __init__(self, home: Path) -> None:
        self.home = home
        shutil.copy(ROOT / "Makefile", home)
        for lock in LOCKS:
            self._put(lock, "")
        (home / "node_modules").mkdir()
        (home / ".cache" / "wheels").mkdir(parents=True)
        self._put("tools/setup.sh", '#!/bin/sh\necho "$1" >> installed\n')
        self._put(".venv/bin/python", f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" "$@"\n')

    def _put(self, path: str, text: str) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def make(self, *asked: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *asked],
            cwd=self.home,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def installed(self) -> list[str]:
        return (self.home / "installed").read_text().split()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["deploy", "STAGE=sandbox"], "Stage sandbox needs the sender address of the receipts"),
        (["diff", "STAGE=prod", "SENDER=a@b.example"], "Stage prod needs the secret with the Stripe key"),
        (["deploy", "STAGE=local", "SENDER=a@b.example"], "Which stage? make deploy STAGE=sandbox|prod"),
        (["destroy"], "Which stage? make destroy STAGE=sandbox|prod"),
        (["synth", "STAGE=nowhere"], "Which stage? make synth STAGE=local|sandbox|prod"),
    ],
)
def test_what_is_missing_is_said_before_node_and_wheels_are_installed(
    clone: Clone, asked: list[str], said: str
) -> None:
    done = clone.make(*asked)
    assert said in done.stderr
    assert done.returncode != 0
    assert clone.installed == ["python"]


def test_with_all_given_everything_is_installed_between_the_question_and_the_command(clone: Clone) -> None:
    would = clone.make("-n", "deploy", "STAGE=sandbox", "SENDER=a@b.example").stdout
    steps = [line for line in would.splitlines() if not line.startswith("touch ")]
    command = ".venv/bin/python -m tools.account deploy sandbox"
    assert steps == [
        "tools/setup.sh python",
        f"{command} --ask",
        "tools/setup.sh node",
        "tools/setup.sh wheels",
        command,
    ]
