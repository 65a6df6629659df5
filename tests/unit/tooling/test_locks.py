"""The lock files: what runs on Lambda is what was tested, and none names a registry."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "requirements"
LOCKS = ("dev.txt", "layer.txt", "payment.txt")


def pins(lock: str) -> dict[str, str]:
    """Versions by package."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", (REQUIREMENTS / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_lambda_gets_the_versions_that_the_tests_ran_with(lock: str) -> None:
    bundled, tested = pins(lock), pins("dev.txt")
    assert bundled
    assert bundled == {name: tested[name] for name in bundled}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_by_hash(lock: str) -> None:
    text = (REQUIREMENTS / lock).read_text()
    packages = re.split(r"^(?=[a-z0-9])", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    unhashed = [package.split("\n")[0] for package in packages if package.strip() and "--hash=sha256:" not in package]
    assert unhashed == []


def test_every_npm_package_is_pinned_by_hash() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_no_python_lock_names_a_registry(lock: str) -> None:
    assert re.findall(r"https?://\S+", (REQUIREMENTS / lock).read_text()) == []


def test_the_npm_lock_names_no_registry() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if "://" in str(package | {"funding": None})] == []
