"""Synthesises a stage with the real cdk.json, and reads its templates with names in place of references."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import App

from stacks import application

ROOT = Path(__file__).resolve().parents[2]
FLAGS = json.loads((ROOT / "cdk.json").read_text())["context"]  # pytest gets none of them by itself

SECRET_ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stripe-AbCdEf"
PARTNER = "arn:aws:iam::210987654321:role/partner"
OPERATOR = "arn:aws:iam::123456789012:role/operator"
STAGES = {
    "local": {"endpoint": "http://127.0.0.1:4999"},
    "sandbox": {"sender": "orders@sandbox.example"},
    "prod": {
        "sender": "orders@prod.example",
        "provider_secret_arn": SECRET_ARN,
        "producers": PARTNER,
        "operators": OPERATOR,
    },
}

METADATA = {"aws:cdk:enable-path-metadata": True, "aws:cdk:enable-asset-metadata": True}  # as the CLI sets them
ANOTHER_USER = 65534  # a user id that owns no file

Properties = dict[str, Any]


@dataclass(frozen=True)
class Consumer:
    """A stage of the pipeline: the path of its construct (`Payments`), its function's folder (`payment`) and path."""

    path: str
    function: str
    function_path: str

    @property
    def queue(self) -> str:
        """As alarms and operators call it."""
        return self.path.lower()


class Synthesised:
    """The templates of one stage. Resources are named by construct path, `Payments/Queue`."""

    def __init__(self, stage: str, outdir: Path, templates: dict[str, dict[str, Any]]) -> None:
        self.stage = stage
        self.outdir = outdir
        self.templates = templates  # by stack: stateful, sandbox, pipeline

    def of_type(self, type_: str) -> dict[str, Properties]:
        """Properties of all resources of a CloudFormation type, by construct path."""
        return {path: self._read(stack, found["Properties"]) for stack, path, found in self._all(type_)}

    def one(self, type_: str, path: str) -> Properties:
        """Properties of one resource, with all references replaced by names."""
        return self.of_type(type_)[path]

    @property
    def functions(self) -> dict[str, str]:
        """Construct paths of our functions by folder."""
        handlers = {path: found["Handler"] for path, found in self.of_type("AWS::Lambda::Function").items()}
        return {name.split(".")[1]: path for path, name in handlers.items() if name.startswith("functions.")}

    @property
    def consumers(self) -> list[Consumer]:
        """In the pipeline's order."""
        folders = {path: name for name, path in self.functions.items()}
        return [
            Consumer(path.removesuffix("/Mapping"), folders[function], function)
            for path, found in self.of_type("AWS::Lambda::EventSourceMapping").items()
            if found["EventSourceArn"].endswith("/Queue.Arn>")
            for function in [found["FunctionName"].strip("<>")]
        ]

    def assets(self, type_: str) -> dict[str, Path]:
        """Where the assets of all resources of a type lie, by construct path."""
        return {path: self.outdir / found["Metadata"]["aws:asset:path"] for _, path, found in self._all(type_)}

    def policies_on_deletion(self, type_: str) -> dict[str, str]:
        return {path: found.get("DeletionPolicy", "Delete") for _, path, found in self._all(type_)}

    def outputs(self) -> dict[str, Any]:
        """All outputs but the CDK's own, as the flat object that clients read."""
        return {
            name: self._read(stack, output["Value"])
            for stack, template in self.templates.items()
            for name, output in template.get("Outputs", {}).items()
            if not name.startswith("PublishOutput")
        }

    def environment(self, path: str) -> dict[str, str]:
        variables: dict[str, str] = self.one("AWS::Lambda::Function", path)["Environment"]["Variables"]
        return variables

    def metadata(self, path: str) -> dict[str, Any]:
        """Metadata of a function."""
        found: dict[str, dict[str, Any]] = {at: one["Metadata"] for _, at, one in self._all("AWS::Lambda::Function")}
        return found[path]

    def _all(self, type_: str) -> Iterator[tuple[str, str, Properties]]:
        for stack, template in self.templates.items():
            for resource in template["Resources"].values():
                if resource["Type"] == type_:
                    yield stack, _path(resource), resource

    def _read(self, stack: str, value: Any) -> Any:
        """Replace what CloudFormation would fill in by readable text."""
        if isinstance(value, list):
            return [self._read(stack, item) for item in value]
        if not isinstance(value, dict):
            return value
        match value:
            case {"Ref": "AWS::StackId"}:
                return "<stack>/<name>/<id>"
            case {"Ref": name}:
                return f"<{self._name(stack, name)}>"
            case {"Fn::GetAtt": [_, "FunctionUrl"]}:
                return "https://url-id.lambda-url.region.on.aws/"
            case {"Fn::GetAtt": [name, attribute]}:
                return f"<{self._name(stack, name)}.{attribute}>"
            case {"Fn::Join": [separator, parts]}:
                return separator.join(self._read(stack, part) for part in parts)
            case {"Fn::Split": [separator, whole]}:
                return self._read(stack, whole).split(separator)
            case {"Fn::Select": [index, parts]}:
                return self._read(stack, parts)[index]
            case {"Fn::GetStackOutput": {"StackName": name, "OutputName": output}}:
                other = name.rsplit("-", 1)[1]
                return self._read(other, self.templates[other]["Outputs"][output]["Value"])
        return {key: self._read(stack, item) for key, item in value.items()}

    def _name(self, stack: str, logical_id: str) -> str:
        resource = self.templates[stack]["Resources"].get(logical_id)
        return _path(resource) if resource else logical_id


