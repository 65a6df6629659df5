"""Progress of long steps: live on a terminal, one line per finished step everywhere else."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

console = Console(highlight=False)


class Steps:
    """Shows steps as they run, several at a time if need be, and leaves one line with its seconds for each."""

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

        Yields a function that tells where it is: `tell(done=3, total=20, detail="orders queue")` or `tell(advance=1)`.
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
