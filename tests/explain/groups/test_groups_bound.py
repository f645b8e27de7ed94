"""What a row says about its group: never longer than 1, two rows never further apart than stated, however odd they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vitrail as vt
from vitrail.explain.joint_sum import ROUNDING
from vitrail.explain.recipe import Terms
from vitrail.solve.groups.layout import Layout, Outcome, shares_of
from vitrail.vault import BoundedSum
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block

SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 99, integer=True, codes=(-9,)),
        "pay": vt.Numeric(-1.0, 1.0),
        "sex": vt.Categorical(["f", "m", "x"]),
        "ill": vt.Numeric(0, 1, integer=True),
        "cost": vt.Numeric(-50, 400),
    }
)
TARGETS: dict[Outcome, str | None] = {"none": None, "binary": "ill", "number": "cost"}
anything = st.floats(allow_nan=True, allow_infinity=True)


def question_of(kind: Outcome, bins: int, threshold: float) -> BoundedSum:
    data = vt.PrivateData(
        {name: [] for name in SCHEMA}, SCHEMA, name="nobody", n_rows_public=9, budget=vt.Budget(9, 1e-6),
        target=TARGETS[kind], ledger="memory",
    )  # fmt: skip
    model = vt.Model(lambda x: x[:, 0], range=(-2, 3), name="any")
    report = vt.GroupReport(data, model, by=["sex", "age"], edges={"age": [18.5, 65]}, bins=bins, threshold=threshold)
    asked = next(report.conversation().recipe(Terms.of(data, 1.0))).question
    assert isinstance(asked, BoundedSum)
    return asked


def vectors(question: BoundedSum, kind: Outcome, raw: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """What rows say, whatever the model's outputs are: its range is enforced elsewhere, and not relied on here."""
    facts = PublicFacts(SCHEMA, TARGETS[kind], len(raw), "add-remove", len(raw))
    return question.fn(Block(raw, facts, lambda model, values: outputs))


rows = st.tuples(
    st.integers(0, 99) | st.just(-9), st.floats(-1, 1), st.integers(0, 2), st.integers(0, 1), st.floats(-50, 400)
)


@given(
    kind=st.sampled_from(list(TARGETS)),
    bins=st.integers(2, 32),
    threshold=st.floats(-1.99, 2.99),
    one=rows,
    other=rows,
    outputs=st.tuples(anything, anything),
)
def test_no_row_says_more_than_the_bound_and_no_two_are_further_apart(
    kind: Outcome, bins: int, threshold: float, one: Any, other: Any, outputs: tuple[float, float]
) -> None:
    question = question_of(kind, bins, threshold)
    assert question.replace_bound is not None
    said = vectors(question, kind, np.array([one, other], dtype=np.float64), np.array(outputs))
    first, second = (np.zeros(said.shape[1]) if np.isnan(row).any() else row for row in said)  # the vault's own rule
    for row in (first, second):
        assert np.linalg.norm(row) <= question.l2_bound
        assert not row.any() or np.count_nonzero(row.reshape(9 + 3, -1).any(axis=1)) == 1  # its own group, and no other
    assert np.linalg.norm(first - second) <= question.replace_bound
    assert (question.l2_bound, question.replace_bound <= 2) == (ROUNDING, True)


@pytest.mark.parametrize("kind", TARGETS)
def test_the_bound_is_reached(kind: Outcome) -> None:
    """A bound that no row reaches would be noise for nothing."""
    said = vectors(question_of(kind, 4, 0.5), kind, np.array([[30, 0, 1, 1, 400.0]]), np.array([-2.0]))
    assert np.linalg.norm(said) == pytest.approx(1.0, rel=0.01)


def test_the_distance_of_two_rows_is_reached() -> None:
    question = question_of("binary", 4, 0.5)
    raw = np.array([[30, 0, 1, 1, 0.0], [30, 0, 1, 0, 0.0]])
    reached = 0.0
    for outputs in ((-2.0, 3.0), (0.5, 3.0), (-2.0, -1.99), (2.5, 2.5)):
        first, second = vectors(question, "binary", raw, np.array(outputs))
        reached = max(reached, float(np.linalg.norm(first - second)))
    assert question.replace_bound == pytest.approx(reached, rel=0.03)


def test_many_groups_are_no_noisier_than_two() -> None:
    for count in (2, 300):
        layout = Layout(tuple(map(str, range(count))), (0.0, 0.5, 1.0), 1, "binary", 0.0, 1.0, shares_of("binary"))
        said = layout.vectors(np.array([count - 1]), np.array([0.9]), np.array([1.0]))
        assert np.linalg.norm(said) <= ROUNDING
        assert layout.replace_bound < 1.5


@pytest.mark.parametrize("kind", ["none", "binary", "number"])
def test_shares_add_up_to_one(kind: Outcome) -> None:
    assert math.fsum(shares_of(kind).values()) == pytest.approx(1.0, abs=1e-12)
