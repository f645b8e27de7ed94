"""Shapley values end to end: from private rows to an explanation, what it costs and what it refuses."""

import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from error_rates import CONFIDENCE, normal_bound, planted_noise
from shapley_rows import MODEL, POINT, SCHEMA, N, additive, exact_vectors, most_std, private, question_of, rows_of
from vitrail.errors import BudgetExceeded, InvalidInput, ModelError, RowCountWarning, VitrailError
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.shapley.released import Scales, choose_clip, clip_edges
from vitrail.vault import rehearse

ADULT = Path(__file__).parents[2] / "examples" / "data"


def test_an_additive_model_is_explained_by_its_parts():
    rows = rows_of()
    e = vt.Shapley(private(rows), MODEL)(POINT, mu=20.0)
    expected = exact_vectors(rows, POINT).mean(axis=0)
    sigma = private().quote(question_of(vt.Shapley(private(), MODEL), POINT), mu=20.0).sigma
    std = most_std(Scales(1, 3, 1.0, 1.0), sigma, N, 0.4)
    assert std < 5e-5
    assert (e.upper - e.values > 0.5 * TWO_SIDED_95 * sigma / N).all()
    np.testing.assert_allclose(e.values, expected, rtol=0, atol=normal_bound(of=4) * std)
    base = additive(SCHEMA.features(SCHEMA.read(rows))[0]).mean()
    np.testing.assert_allclose(e.base_values, base, rtol=0, atol=normal_bound(of=4) * 3 * std)  # its noise is twice theirs
    assert e.columns == ("a", "b", "c")
    assert e.points == (POINT,)
    assert e.method == "shapley"
    assert (e.lower < e.values).all()
    assert (e.values < e.upper).all()
    np.testing.assert_allclose(e.predictions, e.outputs, atol=1e-12)


def test_the_quote_is_what_comes_and_costs_nothing():
    data = private(epsilon=2.0)
    shapley = vt.Shapley(data, MODEL)
    quote = shapley.quote(POINT, epsilon=1.0)
    assert data.budget.spent_epsilon == 0
    assert quote.fits
    assert "Bands of about +-" in str(quote)
    e = shapley(POINT, epsilon=1.0)
    # Both hold the clip's noisy allowance: nothing, or at most so much more than the noise's own half-width.
    assert 0.1 < e.half_width / quote.half_width < 10
    assert quote.price.cost == e.cost
    assert quote.price.guarantee.epsilon == e.guarantee.epsilon
    assert math.isclose(data.budget.spent_epsilon, 1.0, rel_tol=1e-6)
    assert not shapley.quote(POINT, epsilon=1.9).fits
    assert quote.to_json()["half_width"] == quote.half_width


@pytest.mark.usefixtures("planted_noise")
def test_noise_grows_with_the_root_of_the_points_and_the_base_is_shared():
    shapley = vt.Shapley(private(), MODEL)
    four = [{**POINT, "a": a} for a in (1.0, 3.0, 5.0, 7.0)]
    one, many = shapley.quote(POINT, epsilon=1).half_width, shapley.quote(four, epsilon=1).half_width
    assert 1.0 < many / one < 4.0  # twice the noise, less what four estimates of one base bring; allowances vary
    bounds = [question_of(shapley, points).l2_bound for points in (four, POINT)]
    assert 1.9 < bounds[0] / bounds[1] < 2.0  # the count takes less of four
    e = shapley(pd.DataFrame(four), mu=30.0)
    assert len(set(e.base_values.tolist())) == 1
    np.testing.assert_allclose(np.diff(e.values[:, 0]), 0.4 * 0.2, atol=1e-3)


