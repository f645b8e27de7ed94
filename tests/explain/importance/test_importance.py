"""Permutation importance end to end: right without noise, calibrated with it, charged as said, refused where it must be."""

import re

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise, std_ratio_bounds
from vitrail.errors import BudgetExceeded, InvalidInput
from vitrail.explain.recipe import Conversation
from vitrail.results.band_claim import TWO_SIDED_95
from vitrail.solve.curves.importance import combined_scores
from vitrail.solve.guard import GUARD

N = 4000
RNG = np.random.default_rng(2)
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(20, 60, integer=True),
        "pay": vt.Numeric(0, 1),
        "job": vt.Categorical(["clerk", "smith", "baker"]),
        "shoe": vt.Numeric(30, 50, integer=True),
        "ill": vt.Categorical(["no", "yes"]),
    }
)
FEATURES = SCHEMA.without("ill")
ROWS = {
    "age": RNG.integers(20, 61, N),
    "pay": RNG.beta(2, 5, N),
    "job": RNG.choice(["clerk", "smith", "baker"], N, p=[0.6, 0.3, 0.1]),
    "shoe": RNG.integers(30, 51, N),
}


def output(features):
    return 0.1 + 0.6 * features[:, 0] ** 2 + 0.2 * features[:, 1] + 0.1 * features[:, 3]


TRUE = output(FEATURES.features(FEATURES.read_points(ROWS))[0])
ROWS["ill"] = np.where(RNG.random(N) < TRUE, "yes", "no")
MODEL = vt.Model(output, range=(0, 1), name="formula")


def private(budget=1e4, target="ill", **more):
    return vt.PrivateData(ROWS, SCHEMA, name="staff", target=target, n_rows_public=N, budget=vt.Budget(budget, 1e-6), **more)


def shuffled_importance(loss, repeats=30):
    raw, y = FEATURES.read_points({name: ROWS[name] for name in FEATURES}), (ROWS["ill"] == "yes").astype(float)
    generator, base = np.random.default_rng(5), loss(y, TRUE).mean()
    found = []
    for column in range(4):
        losses = []
        for _ in range(repeats):
            altered = raw.copy()
            altered[:, column] = generator.permutation(raw[:, column])
            losses.append(loss(y, output(FEATURES.features(altered)[0])).mean())
        found.append(np.mean(losses) - base)
    return np.array(found), base


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize(
    ("loss", "function"),
    [
        ("squared", lambda y, f: (y - f) ** 2),
        ("absolute", lambda y, f: np.abs(y - f)),
        ("zero-one", lambda y, f: (f >= 0.5) != (y == 1)),
        ("log", lambda y, f: -(y * np.log(np.clip(f, 1e-3, 1)) + (1 - y) * np.log(np.clip(1 - f, 1e-3, 1)))),
    ],
)
def test_importance_agrees_with_shuffling_at_a_high_price(loss, function):
    expected, base = shuffled_importance(function)
    found = vt.PermutationImportance(private(), MODEL, loss=loss, n_repeats=4, clip=100.0)(mu=100.0)
    np.testing.assert_allclose(found.scores, expected, atol=0.1 * expected.max())
    assert found.order[0] == "age"
    assert abs(found.scores[3]) < 1e-3  # the model does not look at shoes
    told = float(re.search(r"loss is (\S+) ±", found.notes[0]).group(1))
    assert told == pytest.approx(base, abs=0.01)


@pytest.mark.usefixtures("planted_noise")
def test_a_loss_of_ones_own_is_used_and_clipped():
    found = vt.PermutationImportance(private(), MODEL, loss=lambda y, f: 4 * (y - f) ** 2, loss_bound=4, clip=100.0)(
        mu=100.0
    )
    expected, _ = shuffled_importance(lambda y, f: 4 * (y - f) ** 2)
    np.testing.assert_allclose(found.scores, expected, atol=0.1 * expected.max())


