"""Pages about audits: what was attacked, what was found, in tables that a phone can show. Plain JSON values in, HTML out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..accounting import JsonValue
from ..errors import InvalidInput
from .page import html_text, page
from .report import Picture, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOOTER = (
    "Made with Vitrail. An audit shows what these attacks found, never that nothing can be found. This file loads nothing "
    "from "
    "elsewhere and runs nothing."
)
READING = (
    "Area: the chance that a member looks more like a member than a non-member does; 0.5 is a coin. Found at 1 %: the "
    "share of "
    "members that the attacker names while accusing 1 % of non-members. Beyond predictions: the same minus what the best "
    "attack of that kind finds from predictions alone.",
    "In the table the interval of each figure stands in brackets.",
)


def membership_page(found: Mapping[str, JsonValue], roc: Figure) -> str:
    """The page of a membership audit, from its JSON and its picture."""
    rows = cast("Sequence[Mapping[str, JsonValue]]", found["rows"])
    ordered = sorted(rows, key=lambda row: -_value(row["auc"]))
    with_excess = any(row["excess_auc"] for row in rows)
    header: tuple[str, ...] = ("attack", "looks at", "area", "balanced accuracy", "found at 1 %", "found at 0.1 %")
    if with_excess:
        header = (*header, "area beyond predictions", "found at 1 % beyond predictions")
    lines = []
    for row in ordered:
        line = (
            str(row["attack"]),
            str(row["signal"]),
            _interval(row["auc"]),
            _interval(row["balanced_accuracy"]),
            _interval(row["tpr_at_1_percent"]),
            _interval(row["tpr_at_01_percent"]),
        )
        lines.append((*line, _interval(row["excess_auc"]), _interval(row["excess_tpr"])) if with_excess else line)
    how = cast("Mapping[str, JsonValue]", found["how"])
    facts = tuple((str(key).replace("_", " "), str(value)) for key, value in how.items())
    spoken = "; ".join(f"{row['attack']} on {row['signal']}: area {_value(row['auc']):.3f}" for row in ordered[:6])
    picture = Picture(roc, f"ROC curves on logarithmic axes: {spoken}", title="Members found over non-members accused")
    sections = [
        _verdict("Leaks" if found["leaks"] else "Not shown to leak", str(found["summary"])),
        Section(
            "Curves", ("Further up and further left is worse for the people in the data.",), pictures=(picture,)
        ).to_html(),
        Section("All attacks", READING, (Table(header, tuple(lines), tuple(range(2, len(header)))),)).to_html(),
        Section("How", tuple(map(str, cast("Sequence[JsonValue]", found["notes"]))), (Table(("", ""), facts),)).to_html(),
    ]
    return _page(f"Membership audit: {found['name']}", sections)


def mechanism_page(found: Mapping[str, JsonValue], tradeoff: Figure) -> str:
    """The page of a mechanism audit, from its JSON and its picture."""
    claimed = found["claimed"]
    promise = claimed if isinstance(claimed, Mapping) else {"mu": claimed}
    facts = [(f"claimed {key}", str(value)) for key, value in promise.items()]
    facts += [
        (key.replace("_", " "), str(found[key])) for key in ("mu_lower", "epsilon_lower", "delta", "draws", "confidence")
    ]
    events = []
    for key in ("mu_event", "epsilon_event"):
        event = cast("Mapping[str, JsonValue]", found[key])
        told = tuple(
            str(event[name]) for name in ("statistic", "side", "threshold", "likelier_on", "hits", "false_alarms", "trials")
        )
        events.append((key.partition("_")[0], *told))
    header = ("bound of", "statistic", "side", "threshold", "likelier on", "hits", "false alarms", "held-out draws")
    picture = Picture(
        tradeoff, "Miss rate over false alarm rate, measured and as the claim allows", title="Trade-off of errors"
    )
    sections = [
        Section("Trade-off", ("A curve below the black line breaks the claim.",), pictures=(picture,)),
        Section("What the bounds rest on", (), (Table(header, tuple(events), (3, 5, 6, 7)),)),
        Section("Numbers", (), (Table(("", ""), tuple(facts)),)),
    ]
    return tables_page("Mechanism audit", str(found["verdict_line"]), str(found["summary"]), sections)


def tables_page(title: str, verdict: str, sentence: str, sections: Sequence[Section]) -> str:
    """The page of any other audit: a verdict, then sections."""
    return _page(title, [_verdict(verdict, sentence), *(one.to_html() for one in sections)])


def save_page(text: str, path: str | Path) -> Path:
    """Write a page; returns where."""
    target = Path(path)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"the report cannot be written to {str(path)!r}: {error.strerror}") from error
    return target


def _page(title: str, parts: Sequence[str]) -> str:
    body = [f"<h1>{html_text(title)}</h1>", *parts, f"<footer>{html_text(FOOTER)}</footer>"]
    return page(title, "\n".join(body))


def _verdict(verdict: str, sentence: str) -> str:
    return (
        '<section class="label"><h2>Audit</h2><dl>'
        f'<div class="line"><dt>Verdict</dt><dd class="big">{html_text(verdict)}</dd></div>'
        f'<div class="line"><dt>In words</dt><dd>{html_text(sentence)}</dd></div></dl></section>'
    )


def _value(interval: JsonValue) -> float:
    return float(cast("float", cast("Mapping[str, JsonValue]", interval)["value"]))


def _interval(interval: JsonValue) -> str:
    if not isinstance(interval, Mapping):
        return "-"
    value, low, high = (float(cast("float", interval[key])) for key in ("value", "lower", "upper"))
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