@pytest.mark.usefixtures("planted_noise")
def test_a_sample_of_the_rows_is_unbiased():
    shapley = vt.Shapley(private(), MODEL, sampling_rate=0.3)
    question = question_of(shapley, POINT)
    assert question.rate is not None
    draws = rehearse(question, rows_of(), SCHEMA, mu=30.0, n_rows_public=N, draws=200, block_rows=512)
    full = rehearse(
        question_of(vt.Shapley(private(), MODEL), POINT),
        rows_of(),
        SCHEMA,
        mu=90.0,
        n_rows_public=N,
        draws=1,
        block_rows=512,
    )[0]
    error = draws.std(axis=0) / math.sqrt(200)
    both = [0, 1, 2, -2, -1]  # values, base and count; a sample has the squares of the values in between
    assert (np.abs(draws.mean(axis=0)[both] - full[both]) < 5 * error[both] + 0.1).all()
    assert (error[:3] > 0).all()
    e = shapley(POINT, mu=30.0)
    assert any("sample of rows" in note for note in e.notes)
    rest = rehearse(question, rows_of(), SCHEMA, mu=30.0, n_rows_public=N, draws=1, block_rows=512)[0][3:6]
    squares = rest / Scales(1, 3, 1.0, 1.0, sampled=True).squares / N
    np.testing.assert_allclose(squares, (exact_vectors(rows_of(), POINT)[:, 0] ** 2).mean(axis=0), atol=0.01)


@pytest.mark.usefixtures("planted_noise")
def test_auto_clip_stays_within_its_price_and_clips_few():
    rows = rows_of()
    data = private(rows, epsilon=5.0)
    shapley = vt.Shapley(data, MODEL, clip="auto", key="additive")
    e = shapley(POINT, epsilon=4.0)
    assert e.guarantee.epsilon <= 4.0
    assert data.budget.spent_epsilon <= 4.0
    assert math.isclose(e.guarantee.epsilon, 4.0, rel_tol=1e-3)
    features = SCHEMA.features(SCHEMA.read(rows))[0]
    at = SCHEMA.features(SCHEMA.read_points(POINT))[0]
    norms = np.linalg.norm(((at - features) * [0.4, 0.3, 0, 0, 0.2])[:, [0, 1, 4]], axis=1)
    clip = float(next(n for n in e.notes if "clip of" in n).split("clip of ")[1].split(" ")[0])
    assert (norms > clip).mean() <= 0.07
    edges = clip_edges(1.0, 3)
    below = edges[np.argmin(np.abs(edges - clip)) - 1]
    assert (norms > below).mean() > 0.03
    assert clip < 1.0
    unclipped = vt.Shapley(data, MODEL).quote(POINT, epsilon=4.0)
    assert e.half_width < unclipped.half_width
    assert 0.4 < e.half_width / shapley.quote(POINT, epsilon=4.0).half_width < 2.5  # the stand-in's clip is another edge
    spent = data.budget.spent
    again = shapley(POINT, epsilon=4.0)  # both questions replay, although neither would fit any more
    assert (again.values == e.values).all()
    assert data.budget.spent == spent


def test_auto_clip_is_refused_before_its_first_part_is_paid():
    data = private(epsilon=1.0)
    with pytest.raises(BudgetExceeded):
        vt.Shapley(data, MODEL, clip="auto")(POINT, epsilon=1.5)
    assert data.budget.spent_epsilon == 0
    vt.Shapley(data, MODEL, clip="auto")(POINT, epsilon=1.0)  # the whole of a budget can be asked for
    assert math.isclose(data.budget.spent_epsilon, 1.0, rel_tol=1e-3)


def test_choose_clip_weighs_noise_against_what_is_cut():
    edges = np.array([0.1, 0.2, 0.4, 0.8])
    counts = np.array([900.0, 20.0, 10.0, 70.0])
    assert choose_clip(counts, edges, 1000, 1.0, noise=0.001) == 0.8
    assert choose_clip(counts, edges, 1000, 1.0, noise=0.2) == 0.1
    assert choose_clip(counts, edges, 1000, 100.0, noise=0.01) == 0.1  # the tail is no more than its own noise
    assert choose_clip(np.array([900.0, 60.0, 60.0, -20.0]), edges, 1000, 1.0, noise=0.01) == 0.4  # counts may be negative


