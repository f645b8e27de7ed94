"""Pages and fragments: every one stands alone, escapes everything, states the promise."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import FixedBlock, GaussianSum
from vitrail.accounting.guarantee import Guarantee
from vitrail.errors import InvalidInput
from vitrail.ledger import open_ledger
from vitrail.results.counterfactuals import WhatIf
from vitrail.show import RocCurve, Table, audit_page, budget_figure, fragment, page, roc_figure, write_page
from vitrail.show.style import TEMPLATES, _environment

NASTY = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


class Checker(HTMLParser):
    """Walks a page; notes what is loaded or could run, and whether tags close in order."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.suspect: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            loads = name in ("src", "href", "action", "srcset") and not (value or "").startswith(("data:image/", "#"))
            if name.startswith("on") or loads:
                self.suspect.append(f"{tag} {name}={value}")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture
def data() -> vt.PrivateData:
    schema = vt.Schema({"age": vt.Numeric(0, 99, integer=True), NASTY: vt.Categorical(["no", NASTY])})
    rows = {"age": np.full(500, 40), NASTY: np.array(["no"] * 500)}
    return vt.PrivateData(
        rows, schema, name=NASTY, n_rows_public=500, budget=vt.Budget(1, 1e-6), analyst=NASTY, account=f"{NASTY} account"
    )


def results(data: vt.PrivateData) -> dict[str, object]:
    """One result of every class, every name and text in it hostile."""
    model = vt.Model(lambda x: 0.1 + 0.5 * x[:, 0], range=(0, 1), name=NASTY)
    promise = vt.Guarantee.of_mu(0.2, 1e-6)
    point = {"age": 40, NASTY: NASTY}
    common = {"guarantee": promise, "cost": vt.Cost.of_mu(0.2), "notes": (NASTY,)}
    curve = vt.Curve(NASTY, NASTY, ("a", NASTY), np.zeros(2), std=np.ones(2), x_label=NASTY, y_label=NASTY, **common)
    surface = vt.Surface(
        (NASTY, "b"), NASTY, (("a", NASTY), np.arange(2.0)), np.eye(2), std=np.eye(2), value_label=NASTY, **common
    )
    ranking = vt.Ranking((NASTY, "b"), np.arange(2.0), kind=NASTY, std=np.ones(2), score_label=NASTY, **common)
    explanation = vt.Attribution(
        np.ones((2, 2)), np.zeros(2), ("age", NASTY), (point, point), np.ones(2), method=NASTY, lower=np.zeros((2, 2)),
        upper=np.full((2, 2), 2.0), **common,
    )  # fmt: skip
    what_if = WhatIf({**point, NASTY: "no"}, 0.1, 0.2, 0.9)
    changes = vt.Counterfactuals(
        ("age", NASTY), (point, point), (0.1, 0.2), (NASTY, 0), (1, NASTY), ((what_if,), ()), ("", NASTY), 1, model=NASTY,
        dataset=NASTY, **common,
    )  # fmt: skip
    report = vt.GlobalReport(data, model, parts=["pdp", "ale"])(epsilon=0.2)
    rows = vt.private_rows(data, epsilon=0.2)
    pane = vt.release(data, model, epsilon=0.2)
    return {
        "curve": curve,
        "surface": surface,
        "ranking": ranking,
        "effects": report.pdp,
        "report": report,
        "marginals": report.marginals,
        "rows": rows,
        "explanation": explanation,
        "counterfactuals": changes,
        "pane": pane,
        "classes": pane.class_picture,
        "person": vt.Pane.from_bytes(pane.to_bytes(), model=model).explain(point),
        "bill": data.budget.bill(),
    }


def assert_safe(html: str) -> Checker:
    """Nothing loads, nothing runs, tags close, and what was hostile is there as text, in the page or in its pictures.

    But for the script that sorts rankings, word for word as it stands in its file, which the page's policy names.
    """
    own = (TEMPLATES / "report.js").read_text(encoding="utf-8").rstrip("\n")
    if f"<script>{own}</script>" in html:
        named = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert html.count("script-src") == 1
        assert f"script-src 'sha256-{named}'" in html.replace("&#39;", "'")
        html = html.replace(f"<script>{own}</script>", "")
    else:
        assert "script-src" not in html
    checker = checked(html)
    pictures = [base64.b64decode(text).decode() for text in re.findall(r"svg\+xml;base64,([A-Za-z0-9+/=]+)\"", html)]
    assert not any("<script" in picture for picture in pictures)
    assert checker.suspect == []
    assert not checker.tags & {"script", "link", "iframe", "object", "form"}
    assert not re.search(r"url\(|@import", html)
    assert "&lt;script&gt;" in html + "".join(pictures)
    return checker


