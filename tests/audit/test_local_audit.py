"""Local explanations attacked where a row says most: by the regions of a picture, and for several classes at once.

What is audited is the question that the explainer itself asks: a call is made on nobody's rows, its question and price are
taken down on their way into the vault, and the vault's mechanism is drawn 40 000 times on either of two neighbouring
datasets. How the row moves the release is public knowledge, so the adversary looks along that direction, which is computed
from two releases without noise. The neighbours are the worst we know: a row at the distance where weight times length is
largest, or one that breaks what the view or the model promised, so that the vault's clips decide; one more, or exchanged.

Whole explainers are attacked in ``test_every_explainer_audit.py``.
"""

import contextlib
import functools
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from scipy.stats import norm

import vitrail as vt
from error_rates import CONFIDENCE, count_bounds, planted_noise
from vitrail.vault import rehearse
from vitrail.vault.noise.sampler import rounded_gaussian
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.questions import question as questions

MU = 1.0
DRAWS = 40_000
FEWER_DRAWS = 10_000
"""To see whether neighbours are as far apart as they should be: a tenth more or less would be seen."""
N_PUBLIC = 4
BOUNDS = ("l2_bound", "row_norm", "y_bound", "left_bounds", "right_bounds")
"""Of a question, that clip its rows."""
PICTURE = vt.Picture((2, 2), patches=(1, 2), high=1)
SCHEMA = PICTURE.schema()
BLACK = PICTURE.rows(np.zeros((2, 2)))
HALVES = PICTURE.rows(np.array([[1.0, 1.0], [0.0, 0.0]]))
GREY = 0.365
"""Brightness of a row that says most about a black point, with the stable weight; no public probe row has it everywhere."""


def grey(*levels):
    """Evenly grey pictures as rows."""
    return PICTURE.rows(np.array([np.full((2, 2), level) for level in levels]).reshape(-1, 2, 2))


def halves(upper, lower):
    """One picture with two patches."""
    return PICTURE.rows(np.array([[[upper] * 2, [lower] * 2]]))


class Boastful:
    """A view that promises rows no longer than 1, and shows one that is 50 long."""

    def schema(self):
        return SCHEMA

    def view_schema(self):
        return vt.Schema({"upper": vt.Numeric(0, 1), "lower": vt.Numeric(0, 1)})

    largest_norm = 1.0
    note = "Lengths are not what they are said to be."

    def look(self, features):
        upper, lower = features[:, 0], features[:, 2]
        lower = lower * (1 - upper)  # a^2 + b^2 (1 - a)^2 is at most 1
        odd = (features == GREY).all(axis=1)
        return np.stack([np.where(odd, 0.0, upper), np.where(odd, 50.0, lower)], axis=1)

    def digest(self):
        return "boastful"


LIGHT = vt.Model(lambda x: np.where(x.sum(axis=1) > 0.01, 1.0, 0.0), range=(0, 1), name="light")


def classes(probabilities, count):
    return [vt.Model(probabilities, output=k, range=(0, 1), name=f"class {k}") for k in range(count)]


def light_or_dark(x):
    light = x.sum(axis=1) > 0.01
    return np.stack([light & (x[:, 0] >= x[:, 3]), light & (x[:, 0] < x[:, 3]), ~light], axis=1).astype(float)


def everything_at_once(x):
    """Probabilities of eight classes, but for one row, which is of every class for certain."""
    return np.where((x == GREY).all(axis=1)[:, None], 1.0, np.pad(light_or_dark(x), ((0, 0), (0, 5))))


PLAIN = vt.linear.Statistics(bands=False)


def local(view, point=BLACK, **options):
    return lambda data, mu: vt.LocalLinear(data, LIGHT, view=view, method=PLAIN, **options)(point, mu=mu)


def of_classes(probabilities, count=3, **options):
    models = classes(probabilities, count)
    return lambda data, mu: vt.LocalClasses(data, models, method=PLAIN, **options)(BLACK, mu=mu)


def flat(distances):
    return np.ones_like(distances)


NOBODY = grey()
CALLS = {
    "view": local(PICTURE),
    "view without an intercept": local(PICTURE, intercept=False),
    "view that breaks its promise": local(Boastful(), HALVES, weight=flat),
    "classes": of_classes(light_or_dark),
    "classes that are no probabilities": of_classes(everything_at_once, 8),
    "classes seen through a view": of_classes(light_or_dark, view=PICTURE),
}
WORST = {
    "view": grey(GREY),
    "view without an intercept": grey(0.37),
    "view that breaks its promise": grey(GREY),
    "classes": grey(GREY),
    "classes that are no probabilities": grey(GREY),
    "classes seen through a view": grey(GREY),
}
EXCHANGED = {
    "view": (grey(GREY), grey(0.0)),
    "view without an intercept": (halves(0.5, 0.0), halves(0.0, 0.5)),
    "view that breaks its promise": (grey(GREY), grey(0.0)),
    "classes": (halves(0.5, 0.1), halves(0.1, 0.5)),
    "classes that are no probabilities": (grey(GREY), grey(0.0)),
    "classes seen through a view": (halves(0.5, 0.1), halves(0.1, 0.5)),
}
PAIRS = {"add-remove": {name: (NOBODY, row) for name, row in WORST.items()}, "replace-one": EXCHANGED}


