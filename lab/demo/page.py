"""Render a run as one HTML page without scripts or outside addresses. Pure, from the data of `as_data`."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lab.demo.plot import effects_plot, legend
from lab.demo.variant_report import FAILURES

Plain = Mapping[str, Any]
STYLE = Path(__file__).with_name("page.css")
TITLES = {
    "this-repo": "This repository",
    "naive": "Naive: a first version",
    "powertools": "Powertools' decorator, as documented",
}
SIGNS = {
    "sent": "→ sent",
    "delivery": "· delivery",
    "takeover": "⇄ takeover",
    "fault": "⚡ fault",
    "death": "✝ death",
    "effect": "● effect",
    "record": "▤ record",
    "end": "■ at the end",
}


def page(data: Plain) -> str:
    """The whole page."""
    run, variants = data["run"], data["variants"]
    about = (
        f"Seed {run['seed']}, faults in {run['faults_percent']:g} % of first deliveries, {run['seconds']} s with "
        "deployment. All numbers come from the payment provider's ledger, the mailbox, the tables and the queues."
    )
    parts = [
        "<h1>The same orders, the same faults</h1>",
        f'<p class="dim">{about}</p>',
        f'<div class="cards">{"".join(map(_card, variants))}</div>',
        "<h2>Numbers</h2>",
        _numbers(variants),
        *(f'<p class="dim">{escape(remark)}</p>' for remark in run["remarks"]),
        "<h2>Charges and emails of each order</h2>",
        '<p class="dim">A column is an order: charges above the line, emails below.</p>',
        legend(),
        *(f"<h3>{_title(variant)}</h3>{effects_plot(variant)}" for variant in variants),
        "<h2>The worst order of each variant</h2>",
        *map(_worst, variants),
        "<h2>Every injected fault</h2>",
        '<p class="dim">Recorded by the function before the fault was applied.</p>',
        _faults(variants),
        f'<p class="dim">Made with {escape(", ".join(f"{k} {v}" for k, v in run["versions"].items()))}.</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        'content="light dark"><title>The same orders, the same faults</title>'
        f"<style>\n{STYLE.read_text()}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _title(variant: Plain) -> str:
    return escape(TITLES[variant["name"]])


def _card(variant: Plain) -> str:
    as_promised = variant["as_promised"]
    result = (
        "✓ as promised" if as_promised else f"✗ {variant['failed_orders'] or len(variant['violations'])} orders failed"
    )
    failures = [f"{len(ids)} {FAILURES[name]}" for name, ids in variant["unexplained_failures"].items() if ids]
    explained_emails = len(variant["explained_emails"])
    if explained_emails:
        failures.append(f"{explained_emails} emailed twice, with a known cause")
    summary = ", ".join(failures) or "each order done once"
    causes = "".join(
        f"<li><code>{escape(id)}</code>: {escape(why)}</li>" for id, why in variant["explained_emails"].items()
    )
    return (
        f'<div class="card {"good" if as_promised else "bad"}"><div>{_title(variant)}</div>'
        f'<div class="result">{result}</div>'
        f"<div>{summary}</div>"
        + (f"<details><summary>second emails</summary><ul>{causes}</ul></details>" if causes else "")
        + "".join(f"<div>✗ {escape(each)}</div>" for each in variant["violations"])
        + "</div>"
    )


def _numbers(variants: Sequence[Plain]) -> str:
    numbers = [
        ("orders", [variant["orders"] for variant in variants]),
        ("deliveries to the workers", [variant["deliveries"] for variant in variants]),
        ("… cut short by the death of the worker", [variant["cut_short"] for variant in variants]),
        ("workers killed, by faults and from outside", [variant["dead_workers"] for variant in variants]),
        ("faults injected", [sum(sum(kinds.values()) for kinds in variant["faults"].values()) for variant in variants]),
    ]
    rows = [_row(words, map(_number, values)) for words, values in numbers]
    rows += [_row(words, (_failure(variant, name) for variant in variants)) for name, words in FAILURES.items()]
    rows.append(
        _row(
            "… of which with a known cause",
            (_number(len(variant["explained_emails"])) for variant in variants),
        )
    )
    rows.append(_row("in a dead-letter queue", (_number(len(variant["parked"])) for variant in variants)))
    return _table(f"<th></th>{_names(variants)}", "".join(rows))


def _names(variants: Sequence[Plain]) -> str:
    return "".join(f'<th class="n">{escape(variant["name"])}</th>' for variant in variants)


def _row(words: str, cells: Iterable[str]) -> str:
    return f"<tr><td>{escape(words)}</td>{''.join(cells)}</tr>"


def _number(value: int) -> str:
    return f'<td class="n">{value}</td>'


def _failure(variant: Plain, name: str) -> str:
    count = len(variant["failures"][name])
    if variant["unexplained_failures"][name]:
        return f'<td class="n bad">✗ {count}</td>'
    return f'<td class="n known">○ {count}</td>' if count else '<td class="n good">✓ 0</td>'


def _worst(variant: Plain) -> str:
    if not variant["worst"]:
        return f"<h3>{_title(variant)}</h3><p>No order.</p>"
    (effects,) = (each for each in variant["effects"] if each["order_id"] == variant["worst"])
    unexplained = [name for name in effects["failures"] if variant["worst"] in variant["unexplained_failures"][name]]
    if unexplained:
        summary = f'<span class="bad">✗ {", ".join(FAILURES[name] for name in unexplained)}</span>'
    elif effects["failures"]:
        summary = '<span class="known">emailed twice, with a known cause</span>'
    else:
        summary = '<span class="good">✓ done once</span>, most faults'
    start = min(moment["at_ms"] for moment in variant["order_history"] if moment["at_ms"] is not None)
    rows = "".join(_moment(moment, start) for moment in variant["order_history"])
    head = '<th class="n">s</th><th>what</th><th>who</th><th></th>'
    order_history = _table(head, rows, "story")
    return f"<h3>{_title(variant)}: <code>{escape(variant['worst'])}</code>, {summary}</h3>{order_history}"


def _moment(moment: Plain, start_ms: int) -> str:
    at = "" if moment["at_ms"] is None else f"{max(0, moment['at_ms'] - start_ms) / 1000:.1f}"
    return (
        f'<tr class="{moment["kind"]}"><td class="n">{at}</td><td>{SIGNS[moment["kind"]]}</td>'
        f"<td>{escape(moment['who'])}</td><td>{escape(moment['what'])}</td></tr>"
    )


def _faults(variants: Sequence[Plain]) -> str:
    pairs = sorted(
        {(function, kind) for variant in variants for function, kinds in variant["faults"].items() for kind in kinds}
    )
    body = "".join(
        _row(f"{function}: {kind}", (_number(variant["faults"].get(function, {}).get(kind, 0)) for variant in variants))
        for function, kind in pairs
    )
    return _table(f"<th></th>{_names(variants)}", body)


def _table(head: str, body: str, kind: str = "") -> str:
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>'
