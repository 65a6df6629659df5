"""The tables and the verdicts, for people at a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from lab.demo.comparison import WRONGS, LaneReport


@dataclass(frozen=True)
class Figures:
    """What is known of ours alone, each counted from what the services themselves recorded."""

    accepted: int
    declined: int
    by_api: int
    misbehaviours: int
    requests: int
    replayed_by_api: int
    replayed: int
    kills: Mapping[str, int]
    takeovers: int
    charges: int
    declines: int
    mails: int
    dead_letters: int


def show_ours(out: Console, figures: Figures) -> None:
    """Print what happened in ours."""
    table = Table(title="\nOurs in detail", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="dim")
    by_queue = figures.accepted - figures.by_api
    killed = ", ".join(f"{count} {name.lower()}" for name, count in figures.kills.items())
    rows = (
        ("orders accepted", figures.accepted, f"{figures.by_api} by the API, {by_queue} on the queue"),
        ("  declined cards", figures.declined, ""),
        ("  met by a provider fault", figures.misbehaviours, "slow, 5xx before or after the charge, answer dropped"),
        ("requests at the API", figures.requests, f"{figures.replayed_by_api} answered as replayed"),
        ("duplicates replayed", figures.replayed, "by the workers: the stored result, nothing done"),
        ("kills in mid-work", sum(figures.kills.values()), f"{killed} workers, SIGKILL from outside, proven"),
        ("takeovers as uncertain", figures.takeovers, "the try before may have had its effect"),
        ("charges in the ledger", figures.charges, f"and {figures.declines} declines"),
        ("mails in the mailbox", figures.mails, ""),
        ("dead letters", figures.dead_letters, ""),
    )
    for name, value, remark in rows:
        table.add_row(name, str(value), remark)
    out.print(table)


def show_comparison(out: Console, lanes: Sequence[LaneReport], title: str, remarks: Sequence[str] = ()) -> None:
    """Print the lanes beside each other, and a verdict for each."""
    table = Table(title=f"\n{title}", title_justify="left")
    table.add_column("")
    for lane in lanes:
        table.add_column(lane.name, justify="right")

    def row(name: str, of: Callable[[LaneReport], int]) -> None:
        table.add_row(name, *(str(of(lane)) for lane in lanes))

    row("orders", lambda lane: lane.orders)
    row("deliveries to the workers", lambda lane: lane.deliveries)
    row("faults injected", lambda lane: sum(sum(kinds.values()) for kinds in lane.faults.values()))
    row("workers killed, by faults and from outside", lambda lane: lane.dead_workers)
    table.add_section()
    for name, words in WRONGS.items():
        table.add_row(words, *(_wrong(lane, name) for lane in lanes))
    row("… of which it names itself", lambda lane: len(lane.explained))
    table.add_section()
    table.add_row("verdict", *(_verdict(lane) for lane in lanes))
    out.print(table)
    for remark in remarks:
        out.print(remark, style="dim", markup=False)


def _wrong(lane: LaneReport, wrong: str) -> str:
    count = len(lane.wrongs[wrong])
    if lane.unpromised[wrong]:
        return f"[bold red]{count} ✗[/]"
    return f"[yellow]{count} ○[/]" if count else "0"


def _verdict(lane: LaneReport) -> str:
    return "[bold green]✓ KEPT[/]" if lane.kept else f"[bold red]✗ {lane.wronged or 'all'} wronged[/]"


def show_audit(out: Console, ours: LaneReport) -> None:
    """Print what the strict audit of ours says: what the promise explains, and what it does not."""
    if ours.explained:
        out.print(
            f"\nOurs told twice, within the promise (the outcome of a send was unknown): {len(ours.explained)}\n"
            "A worker that dies has up to ten orders in hand: the fault may have been another's.",
            highlight=False,
        )
        for order_id, why in ours.explained.items():
            out.print(f"  {order_id}: {why}", markup=False)
    if ours.violations:
        out.print(f"\n[bold red]VIOLATED[/]: {len(ours.violations)} findings in ours")
        for violation in ours.violations:
            out.print(f"  {violation}", markup=False)
        return
    out.print(
        "\n[bold green]KEPT[/]: ours made for each order exactly one charge or one decline, one final state, "
        f"one mail{' (but those above)' if ours.explained else ''}."
    )
