"""Progress of long steps, shown live on a terminal and as one line per finished step elsewhere; and waiting."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

T = TypeVar("T")

console = Console(highlight=False)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)


class Steps:
    """Shows steps while they run, also several at a time, and leaves one line with its seconds for each."""

    def __init__(self, out: Console = console) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[detail]}", style="dim", markup=False),
            console=out,
            transient=True,
            disable=not out.is_terminal,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    @contextmanager
    def step(self, text: str, total: int | None = None) -> Iterator[Callable[..., None]]:
        """Run a step of `total` parts (None: unknown).

        Yields a function that updates the display: `tell(done=3, total=20, detail="orders queue")`, `tell(advance=1)`.
        """
        task = self._live.add_task(text, total=total, detail="")

        def tell(
            done: int | None = None, total: int | None = None, advance: int | None = None, detail: str | None = None
        ) -> None:
            fields: dict[str, Any] = {} if detail is None else {"detail": detail}
            self._live.update(task, completed=done, total=total, advance=advance, **fields)

        started = time.monotonic()
        try:
            yield tell
        except BaseException:
            self._finish(task, ("✗", "red"), text, started)
            raise
        self._finish(task, ("✓", "green"), text, started)

    def _finish(self, task: TaskID, mark: tuple[str, str], text: str, started: float) -> None:
        with self._lock:
            self._live.update(task, visible=False)
            self._out.print(Text.assemble(mark, f" {text} ", (f"{time.monotonic() - started:.1f} s", "dim")))


def wait_until(look: Callable[[], T | None], *, deadline_s: float, what: str, every_s: float = 0.1) -> T:
    """Call `look` every `every_s` seconds until it returns something true, and return that.

    Raises TimeoutError after `deadline_s` seconds, naming `what` and the last result.
    """
    deadline = time.monotonic() + deadline_s
    while True:
        result = look()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {deadline_s:.0f} s for {what}; last result: {result!r}")
        time.sleep(every_s)
