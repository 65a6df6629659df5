"""The lock files: Lambda runs the versions that were tested, and no lock names a registry."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCKS = ("dev.txt", "layer.txt", "payment.txt")


def text(lock: str) -> str:
    return (ROOT / "requirements" / lock).read_text()


def versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", text(lock), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_lambda_gets_the_versions_that_the_tests_ran_with(lock: str) -> None:
    bundled, tested = versions(lock), versions("dev.txt")
    assert bundled
    assert bundled == {name: tested[name] for name in bundled}


def test_no_lock_names_a_registry() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if "://" in str(package | {"funding": None})] == []
    assert [lock for lock in LOCKS if "://" in text(lock)] == []
