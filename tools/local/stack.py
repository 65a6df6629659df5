"""A local AWS with the app on it, as a context manager: `with LocalStack(directory) as stack: ...`."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from tools.local.cdk import Cdk
from tools.local.ministack import MiniStack, free_port
from tools.local.outputs import flatten
from tools.local.running import Running
from tools.local.warming import warm_up
from tools.progress import Steps


class LocalStack:
    """Starts MiniStack and deploys the app on entry, ends it on exit. Everything it writes lies in `directory`.

    With `on_start`, which hears of the process as soon as there is one, it outlives this process unless it is stopped.
    `synth`: more arguments of `cdk synth`, to deploy another app; `steps`: where its progress is shown.
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

    def __enter__(self) -> Running:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Running:
        """Raises LocalStackError if any part fails; nothing is left running then."""
        self.ministack.require_free_port()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # the token is in here
        cdk = Cdk(self.directory, self.ministack.endpoint, self.ministack.token, self._synth_arguments)
        try:
            with self._steps:
                return self._bring_up(cdk)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self.ministack.stop()

    def _bring_up(self, cdk: Cdk) -> Running:
        with ThreadPoolExecutor(max_workers=1) as beside:
            synthesised = beside.submit(self._synth, cdk)  # needs no AWS, so it runs beside the start and bootstrap
            try:
                with self._steps.step(f"MiniStack on port {self.ministack.port}"):
                    self.ministack.start(self._on_start)
                with self._steps.step("cdk bootstrap"):
                    cdk.bootstrap()
                synthesised.result()
            except BaseException:
                cdk.stop()
                raise
        with self._steps.step("cdk deploy") as tell:
            outputs = flatten(cdk.deploy(tell))
        running = Running(self.ministack.endpoint, outputs, self.ministack.tmp, self.ministack.token)
        with self._steps.step("warm-up of the payment sandboxes"):
            warm_up(running)
        return running

    def _synth(self, cdk: Cdk) -> None:
        with self._steps.step("cdk synth"):
            cdk.synth()
