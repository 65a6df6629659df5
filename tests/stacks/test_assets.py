"""What is shipped: functions with their own folder only, layers the same byte for byte, for the Lambda platform."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from shared.idempotency.runtime import Service
from stacks.constructs import assets
from stacks.constructs.assets import ROOT, SHARED, WHEELS, LayerBundling, function_code, shared_layer
from tests.harness.synth import FLAGS, STAGES, Synthesised, synthesise_under_umask_077, unreadable

ELF_MACHINE = slice(18, 20)
AARCH64 = b"\xb7\x00"

needs_wheels = pytest.mark.skipif(not (WHEELS / ".done").exists(), reason="no wheel cache: run `make setup`")


def bundle(bundling: LayerBundling, into: Path) -> dict[str, bytes]:
    """Run the bundling and read all that it made, by path."""
    into.mkdir()
    assert bundling.try_bundle(str(into))
    return contents(into)


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, by path."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_functions_asset_holds_its_own_folder_and_nothing_else(local: Synthesised) -> None:
    for path, asset in local.assets("AWS::Lambda::Function").items():
        handler = local.one("AWS::Lambda::Function", path)["Handler"]
        folder = "/".join(handler.split(".")[:2])
        files = {str(file.relative_to(asset)) for file in asset.rglob("*") if file.is_file()}
        assert f"{folder}/handler.py" in files
        assert {file for file in files if not file.startswith(f"{folder}/")} <= {"functions/__init__.py"}
        assert not any(file.endswith(".pyc") for file in files)


def test_the_laptops_layer_is_our_own_package_and_the_same_every_time(tmp_path: Path) -> None:
    first, second = (bundle(LayerBundling(None, SHARED), tmp_path / name) for name in "ab")
    assert first == second
    assert "python/shared/idempotency/sqs.py" in first
    assert all(name.startswith("python/shared/") and not name.endswith(".pyc") for name in first)


def test_the_cdk_names_the_layer_after_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shared"
    package.mkdir()
    monkeypatch.setattr(assets, "SHARED", package)

    def layer_hash(content: str) -> str:
        (package / "module.py").write_text(content)
        app = App(context=FLAGS)
        shared_layer(Stack(app, "stack"), third_party=False)
        [layer] = app.synth().get_stack_by_name("stack").template["Resources"].values()
        return str(layer["Properties"]["Content"]["S3Key"])

    assert layer_hash("a = 1") == layer_hash("a = 1") != layer_hash("a = 2")


@pytest.fixture(scope="module")
def hardened(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """Stage sandbox with its real layers, synthesised under umask 077."""
    outdir = synthesise_under_umask_077(
        tmp_path_factory.mktemp("hardened"), "app.py", stage="sandbox", **STAGES["sandbox"]
    )
    names = ("stateful", "sandbox", "pipeline", "observability")
    templates = {n: json.loads((outdir / f"effectively-once-sandbox-{n}.template.json").read_text()) for n in names}
    return Synthesised("sandbox", outdir, templates)


@needs_wheels
def test_another_user_can_read_every_asset_that_was_staged_under_umask_077(hardened: Synthesised) -> None:
    kinds = ("AWS::Lambda::Function", "AWS::Lambda::LayerVersion")
    shipped = {asset for kind in kinds for asset in hardened.assets(kind).values()}
    assert shipped == set(hardened.outdir.glob("asset.*"))  # the function of the CDK that empties buckets too
    assert unreadable(hardened.outdir) == []


@needs_wheels
def test_the_hashes_of_functions_do_not_depend_on_the_umask(hardened: Synthesised, sandbox: Synthesised) -> None:
    def hashes(found: Synthesised) -> dict[str, str]:
        # `asset.<hash>.<extension>`: the CDK reads an extension from the name of the checkout, such as `my.project`.
        return {path: asset.name.split(".")[1] for path, asset in found.assets("AWS::Lambda::Function").items()}

    assert hashes(hardened) == hashes(sandbox)


def test_no_asset_has_the_hash_that_it_had_before_its_modes_were_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "SHARED", tmp_path)
    (tmp_path / "module.py").write_text("")

    def keys(flags: dict[str, object]) -> set[str]:
        stack = Stack(App(context=flags), "stack")
        layer = shared_layer(stack, third_party=False)
        code = function_code("functions.order").bind(stack).s3_location
        assert code is not None
        [content] = Template.from_stack(stack).find_resources("AWS::Lambda::LayerVersion").values()
        assert layer
        return {code.object_key, content["Properties"]["Content"]["S3Key"]}

    earlier = {name: flag for name, flag in FLAGS.items() if name != "@aws-cdk/core:assetHashSalt"}
    assert len(keys(FLAGS) | keys(earlier)) == 4


@needs_wheels
@pytest.mark.parametrize("lock", ["layer.txt", "payment.txt"])
def test_a_real_layer_is_for_the_lambda_platform_and_the_same_under_each_umask(
    hardened: Synthesised, tmp_path: Path, lock: str
) -> None:
    package, path = (SHARED, "SharedLayer") if lock == "layer.txt" else (None, "PaymentLayer")
    files = bundle(LayerBundling(lock, package), tmp_path / "layer")
    assert files == contents(hardened.assets("AWS::Lambda::LayerVersion")[path])
    libraries = {name: content for name, content in files.items() if name.endswith(".so")}
    assert libraries
    assert {content[ELF_MACHINE] for content in libraries.values()} == {AARCH64}
    machine_bound = [n for n in files if n.endswith((".pyc", "/RECORD")) or n.startswith("python/bin/")]
    assert not machine_bound


@needs_wheels
def test_a_real_layer_describes_the_services_that_are_called_and_no_other(hardened: Synthesised) -> None:
    layer = hardened.assets("AWS::Lambda::LayerVersion")["SharedLayer"]
    shipped = described(contents(layer))
    assert shipped == set(get_args(Service))

    # As on Lambda, from the layer alone: each of these clients can be made, and another says what is wrong.
    make = f"import boto3; [boto3.client(each, region_name='us-east-1') for each in {sorted(shipped)}]"
    other = "boto3.client('sns', region_name='us-east-1')"
    path = f"import sys; sys.path.insert(0, {str(layer / 'python')!r})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{path}; {make}; print(boto3.__file__); {other}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert str(layer) in done.stdout, done.stderr
    assert "UnknownServiceError: Unknown service: 'sns'. Valid service names are: dynamodb, s3" in done.stderr


def test_functions_make_their_clients_in_the_one_place_that_knows_which_services_are_shipped() -> None:
    for source in [*(ROOT / "functions").rglob("*.py"), *SHARED.rglob("*.py")]:
        calls = re.findall(r"\b(?:boto3|session)\S*\.(?:client|resource|Session)\(", source.read_text())
        assert calls == (["boto3.client("] if source == SHARED / "idempotency" / "runtime.py" else []), source


def described(files: dict[str, bytes]) -> set[str]:
    """The services whose description is among a layer's files."""
    paths = (name.split("/") for name in files)
    return {path[3] for path in paths if path[1:3] == ["botocore", "data"] and path[4:]}


def test_a_missing_wheel_is_answered_with_the_command_that_fetches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assets, "WHEELS", tmp_path)
    with pytest.raises(RuntimeError, match="run `make setup`"):
        bundle(LayerBundling("payment.txt", None), tmp_path / "out")
