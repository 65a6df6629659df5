"""docs/runbook.md as an operator reads it: its sections, and their commands, given exactly as they are written."""

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.local.ministack import ROOT, clean_environment

TEXT = (ROOT / "docs" / "runbook.md").read_text()
TESTED = "sh"
FOR_AN_ACCOUNT = "sh account"

# What a caller's own make, or shell, would hand on to the commands.
NOT_OURS = {
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "STAGE",
    "JSON",
    "YES",
    "REASON",
    "ALL",
    "MAX",
    "DRY_RUN",
    "REPAIR",
    "AGE",
}


def sections() -> dict[str, str]:
    """The text of each section, by its heading."""
    parts = re.split(r"^## (.+)\n", TEXT, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(text: str, kind: str = TESTED) -> list[str]:
    """The lines of its code blocks of one kind, in order."""
    blocks = re.findall(r"^```([^\n]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for of_kind, block in blocks if of_kind == kind for line in block.splitlines()]


def kinds() -> set[str]:
    """Of all code blocks."""
    return set(re.findall(r"^```(.+)$", TEXT, re.MULTILINE))


@dataclass(frozen=True)
class Ran:
    """A command that ended. `said`: what a person saw."""

    status: int
    said: str


@dataclass
class Operator:
    """Has one section open. `left`: its commands that were not given yet."""

    heading: str
    environment: Mapping[str, str]
    home: Path
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = commands(sections()[self.heading])

    def __call__(self, command: str, typed: str = "", **placeholders: str) -> Ran:
        """Give a command of the section, with its `$NAMES` in the environment, and type what it asks for."""
        self.left.remove(command)
        kept = {name: value for name, value in clean_environment().items() if name not in NOT_OURS}
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=ROOT,
            env={**kept, **self.environment, "HOME": str(self.home), "COLUMNS": "200", **placeholders},
            input=f"{typed}\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        sys.stdout.write(f"$ {command}\n{done.stdout}\n")  # shown where the test fails
        return Ran(done.returncode, done.stdout)
