"""Deployed code: each function with its layers, from the templates of stage prod."""

import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.account import cdk
from tools.deploy_inputs import PLACEHOLDERS

from lab.benchmarks.figure import Figure, GoalResult, require
from lab.benchmarks.imports import USES

STAGE = "prod"


def measure(quick: bool) -> Figure:
    """Synthesise into a folder of its own. Sizes in KB of 1,024 bytes, zipped as the CLI zips (deflate)."""
    del quick  # one stage
    with tempfile.TemporaryDirectory() as directory:
        assembly = Path(directory) / "cdk.out"
        cdk("synth", STAGE, PLACEHOLDERS, "--quiet", "--output", str(assembly))
        return _measured(assembly)


def _measured(assembly: Path) -> Figure:
    rows: list[dict[str, Any]] = []
    parts: dict[str, tuple[int, int]] = {}
    for name, folders in _functions(assembly):
        sizes = {folder: _sizes(folder) for folder in folders}
        rows.append(
            {
                "": name,
                "own code, KB": _kb(sizes[folders[0]][0]),
                "with layers, KB": _kb(sum(plain for plain, _ in sizes.values())),
                "with layers, zipped KB": _kb(sum(zipped for _, zipped in sizes.values())),
            }
        )
        for layer in folders[1:]:
            parts |= _packages(layer)
    require(len(rows) >= 6, f"{len(rows)} functions in stage {STAGE}")
    require(any(name == "stripe" for name in parts), f"no stripe among {sorted(parts)}")
    rows += [
        {"": f"· {name}", "own code, KB": "", **_both(sizes)}
        for name, sizes in sorted(parts.items(), key=lambda it: -it[1][0])
    ]
    unused = _unused(assembly)
    rows.append({"": "· unused: botocore/data", "own code, KB": "", **_both(unused)})
    bars = [(str(row[""]), float(row["with layers, KB"])) for row in rows if not str(row[""]).startswith("·")]
    return Figure(
        "size",
        "Deployed code, stage prod: each function with its layers, then the packages in them",
        rows,
        bars,
        "KB unzipped",
        [GoalResult("unused in the layers, KB unzipped", _kb(unused[0]), 0)],
        (
            "boto3 is also in Lambda's runtime. The layer locks the tested version.",
            "Unused: descriptions of services that no function calls.",
        ),
    )


def _functions(assembly: Path) -> Iterator[tuple[str, list[Path]]]:
    """The name of each function, and the folders of its code and layers."""
    for template in sorted(assembly.glob("*.template.json")):
        resources: Mapping[str, Any] = json.loads(template.read_text())["Resources"]
        for resource in resources.values():
            if resource["Type"] != "AWS::Lambda::Function":
                continue
            properties = resource["Properties"]
            handler = str(properties["Handler"]).removesuffix(".handler.handler").removeprefix("functions.")
            layers = [resources[layer["Ref"]]["Properties"]["Content"] for layer in properties.get("Layers", ())]
            yield handler, [_folder(assembly, content) for content in (properties["Code"], *layers)]


def _folder(assembly: Path, content: Mapping[str, Any]) -> Path:
    return assembly / f"asset.{str(content['S3Key']).removesuffix('.zip')}"


def _packages(layer: Path) -> dict[str, tuple[int, int]]:
    """Sizes by top-level package of a layer."""
    top = layer / "python"
    sizes: dict[str, tuple[int, int]] = {}
    for entry in top.iterdir():
        name = entry.name.partition("-")[0].removesuffix(".py") if entry.suffix != ".dist-info" else "(metadata)"
        plain, zipped = _sizes(entry)
        before = sizes.get(name, (0, 0))
        sizes[name] = before[0] + plain, before[1] + zipped
    return sizes


def _unused(assembly: Path) -> tuple[int, int]:
    """Sizes of botocore's descriptions of services that no function calls."""
    called = {service for services in USES.values() for service in services}
    sizes = [
        _sizes(entry)
        for entry in assembly.glob("asset.*/python/botocore/data/*")
        if entry.is_dir() and entry.name not in called
    ]
    return sum(plain for plain, _ in sizes), sum(zipped for _, zipped in sizes)


def _both(sizes: tuple[int, int]) -> dict[str, float]:
    return {"with layers, KB": _kb(sizes[0]), "with layers, zipped KB": _kb(sizes[1])}


def _sizes(path: Path) -> tuple[int, int]:
    """Bytes of a file or folder, plain and zipped."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name if path.is_file() else file.relative_to(path))
    return sum(file.stat().st_size for file in files), packed.tell()


def _kb(size: int) -> float:
    return round(size / 1024, 1)