def forest():
    draw = np.random.default_rng(3)
    features = draw.random((300, 5))
    return RandomForestClassifier(5, max_depth=3, random_state=0).fit(features, features[:, 0] + features[:, 3] > 1)


def test_the_same_question_is_free_and_any_other_is_not():
    data = private()
    model = vt.Model(forest(), inputs="features")
    first = vt.Shapley(data, model)(POINT, epsilon=1)
    spent = data.budget.spent
    again = vt.Shapley(data, vt.Model(forest(), inputs="features"))(POINT, epsilon=1)
    assert (again.values == first.values).all()
    assert data.budget.spent == spent
    assert again.cost == first.cost
    other_model = vt.Model(
        RandomForestClassifier(4, max_depth=2, random_state=1).fit(np.eye(5), [0, 1, 0, 1, 1]), inputs="features"
    )
    variants = [
        (vt.Shapley(data, model, seed=1), POINT),
        (vt.Shapley(data, model, clip=0.5), POINT),
        (vt.Shapley(data, model, n_permutations=2), POINT),
        (vt.Shapley(data, model, sampling_rate=0.5), POINT),
        (vt.Shapley(data, other_model), POINT),
        (vt.Shapley(data, model), {**POINT, "a": 8.0}),
        (vt.Shapley(data, model), [POINT, POINT]),
    ]
    for shapley, points in variants:
        before = data.budget.spent
        shapley(points, epsilon=1)
        assert data.budget.spent != before
    before = data.budget.spent
    vt.Shapley(data, MODEL)(POINT, epsilon=1)  # a function has no hash: every question is new, unless it is given a key
    middle = data.budget.spent
    vt.Shapley(data, MODEL)(POINT, epsilon=1)
    assert before != middle != data.budget.spent


BAD_POINTS = [
    {**POINT, "c": "w"},
    {**POINT, "a": float("nan")},
    {**POINT, "a": 11.0},
    {"a": 1.0, "b": 0.5},
    [],
    np.zeros((2, 4)),
    [POINT] * 4000,
]


@pytest.mark.parametrize("points", BAD_POINTS, ids=range(len(BAD_POINTS)))
def test_bad_points_are_refused_before_anything_is_charged(points):
    data = private()
    shapley = vt.Shapley(data, MODEL)
    with pytest.raises(VitrailError):
        shapley(points, epsilon=1)
    with pytest.raises(VitrailError):
        shapley.quote(points, epsilon=1)
    assert data.budget.spent_epsilon == 0


