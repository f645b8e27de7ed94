"""Every explainer's result: its price, its numbers, its file and its page. One row of the table is one explainer.

What else a conversation promises is in test_every_quote.py, test_every_refusal.py and test_every_resumption.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import vitrail as vt
from every_explainer import EVERY, assert_same, bought, explained
from explainer_table import Row


@EVERY
def test_the_cost_is_the_price(row: Row) -> None:
    data, result = bought(row)
    price = row.price(data.delta)
    assert data.budget.spent == result.cost
    assert result.cost <= price
    # Prices are split into whole trillionths of mu squared; a question may leave the last few of its own unused.
    spent, most = (sum(cost.amounts[:2]) for cost in (result.cost, price))
    assert spent > (1 - 1e-6) * most - 10 or row.questions is None
    assert result.guarantee.epsilon <= row.epsilon * (1 + 1e-9)
    assert result.guarantee.neighbours == data.neighbours


@EVERY
def test_the_result_is_finite_and_says_how_good_it_is(row: Row) -> None:
    _, result = bought(row)
    frame = result.frame()
    assert isinstance(frame, dict)
    assert len({len(column) for column in frame.values()}) == 1
    for column in frame.values():
        if np.asarray(column).dtype.kind == "f":
            assert not np.isinf(np.asarray(column)).any()
    if row.bands:
        assert 0 < result.half_width < np.inf


@EVERY
def test_what_has_bands_has_a_signal_and_a_verdict(row: Row) -> None:
    _, result = bought(row)
    if isinstance(result, vt.Pane):  # it is a file of results, and each of them has its own
        result = result.report
    assert (result.verdict is not None) == (result.signal is not None) == row.bands
    if not row.bands:
        return
    assert isinstance(result.verdict, vt.Verdict)
    assert result.signal >= 0
    said = " ".join(result.sentences)
    for sentence in (*result.verdict_sentences, *result.read_first):
        assert sentence in said
    if result.verdict is vt.Verdict.MOSTLY_NOISE:
        assert "too little data to tell" in " ".join(result.read_first)
        assert "too little data to tell" in result.to_html()


@EVERY
def test_asking_again_is_free(row: Row) -> None:
    data, first = bought(row)
    spent = data.budget.spent
    again = explained(row, data)
    assert data.budget.spent == spent
    assert_same(first, again)


@EVERY
def test_a_saved_result_is_the_same(row: Row, tmp_path: Path) -> None:
    _, result = bought(row)
    result.save(tmp_path / "result.vitrail")
    assert_same(type(result).load(tmp_path / "result.vitrail"), result)


@EVERY
def test_every_result_has_a_picture_and_a_page(row: Row) -> None:
    _, result = bought(row)
    drawn = result.plot()
    assert drawn.get_axes()
    assert callable(drawn._repr_png_)  # a notebook shows it
    assert "<html" in result.to_html()
    assert result._repr_html_()
