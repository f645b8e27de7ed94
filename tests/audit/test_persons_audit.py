"""Promises about persons, attacked on data with and without three rows of somebody; a forgotten factor must be caught."""

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE
from explainer_table import SCHEMA, TABLE, model, rows
from vitrail.vault import rehearse
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.questions import cell_counts, grouped_sum
from vitrail.vault.rows import persons
from vitrail.vault.rows.row_function import gathered

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
NOBODY, LOW, HIGH = {"x": []}, {"x": [0.0] * 3}, {"x": [1.0] * 3}
DRAWS, SLOW_DRAWS = 100_000, 8_000


def signed(block):
    return (2 * block.column("x") - 1)[:, None] * np.full(3, 50.0)


def grams(block):
    return np.column_stack([block.column("x"), np.zeros(len(block))]), np.ones(len(block))


def scores(block):
    return np.column_stack([block.column("x"), -block.column("x")]) * 7


def groups(count):
    """An empty group says one corner of the box, any row the opposite one."""
    return vt.GroupedSum(lambda block: [9.0, 9.0], 2, low=0, high=[1, 2], default=0.0, groups=count, isolation="none")


SUM = vt.BoundedSum(signed, size=3, l2_bound=1.0)
COUNTS = vt.CellCounts(lambda block: np.zeros((len(block), 4)), (2, 2, 2, 2))
TIGHT = {
    "bounded sum": (SUM, (NOBODY, HIGH), "add-remove"),
    "bounded sum, exchanged": (SUM, (LOW, HIGH), "replace-one"),
    "cell counts": (COUNTS, (NOBODY, HIGH), "add-remove"),
    "gram sum": (vt.GramSum(grams, 2, l2_bound=0.8, cross=True), (NOBODY, HIGH), "add-remove"),
    "product sum": (
        vt.ProductSum(lambda b: (signed(b), np.ones((len(b), 2)) * 9), (3,), (2,)),
        (NOBODY, HIGH),
        "add-remove",
    ),
}
LOOSE = {
    "sampled sum": (vt.BoundedSum(signed, size=3, l2_bound=1.0, rate=0.5), (NOBODY, HIGH), "add-remove"),
    "sampled sum, exchanged": (vt.BoundedSum(signed, size=3, l2_bound=1.0, rate=0.5), (LOW, HIGH), "replace-one"),
    "selection": (vt.Select(scores, 2, bound=1.0), (NOBODY, HIGH), "add-remove"),
    "grouped sum of forty": (groups(40), (NOBODY, HIGH), "add-remove"),
}


def audit_of(name, rows_per_person=3):
    question, neighbours, relation = {**TIGHT, **LOOSE}[name]
    facts = {"n_rows_public": 4, "neighbours": relation, "block_rows": 2, "rows_per_person": rows_per_person}
    draws = SLOW_DRAWS if "grouped" in name else DRAWS

    def run(rows, draws):
        return rehearse(question, rows, UNIT, mu=1.0, draws=draws, **facts)

    return vt.audit.mechanism(run, neighbours, 1.0, draws=draws, confidence=CONFIDENCE)


@pytest.mark.parametrize("name", [*TIGHT, *LOOSE])
def test_promises_about_persons_are_kept(name):
    found = audit_of(name)
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", TIGHT)
def test_nothing_is_wasted_on_the_worst_person(name):
    found = audit_of(name)
    assert found.tightness >= 0.8, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", [*TIGHT, "sampled sum, exchanged", "selection", "grouped sum of forty"])
def test_persons_charged_as_rows_are_caught(name):
    """The planted bug: k is forgotten, and the noise is that of one row."""
    found = audit_of(name, rows_per_person=1)
    assert found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_a_factor_that_knows_the_relation_and_not_the_person_is_caught(monkeypatch):
    monkeypatch.setattr(PublicFacts, "sensitivity_factor", property(lambda self: 2 if self.is_exchange else 1))
    for name in ("bounded sum", "bounded sum, exchanged"):
        found = audit_of(name)
        assert found.refuted, str(found)


# Explainers of the table, end to end

FEW, MU = 6, 2.0
PERSON = {"age": 90, "hours": 80.0, "sex": "Male", "rich": "yes"}
WITHOUT = rows(FEW)
WITH = {name: np.append(values, [PERSON[name]] * 3) for name, values in WITHOUT.items()}
EVERY = [
    pytest.param(row, id=row.name, marks=() if row.name == "marginals" else pytest.mark.slow)
    for row in TABLE
    if row.name
    in ("marginals", "shapley", "private rows of two columns", "partial dependence", "groups", "local statistics")
]