@pytest.mark.usefixtures("questions_known_to_be_row_wise")
def test_the_noise_law_is_the_stated_one(monkeypatch):
    """Where noise is what moves scores (nothing is clipped), they vary over draws as much as their std says."""
    few = {name: values[:300] for name, values in ROWS.items()}  # noise does not depend on how many rows there are
    monkeypatch.setattr(Conversation, "rehearse", lambda talk, mu: None)
    found = []
    for _ in range(120):
        data = vt.PrivateData(few, SCHEMA, name="staff", target="ill", n_rows_public=300, budget=vt.Budget(1.0, 1e-6))
        ask = vt.PermutationImportance(data, MODEL, clip=20.0, n_repeats=1, marginals=MARGINALS, estimate="plain")
        found.append(ask(mu=0.05))
    scores = np.array([one.scores for one in found])
    ratio = scores.std(axis=0, ddof=1) / found[0].std
    low, high = std_ratio_bounds(120, of=4)
    assert ((low < ratio) & (ratio < high)).all()


with planted_noise():
    MARGINALS = vt.marginals(private(), mu=10.0)


@pytest.mark.usefixtures("planted_noise")
def test_the_share_of_clipped_rows_is_told():
    tight = vt.PermutationImportance(private(), MODEL, clip=1e-3)(mu=30.0)
    assert any("too small" in note for note in tight.notes)
    loose = vt.PermutationImportance(private(), MODEL, clip=10.0)(mu=30.0)
    assert "About 0 %" in loose.notes[1]
    assert len(loose.notes) == 2


def test_the_price_is_what_was_asked_and_given_marginals_are_free():
    data = private(budget=2.0)
    found = vt.PermutationImportance(data, MODEL)(epsilon=1.0)
    assert found.guarantee.epsilon <= 1.0 + 1e-9
    assert data.budget.spent == found.cost
    other = private(budget=2.0)
    marginals = vt.marginals(other, epsilon=0.5)
    before = other.budget.spent
    again = vt.PermutationImportance(other, MODEL, columns=["pay", "age"], marginals=marginals)(epsilon=1.0)
    assert again.items == ("pay", "age")
    assert other.budget.spent == before + again.cost


