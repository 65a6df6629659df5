"""The code of the functions: one asset for each folder, and layers for shared code. Docker is not needed.

The asset of a function contains only its folder. So a change in one folder deploys one function, and an import from
the folder of another function fails.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, cast, get_args

import jsii
from aws_cdk import AssetHashType, BundlingOptions, DockerImage, IgnoreMode, ILocalBundling, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from shared.idempotency.runtime import Service

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "shared"
WHEELS = ROOT / ".cache" / "wheels"
RUNTIME = lambda_.Runtime.PYTHON_3_13
PLATFORM = "manylinux2014_aarch64"


def function_code(*packages: str) -> lambda_.Code:
    """Return the code of packages such as `functions.order`. Their import paths are the same as in tests."""
    parents = dict.fromkeys(package.partition(".")[0] for package in packages)
    # `exclude` also filters the fingerprint. Here that is correct, because the asset contains the same files.
    return lambda_.Code.from_asset(
        str(ROOT),
        exclude=[
            "/*",
            *(line for parent in parents for line in (f"!/{parent}", f"/{parent}/*", f"!/{parent}/__init__.py")),
            *(f"!/{package.replace('.', '/')}" for package in packages),
            "**/__pycache__",
        ],
        ignore_mode=IgnoreMode.GIT,
    )


def shared_layer(scope: Construct, *, third_party: bool) -> lambda_.ILayerVersion:
    """Return the stack's layer with the package `shared` and, with `third_party`, the libraries that it imports.

    Each stack has its own layer, because CloudFormation cannot replace a layer that another stack imports.
    """
    stack, name = Stack.of(scope), "SharedLayer"
    layer = cast(lambda_.ILayerVersion | None, stack.node.try_find_child(name))
    return layer or _layer(stack, name, _bundling("layer.txt" if third_party else None, SHARED), SHARED)


def payment_layer(scope: Construct) -> lambda_.LayerVersion:
    """Return the layer with the SDK of the payment provider, for the payment function only."""
    return _layer(scope, "PaymentLayer", _bundling("payment.txt", None), ROOT / "requirements")


def set_modes(assembly: Path) -> None:
    """Set the modes of all assets staged in the directory `assembly`: 0755 for folders, 0644 for files.

    The CDK CLI writes the modes of the staged files into the zip, and Lambda reads the code as another user.
    Under umask 077 the modes of a checkout are 0700 and 0600, so Lambda could not read the code.
    The hash of an asset does not depend on modes.
    No asset holds a program. The program of a Lambda extension would need 0755.
    https://docs.aws.amazon.com/lambda/latest/dg/troubleshooting-deployment.html
    """
    for asset in assembly.glob("asset.*"):
        for path in (asset, *asset.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() else 0o644)


def _layer(scope: Construct, name: str, local: ILocalBundling, source: Path) -> lambda_.LayerVersion:
    return lambda_.LayerVersion(
        scope,
        name,
        code=lambda_.Code.from_asset(
            str(source),
            # The hash of the output, because the source does not include the wheels.
            asset_hash_type=AssetHashType.OUTPUT,
            bundling=BundlingOptions(image=DockerImage.from_registry("never-pulled"), local=local),
        ),
        compatible_runtimes=[RUNTIME],
        compatible_architectures=[lambda_.Architecture.ARM_64],
    )


@jsii.implements(ILocalBundling)
class LayerBundling:
    """Fill the directory of a layer with wheels for Lambda from a lock file, with a package, or with both."""

    def __init__(self, lock: str | None, package: Path | None) -> None:
        self.lock = lock
        self.package = package

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        """Return True, because there is no Docker image to fall back to. Raises RuntimeError if a wheel is missing."""
        target = Path(output_dir) / "python"
        target.mkdir()
        if self.lock:
            _install(ROOT / "requirements" / self.lock, target)
        if self.package:
            shutil.copytree(self.package, target / self.package.name, ignore=shutil.ignore_patterns("__pycache__"))
        return True


def _install(lock: Path, target: Path) -> None:
    """Unpack the locked wheels from the local cache, so that the result depends on no network and no machine."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-index", "--find-links", str(WHEELS), "--require-hashes", "--requirement", str(lock)),
            *("--platform", PLATFORM, "--implementation", "cp", "--python-version", "3.13", "--only-binary=:all:"),
            *("--no-compile", "--target", str(target)),
        ],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{lock.name} cannot be installed from {WHEELS}: run `make setup`\n{done.stderr}")
    # Scripts contain the path of this machine's interpreter, and RECORD contains their hashes.
    shutil.rmtree(target / "bin", ignore_errors=True)
    for record in target.glob("*.dist-info/RECORD"):
        record.unlink()
    _drop_services(target)


def _drop_services(target: Path) -> None:
    """Delete the SDK's descriptions of about 400 services, except for those in the type `Service`.

    Without this type, a client of a missing service would fail on AWS at its first call. With it, mypy reports it.
    """
    for folder in [*target.glob("botocore/data/*/"), *target.glob("boto3/data/*/")]:
        if folder.name not in get_args(Service):
            shutil.rmtree(folder)


@cache
def _bundling(lock: str | None, package: Path | None) -> LayerBundling:
    """Return one object for each content: the CDK bundles a layer once if all stacks pass it the same object."""
    return LayerBundling(lock, package)