def nobody(**options):
    facts = {"name": "nobody", "target": "rich", "n_rows_public": FEW, "ledger": "memory", **options}
    return vt.PrivateData({name: [] for name in SCHEMA}, SCHEMA, budget=vt.Budget(20, 1e-6), **facts)


def audited(explainer, row, **options):
    talk = explainer if row.points is None else explainer.conversation(row.points)
    return vt.audit.explainer(talk, WITHOUT, WITH, mu=MU, draws=1000, confidence=CONFIDENCE, **options)


@pytest.mark.usefixtures("known_to_be_row_wise", "shares_once")
@pytest.mark.parametrize("row", EVERY)
def test_a_whole_explainer_keeps_its_promise_to_persons(row):
    found = audited(row.make(nobody(rows_per_person=3), model()), row, result=True)
    assert not found.refuted, str(found)
    assert found.claimed_mu == MU


@pytest.mark.usefixtures("known_to_be_row_wise", "shares_once", "planted_noise")
def test_an_explainer_that_forgets_the_person_is_caught(monkeypatch):
    real = cell_counts.sigma_for
    monkeypatch.setattr(cell_counts, "sigma_for", lambda sensitivity, mu: real(sensitivity / 3, mu))
    row = next(row for row in TABLE if row.name == "marginals")
    found = audited(vt.MarginalsExplainer(nobody(rows_per_person=3), bins=4), row)
    assert found.refuted, str(found)


# Rows that say whose they are: any number of them, and everybody counts once

WHOLE = {
    name: (question, tuple(side | {"who": ["me"] * len(side["x"])} for side in sides), relation)
    for name, (question, sides, relation) in {**TIGHT, **LOOSE}.items()
}


def audit_of_people(name):
    question, sides, relation = WHOLE[name]
    facts = {"n_rows_public": 4, "neighbours": relation, "block_rows": 2, "person": "who"}
    draws = SLOW_DRAWS if "grouped" in name or "sampled" in name else DRAWS

    def run(rows, draws):
        return rehearse(question, rows, UNIT, mu=1.0, draws=draws, **facts)

    return vt.audit.mechanism(run, sides, 1.0, draws=draws, confidence=CONFIDENCE)


@pytest.mark.parametrize("name", WHOLE)
def test_promises_about_people_who_count_once_are_kept(name):
    found = audit_of_people(name)
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", TIGHT)
def test_nothing_is_wasted_on_people_who_count_once(name):
    found = audit_of_people(name)
    assert found.tightness >= 0.8, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("name", [*TIGHT, "selection"])
def test_people_whose_rows_count_whole_are_caught(name, monkeypatch):
    """The planted bug: rows are brought together, and nobody divides by how many there are."""
    real = persons.by_person

    def forgetful(raw, names):
        made = real(raw, names)
        made[:, -2] = 1.0
        return made

    monkeypatch.setattr(persons, "by_person", forgetful)
    found = audit_of_people(name)
    assert found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_people_whose_rows_lie_in_several_groups_are_caught(monkeypatch):
    """The planted bug: every row draws a group of its own."""
    monkeypatch.setattr(grouped_sum, "gathered", lambda source, facts: (gathered(source, facts)[0], None))
    found = audit_of_people("grouped sum of forty")
    assert found.refuted, str(found)


@pytest.mark.usefixtures("known_to_be_row_wise", "shares_once")
@pytest.mark.parametrize("row", EVERY)
def test_a_whole_explainer_keeps_its_promise_to_people_who_count_once(row):
    without, with_me = (side | {"who": [*range(FEW), *["me"] * (len(side["age"]) - FEW)]} for side in (WITHOUT, WITH))
    data = vt.PrivateData(
        {name: [] for name in (*SCHEMA, "who")}, SCHEMA, name="nobody", target="rich", n_rows_public=FEW, ledger="memory",
        budget=vt.Budget(20, 1e-6), person="who",
    )  # fmt: skip
    explainer = row.make(data, model())
    talk = explainer if row.points is None else explainer.conversation(row.points)
    found = vt.audit.explainer(talk, without, with_me, mu=MU, draws=1000, confidence=CONFIDENCE, result=True)
    assert not found.refuted, str(found)
    assert found.claimed_mu == MU