def _path(resource: dict[str, Any]) -> str:
    path = resource["Metadata"]["aws:cdk:path"].split("/", 1)[1]
    return str(path).removesuffix("/Resource")


def new_app(outdir: Path, stage: str, **context: str) -> App:
    # As the CLI does it, but without the layers' contents: test_assets.py bundles those.
    return App(outdir=str(outdir), context=FLAGS | METADATA | {"aws:cdk:bundling-stacks": [], "stage": stage} | context)


def read(app: App, outdir: Path, stage: str) -> Synthesised:
    """The templates of an app whose stacks are named `<anything>-<stack>`."""
    templates = {stack.stack_name.rsplit("-", 1)[1]: stack.template for stack in app.synth().stacks}
    return Synthesised(stage, outdir, templates)


def synthesise(outdir: Path, stage: str, **context: str) -> Synthesised:
    app = new_app(outdir, stage, **context)
    application.synthesise(app, application.build(app))
    return read(app, outdir, stage)


def synthesise_under_umask_077(directory: Path, *command: str, more: Sequence[str] = (), **context: str) -> Path:
    """Run a CDK app, layers included, in a checkout that was made under umask 077. Returns the cloud assembly.

    `command`: the arguments for Python, such as `app.py`. `more`: other folders that the app needs.
    """
    checkout, assembly = directory / "checkout", directory / "cdk.out"
    for name in ("app.py", "functions", "requirements", "shared", "stacks", *more):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        checkout.mkdir(exist_ok=True)
        copy(ROOT / name, checkout / name)
    for path in checkout.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o077)
    (checkout / ".cache").symlink_to(ROOT / ".cache")
    done = subprocess.run(
        [sys.executable, *command],
        cwd=checkout,
        env=os.environ | {"CDK_OUTDIR": str(assembly), "CDK_CONTEXT_JSON": json.dumps(FLAGS | METADATA | context)},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return assembly


def unreadable(assembly: Path) -> list[str]:
    """The staged files and folders that another user could not read, each with its mode or its error.

    A process of root reads each file as another user. Other users cannot do so: the modes must be enough for them.
    """
    found = [
        f"{path.stat().st_mode & 0o777:o} {path}"
        for asset in assembly.glob("asset.*")
        for path in (asset, *asset.rglob("*"))
        if path.stat().st_mode & 0o777 != (0o755 if path.is_dir() else 0o644)
    ]
    for asset in assembly.glob("asset.*") if os.geteuid() == 0 else ():
        files = [str(path.relative_to(asset)) for path in asset.rglob("*") if path.is_file()]
        read = subprocess.run(
            ["cat", "--", *files],
            cwd=asset,
            user=ANOTHER_USER,
            group=ANOTHER_USER,
            extra_groups=[],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        found += read.stderr.splitlines()
    return found
