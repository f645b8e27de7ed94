"""The report: stands alone, escapes everything, states the promise."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import FixedBlock, GaussianSum
from vitrail.errors import InvalidInput
from vitrail.guarantee import Guarantee
from vitrail.ledger import open_ledger
from vitrail.show import Report, Section, Table, bill_of, bill_section, budget_figure, histograms_section, privacy_label

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
            loads = name in ("src", "href", "action", "srcset") and not (value or "").startswith("data:image/")
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


def test_a_whole_report_stands_alone_and_is_safe(data: vt.PrivateData, tmp_path: Path) -> None:
    found = vt.marginals(data, epsilon=0.5)
    bill = bill_of(data.budget)
    sections = (
        histograms_section(found.histograms(), total=found.total, total_sigma=found.total_sigma),
        bill_section(bill),
        Section(NASTY, (NASTY,), (Table((NASTY,), ((NASTY,),)),)),
    )
    path = Report(NASTY, privacy_label(bill.guarantee, dataset=data.name, bill=bill), sections).save(tmp_path / "r.html")
    page = path.read_text(encoding="utf-8")
    checker = checked(page)
    assert checker.suspect == []
    assert "script" not in checker.tags
    assert "link" not in checker.tags
    assert not re.search(r"url\(|@import", page)
    assert "default-src 'none'" in page
    assert 'name="viewport"' in page
    assert "@media print" in page


def test_the_label_states_promise_protects_neighbours_bill_and_limits(data: vt.PrivateData) -> None:
    vt.marginals(data, epsilon=0.5)
    bill = bill_of(data.budget)
    label = privacy_label(bill.guarantee, dataset="people", bill=bill)
    assert label.promise == "ε = 0.5, δ = 1e-06"
    lines = dict(label.lines)
    assert lines["In words"] == bill.guarantee.sentence
    assert "given the model" in lines["Protects"]
    assert lines["Neighbours"].startswith("add-remove")
    assert lines["Bill"].startswith("1 question paid: ε = 0.5 spent of 1")
    assert lines["Ledger head"] == data.budget.head
    assert len(label.limits) >= 4


def test_replace_one_and_training_data_are_named() -> None:
    label = privacy_label(Guarantee(1.0, 1e-6, 0.2, "replace-one", "training-data"), dataset="x")
    lines = dict(label.lines)
    assert lines["Neighbours"].startswith("replace-one")
    assert "trained on" in lines["Protects"]


def test_the_bill_adds_squares_and_marks_replays(data: vt.PrivateData) -> None:
    vt.marginals(data, epsilon=0.3)
    vt.marginals(data, epsilon=0.4, columns=["age"])
    vt.marginals(data, epsilon=0.3)
    bill = bill_of(data.budget)
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
    bill = bill_of(statement)
    assert [line.paid for line in bill.lines] == [True, True]
    assert bill.lines[0].epsilon == 0.75
    assert bill.lines[1].what == "my label"
    assert bill.spent_epsilon == pytest.approx(statement.spent_epsilon + 0.75)
    assert bill.guarantee.epsilon == bill.spent_epsilon
    assert bill.guarantee.delta == pytest.approx(9e-6 + 5e-7)
    assert bill.guarantee.mu == 0


def test_the_budget_picture_shows_spent_under_the_budget(data: vt.PrivateData) -> None:
    empty = budget_figure(bill_of(data.budget)).axes[0]
    assert empty.get_ylim()[1] > 1
    vt.marginals(data, epsilon=0.5)
    axes = budget_figure(bill_of(data.budget)).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["budget ε = 1", "spent ε = 0.5"]
    assert list(axes.lines[0].get_ydata()) == pytest.approx([0, 0.5])


def test_many_questions_are_counted_not_named() -> None:
    ledger = open_ledger("memory")
    ledger.open_account("a", vt.Budget(1.0, 1e-6), "add-remove")
    for _ in range(30):
        ledger.charge("a", analyst="x", event=GaussianSum(1.0, 1000.0), question={}, key=None)
    axes = budget_figure(bill_of(ledger.statement("a"))).axes[0]
    assert axes.get_xlabel() == "questions paid"


def test_a_report_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    report = Report("x", privacy_label(Guarantee.of_mu(0.1, 1e-6), dataset="x"), ())
    with pytest.raises(InvalidInput, match="cannot be written"):
        report.save(tmp_path / "nowhere" / "r.html")


def test_a_ragged_table_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a row of the table has 1 cells"):
        Table(("a", "b"), (("1",),))