def test_every_page_and_fragment_stands_alone_and_is_safe(data: vt.PrivateData, tmp_path: Path) -> None:
    found = results(data)
    bill = data.budget.bill()
    for name, result in found.items():
        html = page(result, title=NASTY, dataset=NASTY, model=NASTY, bill=bill, notes=(NASTY,))  # type: ignore[arg-type]
        assert_safe(html)
        assert "Privacy label" in html, name
        assert "default-src 'none'" in html
        assert 'name="viewport"' in html
        assert "@media print" in html
        part = fragment(result)  # type: ignore[arg-type]
        assert_safe(part)
        if name == "bill":
            assert_safe(page(result))  # type: ignore[arg-type]
        else:
            path = tmp_path / f"{name}.html"
            plain = result.to_html(path)  # type: ignore[attr-defined]
            assert_safe(plain)
            assert plain == path.read_text(encoding="utf-8")
            assert result._repr_html_() == part  # type: ignore[attr-defined]


def test_every_template_is_sound_and_escapes() -> None:
    """Whatever a template prints is escaped: none says otherwise, and the environment escapes everything."""
    environment = _environment()
    assert environment.autoescape is True
    names = environment.list_templates()
    assert {"base.html", "person.html", "style.css"} <= set(names)
    for name in names:
        environment.get_template(name)
        text = (TEMPLATES / name).read_text(encoding="utf-8")
        if name == "base.html":
            text = text.replace('<script>{% include "report.js" %}</script>', "", 1)
        assert not re.search(r"\|\s*safe|autoescape|Markup|<script|https?:", text)


def test_audit_pages_are_safe() -> None:
    interval = {"value": 0.6, "lower": 0.5, "upper": 0.7}
    attack = {"attack": NASTY, "signal": NASTY, "excess_auc": interval, "excess_tpr": None} | dict.fromkeys(
        ("auc", "balanced_accuracy", "tpr_at_1_percent", "tpr_at_01_percent"), interval
    )
    event = dict.fromkeys(("statistic", "side", "threshold", "likelier_on", "hits", "false_alarms", "trials"), NASTY)
    strategy = {"strategy": NASTY, "queries": 3, "recovered": 2, "share": 0.5, "by_group": {NASTY: interval}}
    found = {
        "membership": {
            "name": NASTY,
            "summary": NASTY,
            "leaks": True,
            "rows": [attack],
            "how": {NASTY: 1},
            "notes": [NASTY],
        },
        "mechanism": {
            "verdict_line": NASTY,
            "summary": NASTY,
            "claimed": {NASTY: 1},
            "mu_event": event,
            "epsilon_event": event,
        }
        | dict.fromkeys(("mu_lower", "epsilon_lower", "delta", "draws", "confidence"), 0.5),
        "reconstruction": {"summary": NASTY, "rows": [strategy, {**strategy, "share": None, "by_group": {}}]},
        "influence": {
            "summary": NASTY,
            "found": interval,
            "accused": interval,
            "by_group": {NASTY: interval},
            "graph": dict.fromkeys(("revealed", "reached", "reached_most"), 0.5)
            | {"rows": 4, "edges": 5, "components": 3, "largest": [2, NASTY]},
        }
        | dict.fromkeys(("members", "nonmembers", "shown_per_query"), 4),
        "extraction": {"summary": NASTY, "agreement": interval, "agreement_without": interval, "majority": 0.5}
        | dict.fromkeys(("queries", "test_points"), 4),
        "attribute": {
            "summary": NASTY,
            "excess": interval,
            "chance": 0.5,
            "people": 4,
            "rows": [{"sees": NASTY, "balanced_accuracy": 0.5, "accuracy": interval}],
        },
    }
    figure = roc_figure([RocCurve(NASTY, NASTY, (0.0, 1.0), (0.0, 1.0))])
    for kind, fields in found.items():
        html = audit_page(kind, fields, figure)  # type: ignore[arg-type]
        assert_safe(html)
        assert "Privacy label" not in html
        assert "never that nothing can be found" in html
    assert "0.600 [0.500, 0.700]" in audit_page("membership", found["membership"], figure)
    assert ">50.0%</td>" in audit_page("reconstruction", found["reconstruction"])


def label_of(html: str) -> dict[str, str]:
    """The lines of the privacy label."""
    box = html.split("<h2>Privacy label</h2>")[1].split("</dl>")[0]
    return dict(re.findall(r"<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", box))


def test_the_label_states_promise_protects_neighbours_bill_and_limits(data: vt.PrivateData) -> None:
    found = vt.marginals(data, epsilon=0.5)
    bill = data.budget.bill()
    html = found.to_html(bill=bill)
    lines = label_of(html)
    assert lines["Promise"] == "ε = 0.5, δ = 1e-06"
    assert lines["In words"] == bill.guarantee.sentence
    assert "given the model" in lines["Protects"]
    assert lines["Neighbours"].startswith("add-remove")
    assert lines["Bill"].startswith("1 question paid: ε = 0.5 spent of 1")
    assert lines["Ledger head"] == data.budget.head
    assert html.split("Known limits")[1].count("<li>") >= 4
    assert "Bill" not in label_of(found.to_html())


