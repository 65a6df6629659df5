"""Write lab/docs/peers.md from measurements and from the files of the peers."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import replay

from lab.peers.measurement import TITLES, WORDS, Measurement
from lab.peers.outcome import KINDS, OUTCOME
from lab.peers.scenarios import COMPARED, LATE_S, PEERS, RECEIVES

AS_OF = "2026-11-29"  # date of the sources


def shown_schedules(measured: Sequence[Measurement]) -> dict[tuple[str, str], str]:
    """The schedule to show for each peer and kind: one with an immediate retry, if there is one."""
    shown: dict[tuple[str, str], str] = {}
    for it in measured:
        for kind, schedule in it.shortest.items():
            shown.setdefault((it.peer, kind), schedule)
    return shown


def page(place: ExplorerEnvironment, measured: Sequence[Measurement]) -> str:
    """The page."""
    return "\n".join(_lines(place, measured)) + "\n"


def _lines(place: ExplorerEnvironment, measured: Sequence[Measurement]) -> Iterator[str]:
    yield INTRODUCTION
    yield from _markdown([it.row for it in measured])
    yield READING
    yield "## Who they are\n"
    yield f"All take the same step, [`step.py`](../peers/step.py). {_about('step')}"
    for name in PEERS:
        yield f"\n### {TITLES[name].capitalize()}: [`{name}.py`](../peers/{name}.py)\n"
        yield _about(name)
    yield "\n## The shortest schedule that fails, of each kind\n"
    yield LEGEND
    shown = shown_schedules(measured)
    for peer, kind in sorted(shown, key=lambda it: (PEERS.index(it[0]), KINDS.index(it[1]))):
        schedule = shown[peer, kind]
        trace, wrong = replay(place, schedule, COMPARED)
        yield f"\n### {TITLES[peer].capitalize()}: {WORDS[kind]}\n"
        yield f"`make replay-peer SCHEDULE='{schedule}'`\n"
        yield "\n".join(["```text", *trace, *wrong, "```"])


def _about(module: str) -> str:
    source = (Path(__file__).parent / f"{module}.py").read_text()
    return ast.get_docstring(ast.parse(source)) or ""


def _markdown(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    columns = list(rows[0])
    yield f"| {' | '.join(columns)} |"
    yield f"|---|---|{'---:|' * (len(columns) - 2)}"
    for row in rows:
        yield f"| {' | '.join(str(row[column]) for column in columns)} |"


def _rules() -> str:
    kinds = [f"- **{WORDS[rule.__name__]}**: {inspect.getdoc(rule)}" for rule in OUTCOME]
    return "\n".join([*kinds, f"- **stuck**: After {RECEIVES} deliveries of the two messages there is still no end."])


INTRODUCTION = f"""# Peers under the explorer

Written by `make peers`, not by hand. The counts were measured on commit 55eaa84.
Sources read on {AS_OF}.
Versions: aws-lambda-powertools {version("aws-lambda-powertools")}, boto3 {version("boto3")},
stripe {version("stripe")}.

The payment step is guarded in the four ways that are documented and published most, and in the way of this repository.
Two copies of one message meet two workers, and any one fault at any request.
The explorer, the faults and the provider are the same for all, with real boto3 and Stripe clients
([correctness.md](../../docs/correctness.md)).
Each peer has the best configuration that its documentation shows, and passes an idempotency key to the provider.
The outcome of the order comes from the ledger, the order row and the queue:

{_rules()}

Each peer is explored twice.
*At once*: a message that is not done is delivered again after its visibility timeout. The provider still has the key.
*After a day*: the message is delivered again {LATE_S / 3600:.0f} hours later, as by a redrive from a DLQ. The provider
has deleted the key.
A schedule may count in several columns.
The search goes by states: a schedule that reaches a known state is not continued, and its failure is counted once.
"""

READING = """
What the table shows:

- **Powertools, and a claim with an expiry, hold as long as the provider has the key.**
  The provider, not the record, keeps the next worker from charging again.
  After a day, a death between charge and completion charges twice. So does an error there: it deletes the claim.
- **In progress, done, deleted on error**: a worker that dies leaves its record in progress forever.
- **A bare conditional put** loses the order on any failure after it: the key says "done" before anything is done.
  A lost answer is enough: boto3 sends the put again and finds its own key.
- **This repository** needs neither the key nor the day: the order row holds the only intent that may be confirmed.

What the table does not show: these patterns work well where a repetition does nothing, or where the effect is itself a
conditional write. A conflict stands for every refusal that boto3 does not retry. Whether `order.paid` was sent is not
compared: the peers send it themselves, and in this repository the relay sends it.
"""

LEGEND = """The first column is the move.
`p` delivers a message, `A` lets worker A send its next request, and the fault, if any, comes after it.
The last lines name the broken rules. Time is virtual. Nothing is left out."""
