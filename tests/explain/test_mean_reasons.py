"""What real rows say of reasons: a short vector per row, the same function of sampled rows, and a correction by both."""

import math
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.errors import InvalidInput, ModelError
from vitrail.explain.mean_reasons import PairedVectors, clipped, mean_reasons_recipe
from vitrail.explain.recipe import Terms, drive
from vitrail.solve.coalitions import Chains, share_alike
from vitrail.solve.shapley.reasons import OF_ANOTHER
from vitrail.vault.public_facts import PublicFacts
from vitrail.vault.rows.block import Block
from vitrail.vault.rows.predictions import Predictions

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Categorical(["x", "y", "z"])})
POINTS = np.array([[0.9, 0.2, 2.0], [0.1, 0.5, 0.0], [1.0, 1.0, 1.0]])


def entangled(features):
    return features[:, 0] * features[:, 1] * (1 - features[:, 2]) + 0.5 * features[:, 1] * features[:, 4]


def some_rows(n, seed=0):
    draw = np.random.default_rng(seed)
    return np.column_stack([draw.random(n), draw.random(n), draw.integers(0, 3, n)]).astype(float)


def paired(function, n_each, points=POINTS):
    model = vt.Model(function, range=(-2.0, 2.0))
    chains = Chains(model, SCHEMA, np.arange(3))
    return PairedVectors(SCHEMA, None, chains, points, model.predict_points(SCHEMA, points), 2, 0, n_each=n_each)


def block_of(rows):
    facts = PublicFacts(SCHEMA, None, 100, "add-remove", len(rows))
    predictions = Predictions(facts)

    def predict(model, values):
        predictions.admit(model)
        return predictions.of(model, values, None)

    return Block(rows, facts, predict)


# --- the bound -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    scale=st.floats(-50, 50),
    clip=st.floats(1e-3, 10),
    n_each=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_no_row_is_longer_than_the_clip(scale, clip, n_each, seed):
    """Whatever the model, and however steep: outputs are clipped to its range, and vectors to the clip."""
    steep = paired(lambda x: np.clip(np.sin(scale * x[:, 0] * 40) + scale * x[:, 1], -2, 2), n_each)
    rows = steep.mean_clipped(clip, block_of(some_rows(16, seed)))
    assert np.linalg.norm(rows[:, :-1], axis=1).max() <= clip * (1 + 1e-12)
    assert np.linalg.norm(rows, axis=1).max() <= clip * math.sqrt(1 + 1 / 9) * (1 + 1e-12)


def test_the_bound_is_reached():
    """All points far on one side of a row: no smaller bound would do."""
    points = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    row = paired(lambda x: 4 * x[:, 0] - 2, 2, points).mean_clipped(1.5, block_of(np.zeros((1, 3))))
    assert np.linalg.norm(row) == pytest.approx(1.5 * math.sqrt(1 + 1 / 9), rel=1e-12)


def test_a_row_has_the_same_bits_in_any_company():
    fn, rows = partial(paired(entangled, 2).mean_clipped, 0.3), some_rows(32)
    together = fn(block_of(rows))
    for place in (0, 5, 31):
        alone = np.repeat(SCHEMA.filler(), 32, axis=0)
        alone[place] = rows[place]
        assert (fn(block_of(alone))[place] == together[place]).all()
    order = np.random.default_rng(0).permutation(32)
    assert (fn(block_of(rows[order])) == together[order]).all()


def test_a_row_on_which_the_model_fails_counts_zero():
    vectors = np.full((2, 1, 3), 0.1)
    vectors[1, 0, 2] = np.nan
    failing = paired(entangled, 1)
    object.__setattr__(failing, "of", lambda values, outputs: vectors)
    rows = failing.mean_clipped(1.0, block_of(some_rows(2)))
    assert np.isfinite(rows[0]).all()
    assert np.isnan(rows[1]).all()


