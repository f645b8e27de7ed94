"""The network as a code: its gradients, what a row adds to a step, what a training costs, and that it learns."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.accounting import Cost
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.explain import counterfactual
from vitrail.explain.counterfactual import step_question, training
from vitrail.explain.recipe import Terms, drive
from vitrail.explain.split import mu_of_units
from vitrail.solve.counterfactual.codes import MOST_FEATURES, TRAINING_STEPS, NetworkCode, first_code, weights_on_grid
from vitrail.vault import PublicRows, rehearse

FEATURES, UNITS = 6, 4
SCHEMA = vt.Schema({f"x{place}": vt.Numeric(0, 1) for place in range(FEATURES)})
MODEL = vt.Model(lambda x: (x[:, 0] > 0.5).astype(float), range=(0, 1), name="bank")


def some_code(seed=0, size=1.0, scale=2.0):
    generator = np.random.default_rng(seed)
    hidden = weights_on_grid(generator.normal(0, size, (FEATURES + 1, UNITS)))
    return NetworkCode(hidden, weights_on_grid(generator.normal(0, size, (UNITS + 1, FEATURES))), scale)


def some_rows(n, seed=1):
    """Rows on a curve: one number decides all columns, as it does not in a mean row."""
    t = np.random.default_rng(seed).random((n, 1))
    return np.clip(0.5 + 0.45 * np.sin(2 * math.pi * t + np.arange(FEATURES)), 0, 1)


def frame(rows):
    return {name: rows[:, place] for place, name in enumerate(SCHEMA)}


def loss(code, z):
    h = np.tanh(z @ code.hidden[:-1] + code.hidden[-1])
    made = 1 / (1 + np.exp(-(h @ code.output[:-1] + code.output[-1])))
    return float(-(z * np.log(made) + (1 - z) * np.log(1 - made)).sum())


@pytest.mark.parametrize("layer", ["hidden", "output"])
def test_gradients_are_those_of_the_loss(layer):
    code, z = some_code(), np.rint(some_rows(5) * 2**20) / 2**20
    a, r = code.gradients(z)[{"hidden": slice(0, 2), "output": slice(2, 4)}[layer]]
    found = a.T @ r
    for place in np.ndindex(found.shape):
        step = np.zeros_like(found)
        step[place] = 1e-5
        above, below = (loss(replace(code, **{layer: getattr(code, layer) + s}), z) for s in (step, -step))
        assert found[place] == pytest.approx((above - below) / 2e-5, rel=1e-3, abs=2e-4)


def steps_sum(code, rows, mu=1e4):
    """A step's sum with next to no noise."""
    question = step_question(code, 0)
    flat = rehearse(question, frame(rows), SCHEMA, mu=mu, n_rows_public=len(rows), draws=1)[0]
    return flat, question


def test_a_step_adds_up_clipped_gradients_of_single_rows():
    code, rows = some_code(size=0.3, scale=math.sqrt(FEATURES)), some_rows(40)
    flat, question = steps_sum(code, rows)
    naive, clipped = np.zeros(len(flat)), 0
    for row in rows:
        a, e, b, d = (part[0] for part in code.gradients(np.floor(row[None] * 2**20) / 2**20))
        gradient = np.concatenate([np.outer(a, e).ravel(), np.outer(b, d).ravel()])
        clipped += np.linalg.norm(gradient) > question.l2_bound
        naive += gradient * min(1.0, question.l2_bound / np.linalg.norm(gradient))
    assert 0 < clipped < len(rows)  # both kinds are there
    assert np.abs(flat - naive).max() < 2e-3 * question.l2_bound  # twenty standard deviations of the noise


@settings(max_examples=40, deadline=None)
@given(
    row=st.lists(st.floats(0, 1), min_size=FEATURES, max_size=FEATURES),
    seed=st.integers(0, 99),
    size=st.sampled_from([1e-3, 1.0, 16.0]),
    scale=st.sampled_from([0.1, 1.0, math.sqrt(FEATURES)]),
)
def test_no_row_moves_a_step_further_than_its_clip(row, seed, size, scale):
    flat, question = steps_sum(some_code(seed, size, scale), np.array([row]), mu=1e5)
    assert np.linalg.norm(flat) <= question.l2_bound * (1 + 1e-3)  # a hundred standard deviations of the noise
    assert question.l2_bound == counterfactual.CLIP_SHARE * scale


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), size=st.sampled_from([0.1, 1.0, 30.0]))
def test_codes_are_no_longer_than_1(seed, size):
    code = some_code(seed, size)
    x = some_rows(50, seed) / 2.0
    assert (np.linalg.norm(code.encode(x), axis=1) <= 1 + 1e-12).all()
    assert (code.decode(code.encode(x)) >= 0).all()


def test_what_a_row_says_has_the_same_bits_anywhere():
    """For as many features as there may be, and weights as large: matrix products without any rounding."""
    generator = np.random.default_rng(2)
    n = MOST_FEATURES
    hidden = weights_on_grid(generator.uniform(-16, 16, (n + 1, 5)))
    code = NetworkCode(hidden, weights_on_grid(generator.uniform(-16, 16, (6, n))), 3.0)
    z = np.rint(generator.random((33, n)) * 2**20) / 2**20
    exact = [sum(int(a * 2**20) * int(w * 2**16) for a, w in zip(z[0], hidden[:-1, 0], strict=True))]
    assert (z @ hidden[:-1])[0, 0] == exact[0] / 2**36
    whole, order = code.gradients(z), generator.permutation(33)
    for all_rows, permuted in zip(whole, code.gradients(z[order]), strict=True):
        assert (all_rows[order] == permuted).all()
    for place in (0, 17, 32):
        for all_rows, alone in zip(whole, code.gradients(z[place : place + 1]), strict=True):
            assert (all_rows[place] == alone[0]).all()


