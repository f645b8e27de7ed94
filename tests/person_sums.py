"""Questions of every kind over two columns, and by how much of its price a person moves each."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

import vitrail as vt
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.persons import open_persons
from vitrail.vault.rows.predictions import Predictions

PLANE = vt.Schema({"x": vt.Numeric(-1, 1), "y": vt.Numeric(-1, 1)})
OTHERS = [[0.3, -0.4], [-0.9, 0.9], [0.0, 0.0], [0.9, 0.1]]


def vectors(block):
    """Whatever the bound is: rows far outside and rows inside it."""
    return np.column_stack([block.column("x"), block.column("y")]) * np.array([3.0, 1e-3])


def cells(block):
    return np.column_stack([np.floor(2 * block.column("x") + 2), np.floor(1 + block.column("y"))])


def corners(block):
    """An arbitrary function of a group: which corner of the box follows from the sum of its rows."""
    return np.where(vectors(block).sum(axis=0) > 0, 9.0, -9.0)


def gram(queries):
    weights = {"row_weights": lambda block: np.ones((len(block), queries)), "queries": queries} if queries > 1 else {}
    return vt.GramSum(
        lambda block: (vectors(block), block.column("x")), 2, l2_bound=0.7, row_norm=2.0, cross=True, **weights
    )


SUMS = {
    "bounded sum": vt.BoundedSum(vectors, 2, 0.3),
    "bounded sum, two rows less than twice apart": vt.BoundedSum(lambda b: np.abs(vectors(b)), 2, 0.3, replace_bound=0.43),
    "cell counts": vt.CellCounts(cells, (5, 3)),
    "gram sum": gram(1),
    "gram sum of many queries": gram(9),
    "product sum": vt.ProductSum(lambda b: (vectors(b), 2 * vectors(b)[:, ::-1]), (2,), (2,), l2_bound=0.2),
    "grouped sum": vt.GroupedSum(corners, 2, low=[-1, 0], high=[1, 2], groups=4, isolation="none"),
    "ranking": vt.GroupedSum(corners, 2, groups=4, isolation="none", rank_points=[1.0, 0.0]),
}
KINDS = ("add-remove", "replace-one")
people = st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=3)
"""The rows of one person."""


def facts(relation):
    return PublicFacts(PLANE, None, 8, relation, 4)


def walk(rows, relation, who=None):
    """A walk over rows; ``who`` names whose each is."""
    raw = np.array(rows, dtype=np.float64).reshape(-1, 2)
    about, frame = facts(relation), {"x": raw[:, 0], "y": raw[:, 1]}
    source = open_persons(frame | ({} if who is None else {"who": who}), PLANE, None if who is None else "who")
    return RowPass(source, about, Predictions(about))


def exact(plan, rows, relation, who=None):
    return np.ravel(plan.exact_cells(walk(rows, relation, who), 4))


def moved(question, before, after, relation, mu=0.8, who=(None, None)):
    """By how much of the price two neighbours' exact sums are apart: their squared distance in noise over what was paid."""
    plan = question.plan(mu, facts(relation))
    apart = exact(plan, before, relation, who[0]) - exact(plan, after, relation, who[1])
    sigmas = np.broadcast_to(plan.cell_sigmas, apart.shape)
    squares = (Fraction(int(cell)) ** 2 / Fraction(float(sigma)) ** 2 for cell, sigma in zip(apart, sigmas, strict=True))
    paid = Fraction(plan.event.cost().pico_mu_squared, 10**12)
    assert paid <= Fraction(mu) ** 2 * (1 + Fraction(1, 10**9))
    return sum(squares, Fraction(0)) / paid