def test_every_point_is_some_rows_and_all_of_them_are_everybodys():
    """A row's points follow each other, from one that a hash names; with all of them no choice is left."""
    rows = some_rows(3000)
    outputs = paired(entangled, 1).chains.model.predict_points(SCHEMA, rows)
    whole = paired(entangled, 3).of(rows, outputs)
    ends = whole.sum(axis=2) + outputs[:, None]
    found = paired(entangled, 3).point_outputs
    assert np.allclose(np.sort(ends, axis=1), np.sort(found))
    first = np.abs(ends[:, :1] - found).argmin(axis=1)
    assert np.bincount(first).min() > 900  # a thousand, with a standard deviation of 26
    one = paired(entangled, 1).of(rows, outputs)
    assert (one[:, 0] == whole[:, 0]).all()


@given(st.floats(1e-6, 1e6))
def test_clipped_vectors_keep_their_direction(clip):
    vectors = some_rows(20)[:, None, :] + 0.1
    made = clipped(vectors, clip)
    cosines = (made * vectors).sum(axis=2) / np.linalg.norm(made, axis=2) / np.linalg.norm(vectors, axis=2)
    assert np.allclose(cosines, 1)


# --- the conversation ------------------------------------------------------------------------------------------------

N_ROWS = 6_000
SMALL = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})


def opened(rows, schema=SMALL, **options):
    return vt.PrivateData(
        rows, schema, name="people", n_rows_public=N_ROWS, budget=vt.Budget(1e6, 1e-6), ledger="memory", **options
    )


def uniform(seed=0):
    draw = np.random.default_rng(seed)
    return {"a": draw.random(N_ROWS), "b": draw.random(N_ROWS)}


ROWS = uniform()


def by_heart(features):
    """0.3 more for rows that it was trained on, as a forest of full depth does; otherwise a sum of two columns."""
    known = np.isin(features[:, 0], ROWS["a"]) & np.isin(features[:, 1], ROWS["b"])
    return 0.3 * features[:, 0] + 0.2 * features[:, 1] + 0.3 * known


REMEMBERS = vt.Model(by_heart, range=(0, 1), name="remembers")
PERSON = {"a": 0.8, "b": 0.3}


def on_all_rows(model, person):
    """The mean over all real rows, by both orders of two columns."""
    point, rows = np.array([[person["a"], person["b"]]]), np.column_stack([ROWS["a"], ROWS["b"]])
    one, other = rows.copy(), rows.copy()
    one[:, 0], other[:, 1] = point[0]
    f = partial(model.predict_points, SMALL)
    whole, there = f(rows), f(np.repeat(point, len(rows), axis=0))
    first = (f(one) - whole + there - f(other)).mean() / 2
    return np.array([first, (there - whole).mean() - first])


@pytest.mark.usefixtures("planted_noise")
def test_what_a_model_knows_by_heart_is_taken_off_and_in_the_bands():
    pane = vt.release(opened(ROWS), REMEMBERS, mu=2.0, parts=["rows", "reasons"])
    truth = on_all_rows(REMEMBERS, PERSON)
    found, plain = pane.local(PERSON, bands=True), vt.Pane.from_bytes(pane.to_bytes())
    rows_alone = plain.local(PERSON, bands=True, model=vt.Model(by_heart, range=(0, 1), name="another"))
    assert np.abs(rows_alone.values - truth).min() > 0.1  # sampled rows are none that it knows
    assert np.abs(found.values - truth).max() < 0.02
    assert ((found.lower <= truth) & (truth <= found.upper)).all()
    assert found.base_values[0] == pytest.approx(by_heart(np.column_stack([ROWS["a"], ROWS["b"]])).mean(), abs=0.02)
    for explained in (found, rows_alone):
        assert explained.values.sum() + explained.base_values[0] == pytest.approx(explained.outputs[0], abs=1e-12)
    assert found.cost == pane.cost