def trained(rows, scale, mu, **options):
    """A training against the vault's mechanisms, question by question."""
    public = PublicRows(frame(rows), SCHEMA, len(rows))
    terms = Terms("rows", SCHEMA, None, len(rows), "add-remove", 1e-6, mu)
    recipe = training(terms, FEATURES, scale, **options)

    def answer(ask, units, step):
        return public.ask(ask.question, mu=mu_of_units(units), delta=1e-6)

    return drive(recipe, Cost.of_mu(mu).pico_mu_squared, answer)


def test_prices_add_up_to_what_was_asked():
    code, releases = trained(some_rows(30), 2.0, 0.5, n_steps=7, units=UNITS)
    assert len(releases) == 8
    assert code.size == UNITS
    spent = sum(one.cost.pico_mu_squared for one in releases)
    assert 0.5**2 * 10**12 * (1 - 1e-6) < spent <= 0.5**2 * 10**12
    with pytest.raises(InvalidInput, match="too small"):
        trained(some_rows(3), 2.0, 1e-6, n_steps=7)


@pytest.mark.usefixtures("planted_noise")
def test_it_learns_what_the_mean_row_does_not_know():
    rows, held = some_rows(600), some_rows(200, 9)
    scale = math.sqrt(FEATURES)
    code, _ = trained(rows, scale, 200.0)
    error = ((code.decode(code.encode(held / scale)) * scale - held) ** 2).mean()
    assert error < 0.5 * ((held - rows.mean(axis=0)) ** 2).mean()
    start = first_code(rows.mean(axis=0), scale)
    assert error < 0.6 * ((start.decode(start.encode(held / scale)) * scale - held) ** 2).mean()


@pytest.fixture
def data():
    rows = some_rows(900)
    return vt.PrivateData(frame(rows), SCHEMA, name="rows", n_rows_public=900, budget=vt.Budget(1.5, 1e-6))


@pytest.mark.usefixtures("planted_noise")
def test_a_fit_with_a_network_is_paid_once_and_travels(data, tmp_path):
    made = vt.Counterfactual(data, MODEL, latent="network", rows=False, key="bank").fit(epsilon=1.0)
    assert data.budget.spent_epsilon == pytest.approx(1.0, rel=1e-3)
    assert data.budget.spent_epsilon <= 1.0 + 1e-9
    assert made.cost.pico_mu_squared == data.budget.spent.pico_mu_squared
    charged = data.budget.n_questions
    again = vt.Counterfactual(data, MODEL, latent="network", rows=False, key="bank").fit(epsilon=1.0)
    assert data.budget.n_questions == charged == TRAINING_STEPS + 2
    person = dict.fromkeys(SCHEMA, 0.2)
    out = made(person, desired_class=1)
    assert out.validity.tolist() == [[True]]
    assert again(person, desired_class=1).changes == out.changes
    made.save(tmp_path / "n.cf")
    loaded = vt.FittedCounterfactual.load(tmp_path / "n.cf", model=MODEL)
    assert loaded(person, desired_class=1).changes == out.changes


def test_a_network_that_does_not_fit_is_refused_before_its_first_step(data):
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        vt.Counterfactual(data, MODEL, latent="network").fit(epsilon=1.6)
    assert data.budget.n_questions == 0


class Killed(BaseException):
    """Stands for a process that ends between two steps."""


def kill_after(explainer, answers, **price):
    """Have the conversation and end it once so many answers were delivered; the rehearsal is not counted."""
    talk, delivered = explainer.conversation(), 0

    def dying(terms):
        nonlocal delivered
        recipe, release = talk.recipe(terms), None
        while True:
            release = yield recipe.send(release)
            delivered += 1
            if delivered == answers:
                raise Killed

    with pytest.raises(Killed):
        replace(talk, recipe=dying).explain(**price)


def test_a_training_that_broke_off_goes_on_where_it_stopped(tmp_path):
    def opened():
        where = f"sqlite:///{tmp_path / 'l.db'}"
        rows = frame(some_rows(300))
        return vt.PrivateData(rows, SCHEMA, name="rows", n_rows_public=300, budget=vt.Budget(2, 1e-6), ledger=where)

    def explainer(data, name="bank"):
        model = vt.Model(lambda x: (x[:, 0] > 0.5).astype(float), range=(0, 1), name=name)
        return vt.Counterfactual(data, model, latent="network", rows=False, key=name)

    kill_after(explainer(opened()), 40, epsilon=1.0)
    data = opened()
    assert data.budget.spent_epsilon == pytest.approx(1.0)  # the whole price is set aside
    picture = explainer(data)(epsilon=1.0)
    assert data.budget.spent == picture.cost
    assert sum(entry.kind == "charged" for entry in data.budget.entries) == TRAINING_STEPS + 2
    # The training is about the rows alone: another model at the same price pays for its classes only.
    other = explainer(data, "other bank")(epsilon=1.0)
    assert (other.code.hidden == picture.code.hidden).all()
    assert sum(entry.kind == "charged" for entry in data.budget.entries) == TRAINING_STEPS + 3
    assert other.cost == picture.cost
    assert data.budget.spent.pico_mu_squared == pytest.approx(1.5 * picture.cost.pico_mu_squared, rel=1e-6)
