"""make checks its arguments before it installs anything, and passes values to the tools as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = ("requirements/dev.txt", "requirements/layer.txt", "requirements/payment.txt", "package-lock.json")


class Clone:
    """A clone in which nothing is installed, with an installer that only records its calls."""

    def __init__(self, home: Path) -> None:
        self.home = home
        shutil.copy(ROOT / "Makefile", home)
        for lock in LOCKS:
            self.put(lock, "")
        (home / "node_modules").mkdir()
        (home / ".cache" / "wheels").mkdir(parents=True)
        self.put("tools/setup.sh", '#!/bin/sh\necho "$1" >> installed\n')
        self.put(".venv/bin/python", f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" "$@"\n')

    def put(self, path: str, text: str) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def make(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *arguments],
            cwd=self.home,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["deploy", "STAGE=sandbox"], "Stage sandbox needs the sender address"),
        (["diff", "STAGE=prod", "SENDER=a@b.example"], "Stage prod needs the secret with the Stripe key"),
        (["synth", "STAGE=nowhere"], "Which stage? make synth STAGE=local|sandbox|prod"),
    ],
)
def test_missing_arguments_are_reported_before_node_and_wheels_are_installed(
    clone: Clone, arguments: list[str], message: str
) -> None:
    done = clone.make(*arguments)
    assert message in done.stderr
    assert done.returncode != 0
    assert (clone.home / "installed").read_text().split() == ["python"]


VALUE = 'x\'; touch y; `touch y` $(touch y) $(shell touch y) "$$HOME" #'


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("trace", ["ORDER", "STAGE"]),
        ("redrive", ["QUEUE", "STAGE", "MAX", "REASON"]),
        ("audit", ["STAGE", "AGE"]),
        ("pause", ["QUEUE"]),
        ("resume", ["QUEUE"]),
        ("forget", ["KEY"]),
        ("discard", ["QUEUE", "REASON"]),
        ("recover", ["FROM"]),
        ("dlq", ["STAGE"]),
        ("order", ["STAGE", "METHOD", "EMAIL", "AMOUNT"]),
        ("up", ["PORT"]),
        ("invoke", ["FUNCTION"]),
        ("logs", ["FUNCTION"]),
        ("smoke", ["STAGE"]),
    ],
)
def test_values_reach_the_tools_as_they_are_and_no_shell_runs_them(clone: Clone, target: str, names: list[str]) -> None:
    clone.put(".venv/bin/python", '#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n')
    done = clone.make(target, *(f"{name}={VALUE}" for name in names))
    assert done.returncode == 0, done.stderr
    assert (clone.home / "arguments").read_text().splitlines().count(VALUE) == len(names)
    assert not (clone.home / "y").exists()


def test_a_value_of_the_environment_is_not_expanded_either(clone: Clone) -> None:
    clone.put(".venv/bin/python", '#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n')
    clone.make("trace", ORDER=VALUE)
    assert VALUE in (clone.home / "arguments").read_text().splitlines()
    assert not (clone.home / "y").exists()
