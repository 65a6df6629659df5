"""The table and the verdict, for people."""

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from demo.audit import Verdict


@dataclass(frozen=True)
class Figures:
    """What the table shows, each counted from what the services themselves recorded."""

    accepted: int
    declined: int
    by_api: int
    misbehaviours: int
    requests: int
    replayed_by_api: int
    deliveries: int
    replayed: int
    kills: Mapping[str, int]
    takeovers: int
    charges: int
    declines: int
    mails: int
    dead_letters: int
    seconds: float


def show(out: Console, figures: Figures, verdict: Verdict) -> None:
    """Print the table, what is explained by the promise, and what is not."""
    table = Table(title="\nWhat happened", title_justify="left", show_header=False)
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
        ("deliveries to the workers", figures.deliveries, "by the receive counts of SQS"),
        ("duplicates replayed", figures.replayed, "by the workers: the stored result, nothing done"),
        ("kills in mid-work", sum(figures.kills.values()), f"{killed} workers, SIGKILL"),
        ("takeovers as uncertain", figures.takeovers, "the try before may have had its effect"),
        ("charges in the ledger", figures.charges, f"and {figures.declines} declines"),
        ("mails in the mailbox", figures.mails, ""),
        ("dead letters", figures.dead_letters, ""),
        ("seconds", f"{figures.seconds:.0f}", "deployment included"),
    )
    for name, value, remark in rows:
        table.add_row(name, str(value), remark)
    out.print(table)
    if verdict.second_mails:
        out.print(f"\nTold twice, within the promise (the outcome of a send was unknown): {len(verdict.second_mails)}")
        for order_id in verdict.second_mails:
            out.print(f"  {order_id}", markup=False)
    if verdict.violations:
        out.print(f"\n[bold red]VIOLATED[/]: {len(verdict.violations)} findings")
        for violation in verdict.violations:
            out.print(f"  {violation.order_id or '-'}: {violation.what}", markup=False)
        return
    out.print(
        "\n[bold green]KEPT[/]: for each order exactly one charge or one decline, one final state, "
        f"one mail{' (but those above)' if verdict.second_mails else ''}."
    )
