"""Explainers attacked end to end: whole conversations on rows with and without a person.

Every explainer of the table is audited by being a row of it. Promises are tested on fresh noise with the confidence of
``error_rates``. Whether the instrument would see a broken promise has no error rate, so that is tested on planted noise.
"""

import numpy as np
import pytest

import vitrail as vt
from error_rates import CONFIDENCE
from explainer_table import SCHEMA, TABLE, model, rows
from vitrail.errors import InvalidInput
from vitrail.explain import recipe
from vitrail.explain.marginals import MarginalsExplainer
from vitrail.explain.recipe import Ask, Conversation
from vitrail.vault.questions import cell_counts

pytestmark = pytest.mark.usefixtures("known_to_be_row_wise", "shares_once")
MU, DRAWS, FEW = 2.0, 1000, 6
PERSON = {"age": 90, "hours": 80.0, "sex": "Male", "rich": "yes"}
WITHOUT = rows(FEW)
WITH = {name: np.append(values, PERSON[name]) for name, values in WITHOUT.items()}
FAST = {"marginals", "shapley"}
EVERY = [pytest.param(row, id=row.name, marks=() if row.name in FAST else pytest.mark.slow) for row in TABLE]


def data(schema=SCHEMA, target="rich"):
    """Public facts of nobody's rows."""
    empty = {name: [] for name in schema}
    return vt.PrivateData(
        empty, schema, name="nobody", target=target, n_rows_public=FEW, budget=vt.Budget(20, 1e-6), ledger="memory"
    )


def audited(audited, neighbours=(WITHOUT, WITH), **options):
    return vt.audit.explainer(audited, *neighbours, **{"mu": MU, "draws": DRAWS, "confidence": CONFIDENCE} | options)


@pytest.mark.parametrize("row", EVERY)
def test_a_whole_explainer_keeps_its_promise(row):
    explainer = row.make(data(), model())
    found = audited(explainer if row.points is None else explainer.conversation(row.points), result=True)
    assert not found.refuted, str(found)
    assert found.claimed_mu == MU


@pytest.mark.usefixtures("planted_noise")
def test_a_person_is_told_as_well_as_was_paid_for():
    found = audited(MarginalsExplainer(data(), bins=4))
    assert found.tightness > 0.6, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_too_little_noise_in_a_conversation_is_caught(monkeypatch):
    real = cell_counts.sigma_for
    monkeypatch.setattr(cell_counts, "sigma_for", lambda sensitivity, mu: real(sensitivity / 2, mu))
    found = audited(vt.MarginalsExplainer(data(), bins=4), mu=None, epsilon=vt.Guarantee.of_mu(MU, 1e-6).epsilon)
    assert found.claimed_mu == pytest.approx(MU, rel=1e-6)
    assert found.refuted, str(found)


# Conversations of several questions

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
NOBODY, SOMEBODY = {"x": []}, {"x": [1.0]}


class Told:
    """A result of three numbers and a word."""

    def frame(self):
        return {"value": np.array([1.0, 2.0]), "rank": np.array([1]), "column": np.array(["x"])}


def sum_of(size=1):
    return vt.BoundedSum(lambda block: np.repeat(block.features, size, axis=1) / size**0.5, size=size, l2_bound=1.0)


def quarters(terms):
    """The same question four times."""
    for _ in range(4):
        yield Ask(sum_of(), 0.25)
    return Told()


def adaptive(terms):
    """How much is asked, and how often, depends on the first answer."""
    first = yield Ask(sum_of(), 0.5)
    if first.value[0] > 0:
        yield Ask(sum_of(3 if first.value[0] > 1 else 2), 0.5)
    return Told()


def toy(asked):
    return Conversation(data(UNIT, None), asked, "toy", None)


@pytest.mark.parametrize("asked", [pytest.param(quarters, marks=pytest.mark.slow), adaptive])
def test_a_conversation_of_several_questions_keeps_its_promise(asked):
    found = audited(toy(asked), (NOBODY, SOMEBODY), result=True)
    assert not found.refuted, str(found)


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("asked", [quarters, adaptive])
def test_all_questions_of_a_conversation_are_looked_at(asked):
    """No single question of either shows more than mu = 1.42."""
    found = audited(toy(asked), (NOBODY, SOMEBODY), confidence=0.9)
    assert found.mu_lower > 1.42, str(found)


@pytest.mark.usefixtures("planted_noise")
def test_questions_that_get_the_whole_price_each_are_caught(monkeypatch):
    monkeypatch.setattr(recipe.Split, "next", lambda self, share: self._units)
    found = audited(toy(quarters), (NOBODY, SOMEBODY))
    assert found.refuted, str(found)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"audited": vt.Shapley}, "explainer.conversation"),
        ({"draws": 10}, "from 1000"),
        ({"mu": None}, "give the question a price"),
        ({"epsilon": 1.0}, "and not both"),
        ({"mu": -1.0}, "mu"),
        ({"confidence": 2.0}, "confidence is"),
    ],
)
def test_bad_input_is_refused_before_the_long_work(changes, message, monkeypatch):
    monkeypatch.setattr(Conversation, "on", lambda *_, **__: pytest.fail("the long work began"))
    given = {"audited": toy(quarters)} | changes
    with pytest.raises(InvalidInput, match=message):
        audited(given.pop("audited"), (NOBODY, SOMEBODY), **given)
