"""The CDK CLI with the local AWS as its endpoint: bootstrap, synth, deploy."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.local.ministack import REGION, ROOT, LocalStackError, aws_environment, clean_environment

TOOLS = ROOT / ".venv" / "bin"  # node is a package from PyPI
CLI = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"
ACCOUNT = "000000000000"  # MiniStack's default account

# "EffectivelyOnce-Pipeline |  7/42 | 9:41:00 | CREATE_COMPLETE | AWS::SQS::Queue | Orders ..."
EVENT = re.compile(r"^(?P<stack>\S+) \|\s*(?P<done>\d+)/(?P<total>\d+) \|")
QUIETLY = {"CDK_DISABLE_CLI_TELEMETRY": "true", "CDK_DISABLE_VERSION_CHECK": "true", "CI": "true", "NO_COLOR": "1"}


class Cdk:
    """One cloud assembly (`<directory>/cdk.out`) for one endpoint. Output goes to `<directory>/cdk-*.log`.

    `synth`: more arguments of `cdk synth`, such as another `--app`.
    """

    def __init__(self, directory: Path, endpoint: str, token: str, synth: Sequence[str] = ()) -> None:
        self._directory = directory
        self._endpoint = endpoint
        self._synth = synth
        self._assembly = directory / "cdk.out"
        self._processes: list[subprocess.Popen[str]] = []
        path = {"PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
        self._environment = clean_environment() | aws_environment(endpoint, token) | QUIETLY | path

    def bootstrap(self) -> None:
        """Run `cdk bootstrap`, in a folder without cdk.json: otherwise it would synthesise the app."""
        self._run("bootstrap", f"aws://{ACCOUNT}/{REGION}", cwd=self._directory)

    def synth(self) -> None:
        """Run `cdk synth`."""
        stage = ["-c", "stage=local", "-c", f"endpoint={self._endpoint}"]
        self._run("synth", "--quiet", "--output", str(self._assembly), *stage, *self._synth)

    def deploy(self, tell: Callable[..., None]) -> dict[str, dict[str, str]]:
        """Deploy all stacks. Returns their outputs by stack. `tell` is called for each created resource."""
        outputs = self._directory / "cdk-outputs.json"
        counts: dict[str, tuple[int, int]] = {}

        def listen(line: str) -> None:
            if event := EVENT.match(line):
                counts[event["stack"]] = (int(event["done"]), int(event["total"]))
                done, total = (sum(column) for column in zip(*counts.values(), strict=True))
                tell(done=done, total=total, detail=event["stack"])

        how = ["--all", "--method=direct", "--require-approval=never", "--concurrency=4", "--progress=events"]
        self._run("deploy", *how, "--app", str(self._assembly), "--outputs-file", str(outputs), listen=listen)
        found: dict[str, dict[str, str]] = json.loads(outputs.read_text())
        return found

    def stop(self) -> None:
        """Kill all CLI processes that still run, in any thread."""
        for process in self._processes:
            process.kill()

    def _run(
        self, command: str, *arguments: str, cwd: Path = ROOT, listen: Callable[[str], None] = lambda _: None
    ) -> None:
        if not CLI.exists():
            raise LocalStackError("The CDK CLI is not installed in this clone: run `make setup`.")
        log = self._directory / f"cdk-{command}.log"
        process = subprocess.Popen(
            [str(TOOLS / "node"), str(CLI), command, "--no-notices", "--no-color", *arguments],
            cwd=cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)
        assert process.stdout is not None  # noqa: S101 - tells mypy what PIPE means
        try:
            with log.open("w") as kept, process.stdout as lines:
                for line in lines:
                    kept.write(line)
                    listen(line)
            failed = process.wait() != 0
        finally:
            process.kill()  # it still runs only after an interruption
        if failed:
            raise LocalStackError(f"cdk {command} failed.", log=log)
