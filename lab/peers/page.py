"""docs/peers.md: written from what was measured, and from the peers' own files. Nothing in it depends on time."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.schedules.environment import ExplorerEnvironment
from tests.schedules.explorer import replay

from lab.peers.measuring import TITLES, WORDS, Measured
from lab.peers.outcome import KINDS, OUTCOME
from lab.peers.scenarios import COMPARED, LATE_S, PEERS, RECEIVES

AS_OF = "2026-11-29"  # when the sources were read


def told(measured: Sequence[Measured]) -> dict[tuple[str, str], str]:
    """The schedule that is shown for each peer and kind: the one of a retry at once, where there is one."""
    shown: dict[tuple[str, str], str] = {}
    for it in measured:
        for kind, schedule in it.shortest.items():
            shown.setdefault((it.peer, kind), schedule)
    return shown


def page(place: ExplorerEnvironment, measured: Sequence[Measured]) -> str:
    """docs/peers.md, whole."""
    return "\n".join(_lines(place, measured)) + "\n"


def _lines(place: ExplorerEnvironment, measured: Sequence[Measured]) -> Iterator[str]:
    yield INTRODUCTION
    yield from _markdown([it.row for it in measured])
    yield READING
    yield "## Who they are\n"
    yield f"All take the same step, [`step.py`](../tests/schedules/peers/step.py). {_about('step')}"
    for name in PEERS:
        yield f"\n### {TITLES[name].capitalize()}: [`{name}.py`](../tests/schedules/peers/{name}.py)\n"
        yield _about(name)
    yield "\n## The shortest schedule that fails, of each kind\n"
    yield LEGEND
    shown = told(measured)
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


INTRODUCTION = f"""# Others on the same bench

Written by `make peers`, not by hand. Sources read on {AS_OF}. Versions: aws-lambda-powertools
{version("aws-lambda-powertools")}, boto3 {version("boto3")}, stripe {version("stripe")}.

The payment step, guarded in the four ways that are documented and published most, and in ours: two copies of one
message, two workers at a time, and any one fault at any request. Same explorer, same faults, same provider, real boto3
and Stripe clients ([correctness.md](correctness.md)). Each is in the best configuration that its documentation shows,
and each passes the provider an idempotency key. What became of the order is judged by the ledger, the order row and
the queue alone:

{_rules()}

Each is explored twice. *At once*: what was not done is delivered again after its visibility timeout, when the provider
still knows the key. *After a day*: it is delivered again {LATE_S / 3600:.0f} hours later, as by a redrive from a DLQ,
when the provider has forgotten it. A schedule may count in more than one column. The search goes by states: a schedule
that comes to where all that can follow is known is not run to its end, nor is its failure counted again.
"""

READING = """
What it says:

- **Powertools, and a claim with an expiry, hold as long as the provider's key does.** It is the provider, not the
  record, that keeps the next worker from charging again. After a day, a death between charge and completion charges
  twice, and so does an error there, since it frees the claim.
- **In progress, done, deleted on error** adds that a worker which dies leaves its record in progress for ever, whatever
  it has charged.
- **A bare conditional put** loses the order as soon as anything goes wrong after it: the key says "done" before
  anything is. A lost answer is enough, since boto3 sends the put again and then finds its own key.
- **This repository** needs neither the key nor the day: the one intent that may be confirmed stands on the order row.

What it does not say: these patterns do their job where work may be done twice, or where the effect is itself a
conditional write. A conflict stands here for every refusal that boto3 does not send again by itself. Whether
`order.paid` was sent is not compared: the peers send it themselves, here the relay does.
"""

LEGEND = """The first column is the move: `p` delivers a message, `A` lets worker A send its next request; the fault, if
any, comes after it. What is broken stands last. Time is virtual. Nothing is left out."""