def data_of(rows, relation):
    return vt.PrivateData(
        rows, SCHEMA, name="audited", n_rows_public=N_PUBLIC, budget=vt.Budget(1e5, 1e-6), neighbours=relation, block_rows=2
    )


@contextlib.contextmanager
def recorded(what):
    """Take down what is asked of the vault, and what it answers."""
    real = vt.PrivateData.ask_reserved

    def ask(data, reservation, question, *, price, **step):
        answer = real(data, reservation, question, price=price, **step)
        what.append((question, price, answer))
        return answer

    with mock.patch.object(vt.PrivateData, "ask_reserved", ask):
        yield


@functools.cache
def question_of(name, relation):
    """The one question behind a call; its price is what the caller agreed to, and what the ledger charged."""
    data, asked = data_of(NOBODY, relation), []
    with recorded(asked):
        CALLS[name](data, MU)
    ((question, price, _),) = asked
    assert price <= MU
    assert data.budget.spent == vt.Cost.of_mu(MU) == vt.Cost.of_mu(price)
    return question


def drawn(name, relation, rows, draws):
    question = question_of(name, relation)
    return rehearse(question, rows, SCHEMA, mu=MU, n_rows_public=N_PUBLIC, draws=draws, neighbours=relation, block_rows=2)


@contextlib.contextmanager
def without_noise():
    with mock.patch("vitrail.vault.questions.question.rounded_gaussian", lambda sigma, size: np.zeros(size, np.int64)):
        yield


@functools.cache
def expected(name, relation):
    """What is released on average on either dataset."""
    question_of(name, relation)
    with without_noise():
        return tuple(drawn(name, relation, rows, 1)[0] for rows in PAIRS[relation][name])


def direction(name, relation):
    """In which direction the row moves the release, each number by how little noise it has."""
    one, other = expected(name, relation)
    return (other - one) * precision(question_of(name, relation))


def apart(name, relation, mu=MU):
    """How far apart the neighbours are along the direction, in standard deviations of the noise at that price."""
    one, other = expected(name, relation)
    question = question_of(name, relation)
    sigma = question.plan(mu, PublicFacts(SCHEMA, None, N_PUBLIC, relation, 2)).sigma
    return float(np.sqrt((np.square(other - one) * precision(question)).sum())) / sigma


def precision(question):
    """One over the variance of each released number: off its diagonal a Gram sum has half the variance."""
    if not isinstance(question, vt.GramSum):
        return 1.0
    first, second = np.triu_indices(question.size)
    return np.concatenate([np.where(first == second, 1.0, 2.0), np.ones(question.size)])


def audit(name, relation, claimed=MU):
    along = direction(name, relation)
    return vt.audit.mechanism(
        lambda rows, draws: drawn(name, relation, rows, draws),
        PAIRS[relation][name],
        claimed,
        draws=DRAWS,
        confidence=CONFIDENCE,
        statistic=lambda outputs: outputs @ along,
    )


@pytest.mark.parametrize("relation", PAIRS)
@pytest.mark.parametrize("name", CALLS)
def test_one_row_is_told_no_better_than_promised(name, relation):
    found = audit(name, relation)
    assert not found.refuted, str(found)


@pytest.mark.parametrize(("relation", "least"), [("add-remove", 0.99), ("replace-one", 0.54)])
@pytest.mark.parametrize("name", CALLS)
def test_one_row_is_told_as_well_as_promised(name, relation, least):
    """One row more uses the whole bound; no two rows say the opposite of each other everywhere."""
    mu, along = apart(name, relation), direction(name, relation)
    assert least < mu <= MU
    middle = sum(expected(name, relation)) @ along / 2
    for rows, sign in zip(PAIRS[relation][name], (-1, 1), strict=True):
        beyond = int((drawn(name, relation, rows, FEWER_DRAWS) @ along > middle).sum())
        # Two counts; as much again for the grid, which moves their rate by less than a tenth of its standard deviation.
        low, high = count_bounds(FEWER_DRAWS, norm.cdf(sign * mu / 2), of=4)
        assert low <= beyond <= high


@pytest.mark.parametrize("name", ["view", "classes seen through a view"])
def test_halved_noise_is_caught(name, monkeypatch):
    expected(name, "add-remove")  # is public, and known before
    monkeypatch.setattr(questions, "rounded_gaussian", lambda sigma, size: rounded_gaussian(sigma / 2, size))
    with planted_noise():
        found = audit(name, "add-remove")
    assert found.refuted, str(found)


@pytest.mark.parametrize("name", ["view that breaks its promise", "classes that are no probabilities"])
def test_a_looser_clip_is_caught(name):
    """Clips ten times as wide, under the noise of the right ones."""
    question = question_of(name, "add-remove")
    wide = {bound: np.multiply(getattr(question, bound), 10) for bound in BOUNDS if hasattr(question, bound)}
    wide = {bound: tuple(value) if value.ndim else float(value) for bound, value in wide.items()}
    loose = replace(question, **wide)

    def run(rows, draws):
        return rehearse(loose, rows, SCHEMA, mu=10 * MU, n_rows_public=N_PUBLIC, draws=draws, block_rows=2)

    along = direction(name, "add-remove")
    with planted_noise():
        found = vt.audit.mechanism(
            run,
            PAIRS["add-remove"][name],
            MU,
            draws=DRAWS,
            confidence=CONFIDENCE,
            statistic=lambda outputs: outputs @ along,
        )
    assert found.refuted, str(found)
