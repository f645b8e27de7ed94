import functools

import pytest

import vitrail as vt
from vitrail.accounting import guarantee
from vitrail.solve.rows.histograms import column_shares


@pytest.fixture
def known_to_be_row_wise(monkeypatch, questions_known_to_be_row_wise):
    """The model works row by row as well. Nor is a conversation rehearsed on nobody's rows, whose result is thrown away, and
    what epsilon a price is, is computed once."""
    monkeypatch.setattr(guarantee, "epsilon_of", functools.cache(guarantee.epsilon_of))
    monkeypatch.setattr(vt.Model, "is_row_wise", lambda *args: True)
    monkeypatch.setattr("vitrail.explain.recipe.Conversation.rehearse", lambda *args: None)


@pytest.fixture
def shares_once(monkeypatch):
    """What shares the counts of a column stand for is computed three times in a conversation about rows; here once."""
    known = {}

    def remembered(counts, blocks, bins, sigma, total):
        key = counts.tobytes(), b"" if blocks is None else blocks.tobytes(), bins.name, sigma, total
        if key not in known:
            if len(known) > 100:
                known.clear()
            known[key] = column_shares(counts, blocks, bins, sigma, total)
            known[key].setflags(write=False)
        return known[key]

    for package in ("explain", "results"):
        monkeypatch.setattr(f"vitrail.{package}.private_rows.column_shares", remembered)