@pytest.mark.usefixtures("planted_noise")
def test_noise_that_hides_everything_changes_nothing():
    """At a low price what was bought has next to no weight, and values are those on sampled rows.

    Bands know that nobody looked: what is in no table may be a tenth of what the column is among rows.
    """
    model = vt.Model(lambda x: 0.5 * x[:, 0] + 0.2 * x[:, 1], range=(0, 1), name="sum")
    other = vt.Model(lambda x: 0.5 * x[:, 0] + 0.2 * x[:, 1], range=(0, 1), name="another")
    for weight, most in ((1e-7, 0.1), (1e-9, 0.01)):
        weights = {"rows": 1.0, "reasons": weight}
        pane = vt.release(opened(ROWS), model, mu=2.0, parts=["rows", "reasons"], weights=weights)
        found, plain = pane.local(PERSON, bands=True), pane.local(PERSON, bands=True, model=other)
        assert (np.abs(found.values - plain.values) < most * (found.upper - found.values)).all()
        assert (found.upper - found.values > plain.upper - plain.values).all()


@pytest.mark.usefixtures("planted_noise")
def test_a_correction_is_of_one_model_one_scale_and_the_declared_players():
    schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Numeric(0, 1)})
    rows = {**ROWS, "c": ROWS["a"][::-1]}
    one, two = (vt.Model(lambda x, w=w: w * x[:, 0] + 0.3 * x[:, 1], range=(0, 1), name=f"w{w}") for w in (0.2, 0.6))
    pane = vt.release(opened(rows, schema), [one, two], mu=2.0, parts=["rows", "reasons"])
    assert list(pane.shares()) == ["rows", "reasons", "reasons-2"]
    person = {**PERSON, "c": 0.1}

    def is_corrected(**how):
        return any("corrected by the difference" in note for note in pane.local(person, **how).notes)

    assert is_corrected(model="w0.2")
    assert is_corrected(model=two)
    assert is_corrected(model=two, players=None, method="tree")
    assert not is_corrected(model=two, scale="log-odds")
    assert not is_corrected(model=two, players=[["a", "b"]])
    assert not is_corrected(model=vt.Model(lambda x: x[:, 0], range=(0, 1), name="third"))


def test_another_function_of_the_same_name_is_not_corrected():
    """A function has no content to compare, but it has outputs for the pane's rows."""
    one, other = (vt.Model(lambda x, w=w: w * x[:, 0] + 0.1 * x[:, 1], range=(0, 1)) for w in (0.2, 0.6))
    assert one.name == other.name
    pane = vt.release(opened(ROWS), one, mu=2.0, parts=["rows", "reasons"])
    for model, corrected in ((one, True), (other, False)):
        assert any("corrected by the difference" in note for note in pane.local(PERSON, model=model).notes) is corrected


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("background", [1, 100, 1024, 4096])
def test_any_number_of_sampled_rows_may_be_the_background(background):
    pane = vt.release(opened(ROWS), REMEMBERS, mu=2.0, parts=["rows", "reasons"])
    found = pane.local(PERSON, bands=True, background=background)
    assert found.values.sum() + found.base_values[0] == pytest.approx(found.outputs[0], abs=1e-12)
    truth = on_all_rows(REMEMBERS, PERSON)
    assert ((found.lower <= truth) & (truth <= found.upper)).all()


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_noise_is_that_of_the_clip(neighbours):
    data = opened(ROWS, neighbours=neighbours)
    rows = vt.private_rows(data, mu=2.0)
    terms = Terms.of(data, 0.5)
    asked, released = [], []

    def answer(ask, units, step):
        asked.append(ask)
        released.append(data.ask(ask.question, mu=math.sqrt(units / 1e12)))
        return released[-1]

    made = drive(mean_reasons_recipe(terms, REMEMBERS, rows), 250_000_000_000, answer)
    assert [ask.share for ask in asked] == [1.0]
    sigma = (2 if neighbours == "replace-one" else 1) * made.clip * math.sqrt(1 + 1 / 9) / 0.5
    assert released[0].sigma == pytest.approx(sigma, rel=1e-6)
    assert (made.stds / made.sizes).min() >= sigma / rows.total * (1 - 1e-6)
    assert type(made).from_bytes(made.to_bytes()) == made


