"""`make order-path`: print the functions and files that one order enters, from the API to the email.

Runs the real handlers in this process, on the explorer's model of AWS and of the payment provider, without faults.
Counts functions in shared/ and functions/, without the payment sandbox. The result is a report and has no goal.
"""

import sys
from collections import Counter
from types import CodeType

from tests.schedules.environment import ExplorerEnvironment, explorer_environment
from tests.schedules.explorer import plainest, play
from tests.schedules.run import Run
from tests.schedules.scenarios import PAID, Scenario, client, queue, stream
from tools.local.ministack import ROOT

COUNTED = (f"{ROOT}/shared/", f"{ROOT}/functions/")
LEFT_OUT = f"{ROOT}/functions/payment_sandbox/"
EXPLORER = f"{ROOT}/tests/schedules/"
CHECKS = ("invariants.py", "facts.py", "judging.py", "scenarios.py")  # of the explorer: their calls are not the order's
NO_FUNCTIONS = ("<module>", "<lambda>", "<genexpr>")


class Calls:
    """Counts the calls of functions in shared/ and functions/ by file and name."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> "Calls":
        sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "order-path")
        sys.monitoring.register_callback(sys.monitoring.PROFILER_ID, sys.monitoring.events.PY_START, self._on_start)
        sys.monitoring.set_events(sys.monitoring.PROFILER_ID, sys.monitoring.events.PY_START)
        return self

    def __exit__(self, *_: object) -> None:
        sys.monitoring.set_events(sys.monitoring.PROFILER_ID, 0)
        sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)

    def _on_start(self, code: CodeType, _: int) -> object:
        file = code.co_filename
        if not file.startswith(COUNTED) or file.startswith(LEFT_OUT) or code.co_name in NO_FUNCTIONS:
            return sys.monitoring.DISABLE
        if not _is_called_by_a_check():
            self.counts[file.removeprefix(f"{ROOT}/"), code.co_qualname] += 1
        return None


def _is_called_by_a_check() -> bool:
    """Whether the nearest caller in the explorer prepares or checks a schedule."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if file.startswith(EXPLORER):
            return file.endswith(CHECKS)
        frame = frame.f_back
    return False


def _one_order(_: ExplorerEnvironment, run: Run) -> None:
    """One request to the API, and the queues and the stream that carry the order to its email."""
    client(run, "a")
    stream(run)
    for name in ("orders", "payments", "emails"):
        queue(run, name)


def main() -> int:
    """Run one order, print the report, and return the exit status: 1 if the order does not end as it should."""
    with explorer_environment() as place, Calls() as calls:
        played = play(place, Scenario("one-order", _one_order, PAID, mailed=True, relayed=True), [], 0, plainest)
    if played.broken or not played.ended:
        sys.stderr.write("\n".join(["The order is not paid and emailed once.", *played.broken]) + "\n")
        return 1
    counts = calls.counts
    lines = []
    for file in sorted({file for file, _ in counts}):
        functions = {name: count for (at, name), count in counts.items() if at == file}
        length = len((ROOT / file).read_text().splitlines())
        lines.append(f"{file}: {len(functions)} functions, {length} lines")
        lines += [f"  {count:4} x {name}" for name, count in sorted(functions.items())]
    files = {file for file, _ in counts}
    lines.append(f"\n{len(counts)} functions in {len(files)} files, {counts.total()} calls")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
