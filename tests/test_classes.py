"""Several classes from one release: the bound, agreement with one class at a time, the price, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import vitrail as vt
from vitrail.errors import InvalidInput, ModelError, SchemaError
from vitrail.explain.linear.local_classes import classes_question, shift_and_bound
from vitrail.explain.linear.local_linear import statistics_question
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.statistics import scales_of
from vitrail.solve.linear.weights import exponential, polynomial, stable
from vitrail.vault import rehearse

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "c": vt.Categorical(["no", "yes"])})
POINT = {"a": 0.8, "b": 0.3, "c": "yes"}


def softmax(features: np.ndarray, count: int = 3) -> np.ndarray:
    pulls = np.stack(
        [3 * features[:, 0], 3 * features[:, 1], 2 * features[:, 3], *[0 * features[:, 0]] * (count - 3)], axis=1
    )
    likely = np.exp(pulls)
    return likely / likely.sum(axis=1, keepdims=True)


def rows(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {"a": generator.random(count), "b": generator.random(count), "c": generator.choice(["no", "yes"], count)}


def data_of(count: int = 20_000, epsilon: float = 60) -> vt.PrivateData:
    return vt.PrivateData(rows(count), SCHEMA, name="three", n_rows_public=count, budget=vt.Budget(epsilon, 1e-6))


def models(count: int = 3, columns: int | None = None) -> list[vt.Model]:
    return [
        vt.Model(lambda x: softmax(x, columns or count), output=k, range=(0, 1), name=f"class {k}") for k in range(count)
    ]


@settings(max_examples=60, deadline=None)
@given(count=st.integers(1, 12), seed=st.integers(0, 999), sharp=st.sampled_from([0.05, 1.0, 20.0]))
def test_targets_are_never_longer_than_the_bound(count: int, seed: int, sharp: float) -> None:
    generator = np.random.default_rng(seed)
    likely = generator.dirichlet(np.full(count + 1, sharp), size=50)[:, :count]  # a class may be left out
    corners = np.concatenate((np.eye(count), np.zeros((1, count))))
    shift, bound = shift_and_bound(count)
    lengths = np.linalg.norm(2 * np.concatenate((likely, corners)) - 1 - shift, axis=1)
    assert lengths.max() <= bound * (1 + 1e-12)
    assert lengths[50:-1].max() == pytest.approx(bound)


@pytest.mark.parametrize("weight", [stable(), polynomial(), exponential(0.2)], ids=lambda weight: weight.name)
def test_no_row_says_more_than_the_question_declares(weight: object) -> None:
    problems = [LocalProblem(SCHEMA, model, weight) for model in models()]
    _, bound = shift_and_bound(3)
    scales = scales_of(problems[0], label_bound=bound)
    raw = np.concatenate([SCHEMA.probe_rows(400), SCHEMA.read(rows(400))])
    points = SCHEMA.probe_rows(5)
    x, z = problems[0].encode(raw), problems[0].encode(points)
    d = x[:, None] - z[None]
    u = np.sqrt(scales.intercept**2 + np.square(d).sum(axis=2))
    # The worst labels there are, not only those that this model gives.
    norms = weight(np.linalg.norm(d, axis=2)) * u * np.sqrt(u**2 + (scales.label * bound) ** 2)
    assert norms.max() <= scales.l2_bound
    question = classes_question(problems, points)
    assert np.linalg.norm(norms, axis=1).max() <= question.l2_bound
    assert question.l2_bound == pytest.approx(math.sqrt(5) * scales.l2_bound)


@pytest.mark.parametrize("total", [1.0, 3.0])
def test_the_vault_holds_a_row_to_the_bound_even_if_classes_are_no_probabilities(total: float) -> None:
    liars = [
        vt.Model(lambda x: np.full((len(x), 3), total / 3), output=k, range=(0, 1), name=f"class {k}") for k in range(3)
    ]
    question = classes_question([LocalProblem(SCHEMA, model, stable()) for model in liars], SCHEMA.read_points(POINT))
    row = {"a": [0.1], "b": [0.9], "c": ["no"]}
    (flat,) = rehearse(question, row, SCHEMA, mu=1e6, n_rows_public=1, draws=1)
    assert np.linalg.norm(flat) <= question.l2_bound * 1.001


@pytest.mark.usefixtures("planted_noise")
def test_classes_together_agree_with_each_alone() -> None:
    data = data_of(epsilon=300)
    together = vt.LocalClasses(data, models())(POINT, epsilon=40.0)
    assert list(together) == [0, 1, 2]
    for number, model in enumerate(models()):
        alone = vt.LocalLinear(data, model)(POINT, epsilon=40.0)
        assert together[number].values == pytest.approx(alone.values, abs=0.01)
        assert together[number].predictions == pytest.approx(alone.predictions, abs=0.01)
        assert together[number].outputs == pytest.approx(alone.outputs)
    assert together[0].top(1)[0].column == "a"
    assert together[2].values[0, 0] < 0 < together[0].values[0, 0]
    assert np.sum([e.values for e in together.values()], axis=0) == pytest.approx(np.zeros((1, 3)), abs=0.02)
    assert any("3 classes together" in note for note in together[1].notes)


@pytest.mark.usefixtures("planted_noise")
def test_bands_of_classes_cover_what_a_release_without_noise_would_say() -> None:
    data = vt.PrivateData(rows(4000), SCHEMA, name="three", n_rows_public=4000, budget=vt.Budget(3000, 1e-6))
    plain, banded = vt.linear.Statistics(bands=False), vt.linear.Statistics()
    exact = vt.LocalClasses(data, models(), method=plain)(POINT, epsilon=800.0)
    covered = []
    for draw in range(20):
        found = vt.LocalClasses(data, models(), method=banded, key=f"draw {draw}")(POINT, epsilon=1.0)
        covered += [(e.lower <= exact[k].values) & (exact[k].values <= e.upper) for k, e in found.items()]
    assert np.mean(covered) > 0.85


@pytest.mark.parametrize(("count", "gain"), [(3, 1.2), (10, 1.8)])
def test_together_is_cheaper_than_one_by_one(count: int, gain: float) -> None:
    data = data_of(100)
    problems = [LocalProblem(SCHEMA, model, stable()) for model in models(count)]
    raw = SCHEMA.read_points(POINT)
    joint, single = scales_of(problems[0], label_bound=shift_and_bound(count)[1]), scales_of(problems[0])
    together = data.quote(classes_question(problems, raw), mu=0.2)
    alone = data.quote(statistics_question(problems[0], raw), mu=0.2 / math.sqrt(count))
    # Noise on the slope's gradient to first order, as the module ``statistics`` states it.
    noise = [
        price.sigma * math.sqrt(1 / scales.label**2 + 0.5 + 1 / (6 * scales.intercept**2))
        for price, scales in ((together, joint), (alone, single))
    ]
    assert noise[1] / noise[0] > gain


def test_a_fitted_classifier_is_asked_once_and_then_replayed() -> None:
    generator = np.random.default_rng(0)
    x = generator.random((300, 4))
    forest = LogisticRegression().fit(x, np.array(["red", "green", "blue"])[x[:, :3].argmax(axis=1)])
    data = data_of(2000)
    classes = [vt.Model(forest, output=name, inputs="features") for name in forest.classes_]
    points = [POINT, {**POINT, "a": 0.1}]
    first = vt.LocalClasses(data, classes)(points, epsilon=1.0)
    spent = data.budget.spent_epsilon
    assert spent == pytest.approx(1.0)
    again = vt.LocalClasses(data, classes)(points, epsilon=1.0)
    assert data.budget.spent_epsilon == spent
    assert set(first) == {"red", "green", "blue"}
    assert first["red"].values.shape == (2, 3)
    assert np.array_equal(first["red"].values, again["red"].values)
    vt.LocalClasses(data, classes[:2])(points, epsilon=1.0)
    assert data.budget.spent_epsilon > spent


@pytest.mark.usefixtures("planted_noise")
def test_classes_can_be_seen_through_a_view() -> None:
    picture = vt.Picture((4, 4), patches=(2, 2), high=1)
    images = np.random.default_rng(0).random((6000, 4, 4))
    data = vt.PrivateData(
        picture.rows(images), picture.schema(), name="quarters", n_rows_public=6000, budget=vt.Budget(20, 1e-6)
    )

    def quarters(pixels: np.ndarray) -> np.ndarray:
        likely = np.exp(6 * np.stack([pixels[:, [0, 1, 4, 5]].mean(axis=1), pixels[:, [2, 3, 6, 7]].mean(axis=1)], axis=1))
        return likely / likely.sum(axis=1, keepdims=True)

    classes = [vt.Model(quarters, output=k, range=(0, 1)) for k in (0, 1)]
    bright = np.zeros((4, 4))
    bright[:2, :2] = 1
    found = vt.LocalClasses(data, classes, view=picture)(picture.rows(bright), epsilon=8.0)
    assert {one.column for one in found[0].top(2)} == {"patch 0,0", "patch 0,1"}  # bright there, and not here
    assert found[0].values[0] == pytest.approx(-found[1].values[0], abs=0.05)


def test_what_makes_no_sense_is_refused_before_anything_is_charged() -> None:
    data = data_of(100)
    three = models()
    cases = [
        (three[0], POINT, InvalidInput, "one per class"),
        ([], POINT, InvalidInput, "one per class"),
        ([three[0], "x"], POINT, InvalidInput, "wrap each class"),
        ([three[0], three[0]], POINT, InvalidInput, "another one"),
        ([vt.Model(lambda x: x[:, 0], range=(0, 2))], POINT, ModelError, "no probability"),
        (
            [vt.Model(lambda x: np.ones((len(x), 2)), output=k, range=(0, 1)) for k in (0, 1)],
            POINT,
            ModelError,
            "add up to 2",
        ),
        (three, {**POINT, "a": 7}, SchemaError, "'a' is 7"),
    ]
    for given_models, point, error, message in cases:
        with pytest.raises(error, match=message):
            vt.LocalClasses(data, given_models)(point, epsilon=1.0)
    assert data.budget.spent_epsilon == 0