@pytest.mark.usefixtures("planted_noise")
def test_rows_that_are_alike_do_not_all_hang_on_one_point():
    """Half of the rows are one: with one point each, the mean over points would be half that of a single one."""
    rows = {name: np.where(np.arange(N_ROWS) % 2 == 0, 0.0, ROWS[name]) for name in ROWS}
    product = vt.Model(lambda x: x[:, 0] * x[:, 1], range=(0, 1), name="product")
    made = vt.release(opened(rows), product, mu=5.0, parts=["rows", "reasons"])
    assert share_alike(made.private_rows.sampled) == pytest.approx(0.25, abs=0.05)
    found = made.mean_reasons
    assert (np.abs(found.per_row.mean(axis=0) - found.means) < 4 * np.hypot(found.stds, found.expected)).all()


def test_reasons_go_with_rows():
    with pytest.raises(InvalidInput, match="name 'rows' as well"):
        vt.release(opened(ROWS), REMEMBERS, mu=1.0, parts=["reasons", "pdp"])
    with pytest.raises(InvalidInput, match="'reasons', which is about a model"):
        vt.release(opened(ROWS), mu=1.0, parts=["rows", "reasons"])


def test_a_model_that_fails_on_sampled_rows_is_told_before_anything_is_charged():
    data = opened(ROWS)
    broken = vt.Model(lambda x: np.where(x[:, 0] > 0.001, np.nan, 0.5), range=(0, 1), name="broken")
    with pytest.raises(ModelError):
        vt.release(data, broken, mu=1.0, parts=["rows", "reasons"])
    assert data.budget.spent == vt.Cost()


def test_a_model_that_fails_on_some_rows_does_not_cost_the_pane():
    """Rows are paid for before a sampled one is met that it fails on: that row counts zero, as a real one does."""
    data = opened(ROWS)
    rows = vt.private_rows(data, mu=2.0)
    bad = rows.sampled[:50, 0]  # no public probe has these
    gap = vt.Model(lambda x: np.where(np.isin(x[:, 0], bad), np.nan, x[:, 1]), range=(0, 1), name="gap")

    def answer(ask, units, step):
        return data.ask(ask.question, mu=math.sqrt(units / 1e12))

    made = drive(mean_reasons_recipe(Terms.of(data, 0.5), gap, rows), 250_000_000_000, answer)
    assert (made.per_row[:50] == 0).all()
    assert made.per_row[50:].any(axis=1).mean() > 0.9


def test_many_rows_are_sampled(monkeypatch):
    """Of more rows than are looked at, a sample: with more noise, and with the choice of it in the errors."""
    monkeypatch.setattr("vitrail.explain.mean_reasons.MOST_ROWS", N_ROWS // 4)
    data = opened(ROWS)
    pane = vt.release(data, REMEMBERS, mu=2.0, parts=["rows", "reasons"])
    found, truth = pane.local(PERSON, bands=True), on_all_rows(REMEMBERS, PERSON)
    assert (np.abs(found.values - truth) < 3 * (found.upper - found.values)).all()  # six standard errors


@pytest.mark.usefixtures("planted_noise")
def test_notes_say_how_large_the_correction_is_and_of_another_model_what_it_was_for_this_one():
    pane = vt.release(opened(ROWS), REMEMBERS, mu=2.0, parts=["rows", "reasons"])
    other = vt.Model(lambda x: x[:, 0], range=(0, 1), name="new")
    own, new, odds = (pane.local(PERSON, **how) for how in ({}, {"model": other}, {"model": other, "scale": "log-odds"}))
    size = next(said for note in own.notes if (said := re.search(r"difference, (at most (\S+) \([ab]\));", note)))
    assert 0.1 < float(size.group(2)) < 0.2  # half of what it adds for rows that it knows, for each of two columns
    assert new.notes[-1] == OF_ANOTHER.format(model="remembers", size=size.group(1))
    assert not any("For remembers" in note for note in (*own.notes, *odds.notes))
