"""A local AWS with the application deployed to it: `with LocalStack(directory) as running: ...`."""

import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from tools.domain import OUTPUTS, PAYMENT_FUNCTION, PROVIDER_URL
from tools.local.cdk import Cdk
from tools.local.local_deployment import LocalDeployment
from tools.local.ministack import LocalStackError, MiniStack, free_port
from tools.progress import Steps

CDK_OUTPUTS = ("ExportsOutput", "PublishOutput")  # outputs that the CDK itself adds
WARM_UP_DEADLINE_S = 30.0


class LocalStack:
    """Starts MiniStack and deploys the application on entry; stops MiniStack on exit. All files are in `directory`.

    `on_start` is called as soon as the process exists. With `on_start`, MiniStack outlives this process unless it is
    stopped. `synth`: more arguments of `cdk synth`, to deploy another app. `steps`: where progress is shown.
    """

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        on_start: Callable[[MiniStack], None] | None = None,
        synth: Sequence[str] = (),
        steps: Steps | None = None,
    ) -> None:
        self.directory = directory
        self.ministack = MiniStack(directory, port or free_port(), stays=on_start is not None)
        self._on_start = on_start or (lambda _: None)
        self._synth_arguments = synth
        self._steps = steps or Steps()

    def __enter__(self) -> LocalDeployment:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> LocalDeployment:
        """Start and deploy. Raises LocalStackError if any part fails. Then nothing is left running."""
        self.ministack.require_free_port()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # the directory holds the token
        cdk = Cdk(self.directory, self.ministack.endpoint, self.ministack.token, self._synth_arguments)
        try:
            with self._steps:
                return self._bring_up(cdk)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop MiniStack and its workers."""
        self.ministack.stop()

    def _bring_up(self, cdk: Cdk) -> LocalDeployment:
        with ThreadPoolExecutor(max_workers=1) as pool:
            synthesis = pool.submit(self._synth, cdk)  # it needs no AWS, so it runs beside start and bootstrap
            try:
                with self._steps.step(f"MiniStack on port {self.ministack.port}"):
                    self.ministack.start(self._on_start)
                with self._steps.step("cdk bootstrap"):
                    cdk.bootstrap()
                synthesis.result()
            except BaseException:
                cdk.stop()
                raise
        with self._steps.step("cdk deploy") as tell:
            outputs = flatten(cdk.deploy(tell))
        running = LocalDeployment(self.ministack.endpoint, outputs, self.ministack.tmp, self.ministack.token)
        with self._steps.step("warm-up of the payment sandboxes"):
            warm_up(running)
        return running

    def _synth(self, cdk: Cdk) -> None:
        with self._steps.step("cdk synth"):
            cdk.synth()


def flatten(by_stack: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the outputs of all stacks in one mapping, without those of the CDK.

    Raises LocalStackError if one of OUTPUTS is missing, or two stacks have different values under one name.
    """
    flat: dict[str, str] = {}
    for stack, outputs in by_stack.items():
        for name, value in outputs.items():
            if name.startswith(CDK_OUTPUTS):
                continue
            if flat.setdefault(name, value) != value:
                raise LocalStackError(f"The output {name} is {flat[name]!r} in one stack and {value!r} in {stack}.")
    if missing := [name for name in OUTPUTS if name not in flat]:
        raise LocalStackError(f"The deployed stacks have no output {', '.join(missing)}.")
    return flat


def warm_up(running: LocalDeployment) -> None:
    """Start the workers of all payment sandboxes, because a cold start takes longer than a payment function waits.

    Raises LocalStackError if a sandbox does not answer.
    """
    for name, url in running.outputs.items():
        if name.endswith(PROVIDER_URL):
            _warm_up(f"{url}/v1/charges?limit=1", payments_at_once(running, name.removesuffix(PROVIDER_URL)))


def _warm_up(url: str, requests: int) -> None:
    request = urllib.request.Request(url, headers={"Authorization": "Bearer sk_test_warm_up"})  # noqa: S310 - loopback

    def send(_: int) -> None:
        urllib.request.urlopen(request, timeout=WARM_UP_DEADLINE_S).close()  # noqa: S310

    try:
        with ThreadPoolExecutor(requests) as clients:
            list(clients.map(send, range(requests)))
    except OSError as error:
        raise LocalStackError(f"The payment sandbox does not answer at {url}: {error}") from error


def payments_at_once(running: LocalDeployment, prefix: str) -> int:
    """Return how many payments may run at once: the batch size times the number of workers.

    `prefix` names a pipeline in the outputs. The prefix of this pipeline is empty.
    """
    (mapping,) = running.client("lambda").list_event_source_mappings(
        FunctionName=running.outputs[f"{prefix}{PAYMENT_FUNCTION}"]
    )["EventSourceMappings"]
    return int(mapping["BatchSize"]) * int(mapping["ScalingConfig"]["MaximumConcurrency"])
