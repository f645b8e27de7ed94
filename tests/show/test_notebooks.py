"""What a notebook and ``print`` show of budgets, bills and quotes; figures show themselves."""

import html
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

import vitrail as vt
from vitrail._tables import html_table, text_table
from vitrail.accounting.guarantee import BillLine
from vitrail.ledger import open_ledger
from vitrail.show.style import new_axes

SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "<b>sex": vt.Categorical(["f", "m"])})


@pytest.fixture
def data():
    rows = {"age": np.arange(100.0), "<b>sex": ["f", "m"] * 50}
    return vt.PrivateData(rows, SCHEMA, name="ages", n_rows_public=100, budget=vt.Budget(1, 1e-6), ledger="memory")


def mean_age():
    return vt.BoundedSum(lambda block: block.features[:, :1], 1, 1.0, key="mean")


def cells(shown):
    return shown.count("<td>"), shown.count("<th>")


def test_a_figure_shows_itself_without_a_hook():
    figure, axes = new_axes(2, 1)
    empty = figure._repr_png_()
    axes.plot([0, 1], [0, 1])
    assert empty.startswith(b"\x89PNG")
    assert figure._repr_png_() != empty


def test_a_budget_is_a_table_of_what_was_asked(data):
    data.cap("anna", vt.Budget(0.5, 1e-6))
    data.ask(mean_age(), epsilon=0.25)
    table, text = data.budget._repr_html_(), str(data.budget)
    assert cells(table) == (7, 7)
    for shown in (table, text):
        assert "0.25" in shown
        assert "bounded sum of 1 numbers" in shown
        assert "anna" in shown
    assert len(text.splitlines()) == 4  # the account, the cap, the header, the question
    assert str(data.budget.bill()).splitlines()[1:] == text.splitlines()[2:]
    assert data.budget.bill()._repr_html_().endswith(table[table.index("<table>") :])


def test_a_budget_says_what_is_set_aside():
    with closing(open_ledger("memory")) as ledger:
        ledger.open_account("ages", vt.Budget(1, 1e-6), "add-remove")
        ledger.reserve("ages", analyst="owner", cost=vt.Cost.of_mu(0.1), recipe=None, question={"label": "a report"})
        statement = ledger.statement("ages")
    for shown in (str(statement), html.unescape(statement._repr_html_())):
        assert "Set aside for 'a report'" in shown


def test_a_quote_is_a_table_of_its_price(data):
    price = data.quote(mean_age(), epsilon=0.25)._repr_html_()
    assert cells(price) == (6, 0)  # price, noise, whether it fits
    assert "0.25" in price
    model = vt.Model(lambda x: x[:, 0], range=(0, 1), name="old")
    quoted = data.quote(vt.PartialDependence(data, model, columns=["age"]), epsilon=0.25)
    assert cells(quoted._repr_html_()) == (8, 0)  # price, whether it fits, bands, verdict
    assert f"{quoted.verdict}" in quoted._repr_html_()


def test_names_are_texts_and_nothing_else(data):
    assert "&lt;b&gt;sex" in SCHEMA._repr_html_()
    bill = data.budget.bill()
    line = BillLine(1, "2026-01-01T00:00:00", "<i>", "a\x1b[2Jb<script>", True, 0.1, 0.1, 0.1)
    forged = replace(bill, account="<u>", lines=(line,))
    shown = forged._repr_html_()
    assert "&lt;script&gt;" in shown
    assert not any(tag in shown for tag in ("<script", "<i>", "<u>"))
    assert "\x1b" not in str(forged)


def test_tables_without_rows_are_their_sentences():
    assert html_table(("a",), [], ["nothing yet"]) == "<p>nothing yet</p>"
    assert text_table(("a",), [], ["nothing yet"]) == "nothing yet"
