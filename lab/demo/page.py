"""The run as one page of HTML that needs nothing else: no script, no outside address. Pure, from as_data's data."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from lab.demo.comparison import WRONGS
from lab.demo.plot import effects_plot, legend

Plain = Mapping[str, Any]
STYLE = Path(__file__).with_name("page.css")
TITLES = {
    "ours": "Ours",
    "naive": "Naive: as people write it first",
    "powertools": "With Powertools' decorator, as documented",
}
SIGNS = {
    "sent": "→ sent",
    "delivery": "· delivery",
    "takeover": "⇄ takeover",
    "fault": "⚡ fault",
    "death": "✝ death",
    "effect": "● effect",
    "record": "▤ record",
    "end": "■ in the end",
}


def page(data: Plain) -> str:
    """The whole page."""
    run, lanes = data["run"], data["lanes"]
    about = (
        f"Seed {run['seed']}, faults in {run['faults_percent']:g} % of first deliveries, {run['seconds']} s with "
        "deployment. Judged by the payment provider's ledger, the mailbox, the tables and the queues; no pipeline is "
        "asked how it did."
    )
    parts = [
        "<h1>The same orders, the same faults</h1>",
        f'<p class="dim">{about}</p>',
        f'<div class="cards">{"".join(map(_card, lanes))}</div>',
        "<h2>Numbers</h2>",
        _numbers(lanes),
        *(f'<p class="dim">{escape(remark)}</p>' for remark in run["remarks"]),
        "<h2>What each order got</h2>",
        '<p class="dim">A column is an order: charges above the line, mails below.</p>',
        legend(),
        *(f"<h3>{_title(lane)}</h3>{effects_plot(lane)}" for lane in lanes),
        "<h2>The worst order of each lane</h2>",
        *map(_worst, lanes),
        "<h2>Every injected fault</h2>",
        '<p class="dim">Counted by the function that suffered it, before it struck.</p>',
        _faults(lanes),
        f'<p class="dim">Made with {escape(", ".join(f"{k} {v}" for k, v in run["versions"].items()))}.</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        'content="light dark"><title>The same orders, the same faults</title>'
        f"<style>\n{STYLE.read_text()}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _title(lane: Plain) -> str:
    return escape(TITLES[lane["name"]])


def _card(lane: Plain) -> str:
    kept = lane["kept"]
    verdict = "✓ promise kept" if kept else f"✗ {lane['wronged'] or len(lane['violations'])} orders wronged"
    wrongs = [f"{len(ids)} {WRONGS[name]}" for name, ids in lane["unpromised"].items() if ids]
    explained = len(lane["explained"])
    if explained:
        wrongs.append(f"{explained} mailed twice, as the promise says, and named")
    said = ", ".join(wrongs) or "each order done once"
    causes = "".join(f"<li><code>{escape(id)}</code>: {escape(why)}</li>" for id, why in lane["explained"].items())
    return (
        f'<div class="card {"good" if kept else "bad"}"><div>{_title(lane)}</div><div class="verdict">{verdict}</div>'
        f"<div>{said}</div>"
        + (f"<details><summary>second mails</summary><ul>{causes}</ul></details>" if causes else "")
        + "".join(f"<div>✗ {escape(each)}</div>" for each in lane["violations"])
        + "</div>"
    )


def _numbers(lanes: Sequence[Plain]) -> str:
    numbers = [
        ("orders", [lane["orders"] for lane in lanes]),
        ("deliveries to the workers", [lane["deliveries"] for lane in lanes]),
        ("… cut short by the worker's death", [lane["cut_short"] for lane in lanes]),
        ("workers killed, by faults and from outside", [lane["dead_workers"] for lane in lanes]),
        ("faults injected", [sum(sum(kinds.values()) for kinds in lane["faults"].values()) for lane in lanes]),
    ]
    rows = [_row(words, map(_number, values)) for words, values in numbers]
    rows += [_row(words, (_wrong(lane, name) for lane in lanes)) for name, words in WRONGS.items()]
    rows.append(_row("… of which it names itself, with the cause", (_number(len(lane["explained"])) for lane in lanes)))
    rows.append(_row("in a dead-letter queue", (_number(len(lane["parked"])) for lane in lanes)))
    return _table(f"<th></th>{_names(lanes)}", "".join(rows))


def _names(lanes: Sequence[Plain]) -> str:
    return "".join(f'<th class="n">{escape(lane["name"])}</th>' for lane in lanes)


def _row(words: str, cells: Iterable[str]) -> str:
    return f"<tr><td>{escape(words)}</td>{''.join(cells)}</tr>"


def _number(value: int) -> str:
    return f'<td class="n">{value}</td>'


def _wrong(lane: Plain, name: str) -> str:
    count = len(lane["wrongs"][name])
    if lane["unpromised"][name]:
        return f'<td class="n bad">✗ {count}</td>'
    return f'<td class="n known">○ {count}</td>' if count else '<td class="n good">✓ 0</td>'


def _worst(lane: Plain) -> str:
    if not lane["worst"]:
        return f"<h3>{_title(lane)}</h3><p>No order.</p>"
    (effects,) = (each for each in lane["effects"] if each["order_id"] == lane["worst"])
    bad = [name for name in effects["wrongs"] if lane["worst"] in lane["unpromised"][name]]
    if bad:
        said = f'<span class="bad">✗ {", ".join(WRONGS[name] for name in bad)}</span>'
    elif effects["wrongs"]:
        said = '<span class="known">mailed twice, as the promise says</span>'
    else:
        said = '<span class="good">✓ done once</span>, met most'
    start = min(moment["at_ms"] for moment in lane["story"] if moment["at_ms"] is not None)
    rows = "".join(_moment(moment, start) for moment in lane["story"])
    head = '<th class="n">s</th><th>what</th><th>who</th><th></th>'
    story = _table(head, rows, "story")
    return f"<h3>{_title(lane)}: <code>{escape(lane['worst'])}</code>, {said}</h3>{story}"


def _moment(moment: Plain, start_ms: int) -> str:
    at = "" if moment["at_ms"] is None else f"{max(0, moment['at_ms'] - start_ms) / 1000:.1f}"
    return (
        f'<tr class="{moment["kind"]}"><td class="n">{at}</td><td>{SIGNS[moment["kind"]]}</td>'
        f"<td>{escape(moment['who'])}</td><td>{escape(moment['what'])}</td></tr>"
    )


def _faults(lanes: Sequence[Plain]) -> str:
    pairs = sorted({(function, kind) for lane in lanes for function, kinds in lane["faults"].items() for kind in kinds})
    body = "".join(
        _row(f"{function}: {kind}", (_number(lane["faults"].get(function, {}).get(kind, 0)) for lane in lanes))
        for function, kind in pairs
    )
    return _table(f"<th></th>{_names(lanes)}", body)


def _table(head: str, body: str, kind: str = "") -> str:
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>'
