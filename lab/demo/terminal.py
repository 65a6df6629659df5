"""Print the results of a run on a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from lab.demo.variant_report import FAILURES, VariantReport


@dataclass(frozen=True)
class Figures:
    """Numbers of this repository's pipeline, counted from ledger, tables, mailbox and logs."""

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


def show_this_repo(out: Console, figures: Figures) -> None:
    """Print the numbers of this repository's pipeline."""
    table = Table(title="\nThis repository in detail", title_justify="left", show_header=False)
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
        ("duplicates replayed", figures.replayed, "the workers returned the stored result"),
        ("workers killed at work", sum(figures.kills.values()), f"{killed} workers, SIGKILL from outside, proven"),
        ("takeovers as uncertain", figures.takeovers, "the attempt before may have had its effect"),
        ("charges in the ledger", figures.charges, f"and {figures.declines} declines"),
        ("emails in the mailbox", figures.mails, ""),
        ("dead letters", figures.dead_letters, ""),
    )
    for name, value, remark in rows:
        table.add_row(name, str(value), remark)
    out.print(table)


def show_comparison(out: Console, variants: Sequence[VariantReport], title: str, remarks: Sequence[str] = ()) -> None:
    """Print the variants side by side."""
    table = Table(title=f"\n{title}", title_justify="left")
    table.add_column("")
    for variant in variants:
        table.add_column(variant.name, justify="right")

    def row(name: str, of: Callable[[VariantReport], int]) -> None:
        table.add_row(name, *(str(of(variant)) for variant in variants))

    row("orders", lambda variant: variant.orders)
    row("deliveries to the workers", lambda variant: variant.deliveries)
    row("faults injected", lambda variant: sum(sum(kinds.values()) for kinds in variant.faults.values()))
    row("workers killed, by faults and from outside", lambda variant: variant.dead_workers)
    table.add_section()
    for name, words in FAILURES.items():
        table.add_row(words, *(_failure(variant, name) for variant in variants))
    row("… of which explained", lambda variant: len(variant.explained_emails))
    table.add_section()
    table.add_row("result", *(_result(variant) for variant in variants))
    out.print(table)
    for remark in remarks:
        out.print(remark, style="dim", markup=False)


def _failure(variant: VariantReport, kind: str) -> str:
    count = len(variant.failures[kind])
    if variant.unexplained_failures[kind]:
        return f"[bold red]{count} ✗[/]"
    return f"[yellow]{count} ○[/]" if count else "0"


def _result(variant: VariantReport) -> str:
    return (
        "[bold green]✓ as promised[/]"
        if variant.as_promised
        else f"[bold red]✗ {variant.failed_orders or 'all'} failed[/]"
    )


def show_audit(out: Console, this_repo: VariantReport) -> None:
    """Print explained second emails and violations of this repository's pipeline."""
    if this_repo.explained_emails:
        out.print(
            f"\nSecond emails after a send with an unknown outcome: {len(this_repo.explained_emails)}\n"
            "A worker holds up to ten orders: the fault may belong to another order of the same worker.",
            highlight=False,
        )
        for order_id, why in this_repo.explained_emails.items():
            out.print(f"  {order_id}: {why}", markup=False)
    if this_repo.violations:
        out.print(f"\n[bold red]NOT AS PROMISED[/]: {len(this_repo.violations)} violations")
        for violation in this_repo.violations:
            out.print(f"  {violation}", markup=False)
        return
    out.print(
        "\n[bold green]AS PROMISED[/]: each order has exactly one charge or one decline, one final state, and one email"
        f"{' (except those above)' if this_repo.explained_emails else ''}."
    )