@pytest.mark.parametrize(
    "options",
    [
        {"clip": -1.0},
        {"clip": "wide"},
        {"clip": float("nan")},
        {"clip": True},
        {"sampling_rate": 0.0},
        {"sampling_rate": 1.5},
        {"n_permutations": 0},
        {"n_permutations": 1.5},
        {"seed": -1},
        {"key": ""},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(InvalidInput):
        vt.Shapley(private(), MODEL, **options)


def test_bad_prices_models_and_data_are_refused():
    data = private()
    for price in ({}, {"epsilon": -1.0}, {"epsilon": 1.0, "mu": 1.0}, {"mu": 0.0}):
        for clip in (None, "auto"):
            with pytest.raises(InvalidInput):
                vt.Shapley(data, MODEL, clip=clip)(POINT, **price)
    with pytest.raises(InvalidInput, match="wrap it"):
        vt.Shapley(data, additive)
    with pytest.raises(InvalidInput, match="PrivateData"):
        vt.Shapley(rows_of(), MODEL)
    with pytest.raises(ModelError, match="outside its declared range"):
        vt.Shapley(data, vt.Model(lambda x: 5 * x[:, 0], range=(0, 1)))
    assert data.budget.spent_epsilon == 0


def test_a_model_with_a_memory_is_refused_before_anything_is_charged():
    seen = [0]

    def forgetful(features):
        seen[0] += 1
        return np.full(len(features), (seen[0] % 7) / 7)

    data = private()
    shapley = vt.Shapley(data, vt.Model(forgetful, range=(0, 1)))
    with pytest.raises(ModelError, match="two predictions for the same public row"):
        shapley(POINT, epsilon=1)
    assert data.budget.spent_epsilon == 0


@pytest.mark.filterwarnings("ignore:.*asked one row at a time")  # what the vault says of its own predictions
def test_a_model_that_is_not_row_wise_is_asked_one_chain_at_a_time():
    def by_place(features):
        """Differs in its last bits with the place in the block, as matrix products do."""
        return additive(features) + np.arange(len(features)) * 1e-15

    rows = rows_of(300)
    with pytest.warns(UserWarning, match="one row's chain at a time"):
        e = vt.Shapley(private(rows, n_rows_public=300), vt.Model(by_place, range=(0, 1.1)))(POINT, mu=20.0)
    plain = vt.Shapley(private(rows, n_rows_public=300), vt.Model(additive, range=(0, 1.1)))(POINT, mu=20.0)
    std = (e.upper - e.values)[0, 0] / TWO_SIDED_95
    np.testing.assert_allclose(e.values, plain.values, rtol=0, atol=normal_bound(of=3) * math.sqrt(2) * std)


def test_rows_on_which_the_model_fails_count_zero_and_nothing_is_said():
    def fragile(features):
        if (features[:, 0] == 0.123).any():
            raise ValueError("a private row was seen")
        return additive(features)

    rows = rows_of(400)
    rows["a"][7] = 1.23
    model = vt.Model(fragile, range=(0, 1), inputs="features")
    shapley = vt.Shapley(private(rows, n_rows_public=400), model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        e = shapley(POINT, mu=30.0)
    without = {name: np.delete(values, 7) for name, values in rows.items()}
    expected = vt.Shapley(private(without, n_rows_public=400), MODEL)(POINT, mu=30.0)
    std = (e.upper - e.values)[0, 0] / TWO_SIDED_95
    np.testing.assert_allclose(e.values, expected.values, rtol=0, atol=normal_bound(of=3) * math.sqrt(2) * std)


@pytest.mark.usefixtures("planted_noise")
def test_missing_values_and_a_target_between_the_features():
    schema = vt.Schema({"a": vt.Numeric(0, 10), "y": vt.Categorical(["no", "yes"]), "b": vt.Numeric(0, 1, missing=0.5)})
    rows = {"a": [1.0, None, 3.0] * 200, "y": ["no", "yes", "no"] * 200, "b": [0.1, 0.2, None] * 200}
    data = private(rows, schema=schema, target="y", n_rows_public=600)  # a third lacks a value and does not count
    model = vt.Model(lambda x: 0.5 * x[:, 0] + 0.5 * x[:, 1], range=(0, 1))
    with pytest.warns(RowCountWarning, match="cannot be read by the schema"):
        e = vt.Shapley(data, model)({"a": 5.0, "b": 1.0}, mu=20.0)
    assert e.columns == ("a", "b")
    np.testing.assert_allclose(e.values, [[0.5 * 0.3, 0.5 * (1 - 0.3)]], atol=5e-3)


@pytest.mark.usefixtures("planted_noise")
def test_a_single_column_and_replace_one():
    schema = vt.Schema({"a": vt.Numeric(0, 1)})
    data = private({"a": np.full(500, 0.25)}, schema=schema, n_rows_public=500, neighbours="replace-one")
    e = vt.Shapley(data, vt.Model(lambda x: x[:, 0], range=(0, 1)), clip="auto")({"a": 1.0}, mu=30.0)
    np.testing.assert_allclose(e.values, 0.75, atol=5e-3)
    assert e.guarantee.neighbours == "replace-one"


@pytest.mark.parametrize("n_points", [1, 3])
def test_the_audit_does_not_refute_the_claim_and_finds_it_tight(n_points):
    """The worst row: clipped at every point, its output at the end of the range."""
    schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
    model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    data = private({"a": [], "b": []}, schema=schema, n_rows_public=10)
    points = [{"a": 1.0, "b": b} for b in np.linspace(0, 1, n_points)]
    shapley = vt.Shapley(data, model, clip=0.5)
    question = question_of(shapley, points)

    def run(rows, draws):
        return rehearse(question, rows, schema, mu=1.0, n_rows_public=10, draws=draws)

    others = {"a": [0.5, 1.0], "b": [0.2, 0.9]}
    worst = {"a": [0.5, 1.0, 0.0], "b": [0.2, 0.9, 0.4]}
    direction = run(worst, 1)[0] * 0
    scales = Scales(n_points, 2, 0.5, 1.0)
    direction[: 2 * n_points : 2] = 0.5
    direction[2 * n_points : -2] = scales.excess * scales.most_excess
    direction[-2:] = -0.5 * scales.base, scales.count

    def audit():
        return vt.audit.mechanism(
            run,
            (others, worst),
            1.0,
            draws=100_000,
            confidence=CONFIDENCE,
            statistic=lambda outputs: outputs @ direction,
        )

    assert audit().verdict == "not refuted"
    with planted_noise():
        assert audit().tightness >= 0.8


@pytest.mark.usefixtures("planted_noise")
def test_values_on_real_rows_are_near_those_of_many_permutations():
    schema = vt.Schema.load(ADULT / "adult.schema.json")
    frame = pd.read_parquet(ADULT / "adult.parquet").iloc[:2000]
    features_schema = schema.without("income")
    raw = features_schema.read(frame)
    features = features_schema.features(raw)[0]
    trees = RandomForestClassifier(10, max_depth=6, random_state=0).fit(features, frame["income"])
    model = vt.Model(trees, output=">50K")
    data = private(frame, schema=schema, target="income", n_rows_public=2000)
    point = frame.iloc[[3]].drop(columns="income")
    few = vt.Shapley(data, model)(point, mu=30.0)
    many = vt.Shapley(data, model, n_permutations=12)(point, mu=30.0)
    assert np.abs(few.values - many.values).max() < 0.01
    assert np.abs(many.values).max() > 0.03
    np.testing.assert_allclose(many.base_values, trees.predict_proba(features)[:, 1].mean(), atol=0.005)
    np.testing.assert_allclose(many.predictions, many.outputs, atol=1e-12)


def test_a_declared_group_has_one_value_and_adds_up():
    """Two columns that act only together: alone each would get half of what they do."""
    columns = {"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Numeric(0, 1)}
    rows = {"a": np.zeros(4000), "b": np.zeros(4000), "c": np.full(4000, 0.5)}
    model = vt.Model(lambda x: 0.5 * x[:, 0] * x[:, 1] + 0.25 * x[:, 1] + 0.25 * x[:, 2], range=(0, 1), name="risk")
    released = {}
    for name, rules in (("alone", []), ("together", [vt.Group("both", ["a", "b"])])):
        schema = vt.Schema(columns, rules)
        data = vt.PrivateData(rows, schema, name=name, n_rows_public=4000, budget=vt.Budget(300, 1e-6), ledger="memory")
        released[name] = vt.Shapley(data, model, n_permutations=2)({"a": 1.0, "b": 1.0, "c": 1.0}, mu=20.0)
    alone, together = released["alone"], released["together"]
    assert alone.columns == ("a", "b", "c")
    assert together.columns == ("both", "c")
    assert together.points[0]["both"] == "1, 1"
    # noise of a value: less than 1.14 sqrt(1 + 9 * 0.75^2) / (4000 * 20) = 3.6e-5, and 1e-3 is 28 times that
    np.testing.assert_allclose(alone.values[0], [0.25, 0.5, 0.125], atol=1e-3)
    np.testing.assert_allclose(together.values[0], [0.75, 0.125], atol=1e-3)
    assert together.base_values[0] + together.values.sum() == pytest.approx(1.0)
