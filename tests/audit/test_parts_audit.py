"""Disjoint parts against an adversary who sees all of them, and versions that split rows wrongly, which are caught.

All three parts are asked at price mu; the account charges mu once. The adversary knows both datasets, and looks at the
joint release. Draws are the vault's own, on rows that are nobody's.
"""

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE
from vitrail.vault import parts as part_module
from vitrail.vault.engines.row_pass import RowPass
from vitrail.vault.parts import PartRows, part_indices, salt_of
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.predictions import Predictions
from vitrail.vault.rows.sources import open_rows

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
DRAWS = 100_000
MANY = [0.05, 0.95, 0.1, 0.9, 0.15, 0.85, 0.2]
COUNT = 3


def signed(block):
    """+1 for the upper half of the rows, -1 for the lower: far beyond the bound, and clipped to it."""
    return np.where(block.column("x") > 0.5, 50.0, -50.0)[:, None]


QUESTION = vt.BoundedSum(signed, size=1, l2_bound=1.0)


def joint(rows, draws, *, mu=1.0, whole_mu=None):
    """One release per part, side by side; and one of the whole data, if asked for."""
    facts = PublicFacts(UNIT, None, 9, "add-remove", 2)
    source = open_rows({"x": rows}, UNIT)
    parts = [PartRows(source, 1, name="thirds", index=index, count=COUNT) for index in range(COUNT)]
    asked = [(part, mu) for part in parts] + ([] if whole_mu is None else [(source, whole_mu)])
    answers = [
        QUESTION.plan(price, facts).answers(RowPass(rows_of, facts, Predictions(facts)), 2, draws)
        for rows_of, price in asked
    ]
    return np.concatenate(answers, axis=1)


def audit(neighbours, claimed, **options):
    def run(rows, draws):
        return joint(rows, draws, **options)

    return vt.audit.mechanism(run, neighbours, claimed, draws=DRAWS, confidence=CONFIDENCE)


def test_the_rows_of_this_audit_lie_in_all_parts():
    assert set(part_indices(np.array(MANY)[:, None], salt_of("thirds"), COUNT)) == {0, 1, 2}


PAIRS = [(MANY[1:], MANY), (MANY, MANY[:3] + MANY[4:]), ([], [0.9])]


@pytest.mark.parametrize("neighbours", PAIRS, ids=repr)
def test_three_parts_together_keep_the_promise_of_one(neighbours):
    found = audit(neighbours, 1.0)
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("neighbours", PAIRS, ids=repr)
def test_three_parts_together_waste_nothing(neighbours):
    found = audit(neighbours, 1.0)
    assert found.tightness >= 0.8, str(found)
    assert audit(neighbours, 0.5).refuted


def test_parts_and_the_whole_add_in_squares():
    found = audit((MANY[1:], MANY), float(np.sqrt(1 + 0.8**2)), whole_mu=0.8)
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_parts_and_the_whole_add_up_to_no_less():
    found = audit((MANY[1:], MANY), float(np.sqrt(1 + 0.8**2)), whole_mu=0.8)
    assert found.tightness >= 0.8, str(found)
    assert audit((MANY[1:], MANY), 1.0, whole_mu=0.8).refuted


# Planted bugs, on planted noise: whether an adversary who learns from draws finds them has no error rate


@pytest.mark.usefixtures("planted_noise")
def test_parts_by_position_are_caught(monkeypatch):
    """A row at the front moves every other row to another part: all three releases change."""
    monkeypatch.setattr(part_module, "part_indices", lambda raw, salt, count: np.arange(len(raw)) % count)
    rows = [0.9, 0.1, 0.2] * 2
    assert audit((rows, [0.8, *rows]), 1.0).refuted


@pytest.mark.usefixtures("planted_noise")
def test_parts_by_rank_are_caught(monkeypatch):
    """Equally large parts need to know the other rows."""

    def by_rank(raw, salt, count):
        return np.argsort(np.argsort(raw[:, 0], kind="stable"), kind="stable") * count // len(raw)

    monkeypatch.setattr(part_module, "part_indices", by_rank)
    assert audit(([0.1, 0.2, 0.9], [0.1, 0.2, 0.9, 0.95]), 1.0).refuted


@pytest.mark.usefixtures("planted_noise")
def test_overlapping_parts_are_caught(monkeypatch):
    """A row that is in every part is told three times."""
    monkeypatch.setattr(PartRows, "_mine", lambda self: self._source.chunks(4096))
    assert audit((MANY[1:], MANY), 1.0).refuted


@pytest.mark.usefixtures("planted_noise")
def test_a_partition_is_not_sound_for_exchanged_rows():
    """Why replace-one is refused: the row that goes and the row that comes lie in different parts, and both change."""
    where = part_indices(np.array(MANY)[:, None], salt_of("thirds"), COUNT)
    going = MANY[0]
    coming = next(x for x, index in zip(MANY, where, strict=True) if index != where[0])
    assert audit(([going, 0.5], [coming, 0.5]), 1.0).refuted