def test_replace_one_and_training_data_are_named() -> None:
    promise = Guarantee(1.0, 1e-6, 0.2, "replace-one", "training-data")
    lines = label_of(page(vt.Curve("x", "any curve", np.arange(2.0), np.zeros(2), promise, vt.Cost())))
    assert lines["Neighbours"].startswith("replace-one")
    assert "trained on" in lines["Protects"]
    assert "Dataset" not in lines


def test_the_page_of_a_bill_is_the_bill(data: vt.PrivateData) -> None:
    vt.marginals(data, epsilon=0.5)
    html = page(data.budget.bill())
    assert label_of(html)["Promise"] == "ε = 0.5, δ = 1e-06"
    assert html.count('<h2 id="bill">The bill</h2>') == 1
    assert "marginals of 2 columns" in html


def test_what_is_no_result_is_a_sentence() -> None:
    for draw in (page, fragment):
        with pytest.raises(InvalidInput, match=r"(of|for) a str"):
            draw("text")  # type: ignore[arg-type]


def test_the_bill_adds_squares_and_marks_replays(data: vt.PrivateData) -> None:
    vt.marginals(data, epsilon=0.3)
    vt.marginals(data, epsilon=0.4, columns=["age"])
    vt.marginals(data, epsilon=0.3)
    bill = data.budget.bill()
    assert [line.paid for line in bill.lines] == [True, True, False]
    assert [line.epsilon for line in bill.lines] == pytest.approx([0.3, 0.4, 0.0], abs=1e-9)
    assert bill.lines[1].so_far == bill.lines[2].so_far == bill.spent_epsilon == data.budget.spent_epsilon
    assert bill.lines[1].so_far < 0.7
    capacity = data.budget.capacity.pico_mu_squared
    assert sum(line.share for line in bill.lines) == pytest.approx(data.budget.spent.pico_mu_squared / capacity)
    assert bill.lines[2].what == f"again: {bill.lines[0].what}"
    assert "1 stored answer handed out again" in bill.sentence
    assert bill.guarantee.delta == 1e-6


def test_training_runs_are_part_of_the_promise() -> None:
    ledger = open_ledger("memory")
    ledger.open_account("a", vt.Budget(3.0, 1e-5, training=(1.0, 1e-6)), "add-remove")
    block = FixedBlock(0.75, 5e-7, 1.0, 0.01, 100)
    ledger.charge("a", analyst="x", event=block, question={"question": "training"}, key=None)
    ledger.charge("a", analyst="x", event=GaussianSum(1.0, 10.0), question={"label": "my label"}, key=None)
    statement = ledger.statement("a")
    bill = statement.bill()
    assert [line.paid for line in bill.lines] == [True, True]
    assert bill.lines[0].epsilon == 0.75
    assert bill.lines[1].what == "my label"
    assert bill.spent_epsilon == pytest.approx(statement.spent_epsilon + 0.75)
    assert bill.guarantee.epsilon == bill.spent_epsilon
    assert bill.guarantee.delta == pytest.approx(9e-6 + 5e-7)
    assert bill.guarantee.mu == 0


def test_the_budget_picture_shows_spent_under_the_budget(data: vt.PrivateData) -> None:
    empty = budget_figure(data.budget.bill()).axes[0]
    assert empty.get_ylim()[1] > 1
    vt.marginals(data, epsilon=0.5)
    axes = budget_figure(data.budget.bill()).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["budget ε = 1", "spent ε = 0.5"]
    assert list(axes.lines[0].get_ydata()) == pytest.approx([0, 0.5, 0.5])


def test_many_questions_are_counted_not_named() -> None:
    ledger = open_ledger("memory")
    ledger.open_account("a", vt.Budget(1.0, 1e-6), "add-remove")
    for _ in range(30):
        ledger.charge("a", analyst="x", event=GaussianSum(1.0, 1000.0), question={}, key=None)
    axes = budget_figure(ledger.statement("a").bill()).axes[0]
    assert axes.get_xlabel() == "questions paid"
    bill = ledger.statement("a").bill(newest=10)
    axes = budget_figure(bill).axes[0]
    assert (axes.get_xlabel(), axes.get_xlim()) == ("questions paid", (20, 31))
    assert list(axes.lines[0].get_ydata()) == [line.so_far for line in (bill.lines[0], *bill.lines, bill.lines[-1])]
    html = page(bill)
    assert "Of the bill&#39;s lines only the newest 10 are here; 20 questions were paid before them." in html
    assert "Every question that account" not in html
    assert "Every question that account a has paid for." in page(ledger.statement("a").bill())


def test_a_page_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_page("x", tmp_path / "nowhere" / "r.html")


def test_a_ragged_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a row of the table has 1 cells"):
        Table(("a", "b"), (("1",),))