def test_asking_again_replays_where_the_model_has_a_name_and_never_for_a_nameless_loss():
    data = private(budget=30.0)
    one = vt.PermutationImportance(data, MODEL, key="formula")(epsilon=1.0)
    two = vt.PermutationImportance(data, MODEL, key="formula")(epsilon=1.0)
    assert one.scores.tolist() == two.scores.tolist()

    def halved(y, f):
        return (y - f) ** 2 / 2

    from sklearn.linear_model import LogisticRegression

    x, y = FEATURES.features(FEATURES.read_points({name: ROWS[name] for name in FEATURES}))[0], ROWS["ill"]
    named = vt.Model(LogisticRegression().fit(x, y), output="yes", inputs="features")
    first = vt.PermutationImportance(data, named, loss=halved, loss_bound=1, marginals=MARGINALS)(mu=1.0)
    second = vt.PermutationImportance(data, named, loss=halved, loss_bound=1, marginals=MARGINALS)(mu=1.0)
    assert first.scores.tolist() != second.scores.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"loss": 3}, "loss is 3"),
        ({"loss": lambda y, f: f}, "loss_bound is None"),
        ({"loss": lambda y, f: f, "loss_bound": -1}, "loss_bound is -1"),
        ({"loss_bound": 2.0}, "loss_bound is for a loss of your own"),
        ({"n_repeats": 0}, "n_repeats is 0"),
        ({"clip": 0.0}, "clip is 0.0"),
        ({"positive": "maybe"}, "positive is 'maybe'"),
        ({"sampling_rate": 0}, "sampling_rate is 0"),
        ({"columns": ["agee"]}, "Did you mean 'age'"),
        ({"columns": ["age", "age"]}, "twice"),
        ({"columns": []}, "columns is empty"),
        ({"columns": [("age", "pay")]}, "which is none of"),
        ({"marginals": 7}, "marginals is int"),
        ({"loss": lambda y, f: f[:3], "loss_bound": 1.0}, "shape"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_charged(options, message):
    data = private()
    with pytest.raises(InvalidInput, match=message):
        vt.PermutationImportance(data, MODEL, **{"marginals": MARGINALS, **options})(epsilon=1.0)
    assert data.budget.spent == vt.Cost()


@pytest.mark.usefixtures("planted_noise")
def test_without_a_target_it_is_how_much_the_output_changes():
    data = private(target=None)
    found = vt.PermutationImportance(data, MODEL, n_repeats=4, clip=100.0)(mu=100.0)
    raw, rng = data.feature_schema.read_points(ROWS), np.random.default_rng(0)
    outputs, expected = MODEL.predict_points(data.feature_schema, raw), []
    for name in found.items:
        altered, column = raw.copy(), data.feature_schema.column_index(name)
        altered[:, column] = rng.permutation(raw[:, column])
        expected.append(np.mean((MODEL.predict_points(data.feature_schema, altered) - outputs) ** 2))
    np.testing.assert_allclose(found.scores, expected, atol=0.1 * max(expected))
    assert found.score_label == "mean squared change of the output"
    with pytest.raises(InvalidInput, match="declares no target"):
        vt.PermutationImportance(data, MODEL, loss="log")


@pytest.mark.usefixtures("planted_noise")
def test_where_noise_hides_everything_private_rows_tell_the_order():
    """At a price at which the sum is noise, scores are those of rows bought before; bands hold the measurement all the same.

    So nothing is ranked.
    """
    rows = vt.private_rows(private(), mu=20.0, columns=FEATURES.names)
    smooth, plain = (
        vt.PermutationImportance(private(), MODEL, marginals=rows, estimate=estimate)(mu=0.0005)
        for estimate in ("smooth", "plain")
    )
    assert smooth.items[int(np.argmax(smooth.scores))] == "age"
    assert np.abs(smooth.scores).max() < 0.5 * plain.std.max()
    assert (smooth.std >= GUARD / TWO_SIDED_95 * plain.std).all()
    assert not smooth.ranked


def test_importances_that_are_all_larger_by_a_factor_keep_the_order_of_private_rows():
    """A model remembers its rows: all importances are thrice what private rows tell. Noise must not pass for the rest."""
    told, generator = np.geomspace(1, 20, 12), np.random.default_rng(3)
    spread = np.full(12, 2.0)
    found, wrong, off = [], 0, []
    for _ in range(200):
        scores, stds = combined_scores(3 * told + generator.normal(0, spread), spread, told, np.zeros(12), remembers=True)
        found.append(np.abs(scores - 3 * told) < TWO_SIDED_95 * stds)
        wrong += int((np.diff(scores) < 0).sum())
        off.append(((scores - 3 * told) ** 2).mean())
    assert np.mean(found) > 0.9
    assert np.mean(off) < 0.5 * 2.0**2
    assert wrong < 0.05 * 200 * 11


def test_without_noise_what_was_asked_stands():
    asked = np.array([5.0, 1.0, 0.0, -0.1])
    scores, stds = combined_scores(asked, np.full(4, 1e-6), np.array([1.0, 5.0, 2.0, 1.0]), np.zeros(4), remembers=True)
    np.testing.assert_allclose(scores, asked, atol=1e-4)
    assert (stds < 2e-6).all()


def test_what_is_no_model_or_no_data_is_refused():
    with pytest.raises(InvalidInput, match="wrap it"):
        vt.PermutationImportance(private(), output)
    with pytest.raises(InvalidInput, match="PrivateData"):
        vt.PermutationImportance(ROWS, MODEL)


def test_what_does_not_fit_is_refused_as_a_whole():
    data = private(budget=0.5)
    with pytest.raises(BudgetExceeded):
        vt.PermutationImportance(data, MODEL)(epsilon=1.0)
    assert data.budget.spent == vt.Cost()


def test_probabilities_only_for_losses_of_probabilities():
    wide = vt.Model(output, range=(-1, 2))
    for loss in ("zero-one", "log"):
        with pytest.raises(InvalidInput, match="probabilities"):
            vt.PermutationImportance(private(), wide, loss=loss)
