import functools

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import guarantee
from vitrail.solve.rows.histograms import shares_of_columns


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
        numbers = tuple(np.asarray(one).tobytes() for one in (*counts, *blocks))
        key = numbers, tuple(cut.name for cut in bins), sigma, total
        if key not in known:
            if len(known) > 100:
                known.clear()
            known[key] = shares_of_columns(counts, blocks, bins, sigma, total)
            for shares in known[key]:
                shares.setflags(write=False)
        return list(known[key])

    for package in ("explain", "results"):
        monkeypatch.setattr(f"vitrail.{package}.private_rows.shares_of_columns", remembered)
