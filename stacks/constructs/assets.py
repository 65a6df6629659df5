"""What functions are made of: their own folder, and layers with everything they share. No Docker.

Each function's asset holds its folder only, so that a change to one deploys one, and an import of another's code
fails at the first call instead of tying the two together.
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
    """The folders of packages, as `functions.order`, under their import path, so that imports are the same in tests."""
    parents = dict.fromkeys(package.partition(".")[0] for package in packages)
    # `exclude` filters the fingerprint too, which is right here, where what is hashed is what is shipped.
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
    """The stack's one layer with the `shared` package and, unless the runtime has them, the libraries it imports.

    Each stack has its own: to share a layer across stacks is to be unable to change it.
    """
    stack, name = Stack.of(scope), "SharedLayer"
    made = cast(lambda_.ILayerVersion | None, stack.node.try_find_child(name))
    return made or _layer(stack, name, _bundling("layer.txt" if third_party else None, SHARED), SHARED)


def payment_layer(scope: Construct) -> lambda_.LayerVersion:
    """The provider's SDK, which only the payment function should have to load."""
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
            # Of the output, since that is what is shipped: the source says nothing of the wheels.
            asset_hash_type=AssetHashType.OUTPUT,
            bundling=BundlingOptions(image=DockerImage.from_registry("never-pulled"), local=local),
        ),
        compatible_runtimes=[RUNTIME],
        compatible_architectures=[lambda_.Architecture.ARM_64],
    )


@jsii.implements(ILocalBundling)
class LayerBundling:
    """Fills a layer's directory: a package of ours, wheels for the Lambda platform, or both."""

    def __init__(self, lock: str | None, package: Path | None) -> None:
        self.lock = lock
        self.package = package

    def try_bundle(self, output_dir: str, *_: Any, **__: Any) -> bool:
        """Always true: the alternative would be Docker. Raises RuntimeError when a wheel is missing."""
        target = Path(output_dir) / "python"
        target.mkdir()
        if self.lock:
            _install(ROOT / "requirements" / self.lock, target)
        if self.package:
            shutil.copytree(self.package, target / self.package.name, ignore=shutil.ignore_patterns("__pycache__"))
        return True


def _install(lock: Path, target: Path) -> None:
    """Unpack the locked wheels from the cache alone: neither network nor machine may make a difference."""
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
        raise RuntimeError(f"{lock.name} can not be installed from {WHEELS}: run `make setup`\n{done.stderr}")
    # Scripts name this machine's interpreter, and RECORD holds their hashes; neither is of any use in a layer.
    shutil.rmtree(target / "bin", ignore_errors=True)
    for record in target.glob("*.dist-info/RECORD"):
        record.unlink()
    _drop_services(target)


def _drop_services(target: Path) -> None:
    """The SDK describes some 400 services, most of a layer: keep those that our clients are for.

    mypy refuses `aws.client("sns")` as long as `aws.Service` does not name it; botocore would only do so at its first
    call, on AWS.
    """
    for folder in [*target.glob("botocore/data/*/"), *target.glob("boto3/data/*/")]:
        if folder.name not in get_args(Service):
            shutil.rmtree(folder)


@cache
def _bundling(lock: str | None, package: Path | None) -> LayerBundling:
    """Return one object for each content: the CDK bundles a layer once if all stacks pass it the same object."""
    return LayerBundling(lock, package)
