"""How far past the border answers lie, and the descent that models with gradients start from."""

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise
from vitrail.errors import InvalidInput
from vitrail.solve.counterfactual.classes import Classes
from vitrail.solve.counterfactual.descent import COEFFICIENTS, Descent, latent_minima, torch_modules
from vitrail.solve.counterfactual.permitted import Rules
from vitrail.solve.counterfactual.search import Search

SCHEMA = vt.Schema({"debt": vt.Numeric(0, 50.0), "income": vt.Numeric(0, 100.0), "job": vt.Categorical(["clerk", "judge"])})
MODEL = vt.Model(lambda x: 0.9 * x[:, 1] + 0.1 * (1 - x[:, 0]), range=(0, 1), name="credit")
POOR = {"debt": 20.0, "income": 30.0, "job": "clerk"}
RICH = {"debt": 20.0, "income": 90.0, "job": "clerk"}


def private():
    generator = np.random.default_rng(0)
    rows = {
        "debt": generator.uniform(0, 50, 4000),
        "income": generator.uniform(0, 100, 4000),
        "job": np.array(["clerk", "judge"])[generator.integers(0, 2, 4000)],
    }
    return vt.PrivateData(rows, SCHEMA, name="loans", n_rows_public=4000, budget=vt.Budget(9, 1e-6))


def fit(model, **more):
    with planted_noise():
        return vt.Counterfactual(private(), model, **more).fit(epsilon=4.0)


@pytest.fixture(scope="module")
def fitted():
    return fit(MODEL, key="credit")


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.2])
def test_answers_lie_past_the_border_by_the_margin_and_hardly_more(fitted, margin):
    out = fitted([POOR, RICH], margin=margin)
    assert out.validity.all()
    outputs = [some[0].output for some in out.answers]
    assert 0.5 + margin <= outputs[0] < 0.5 + margin + 0.01
    assert 0.5 - margin - 0.01 < outputs[1] <= 0.5 - margin + 1e-12


def test_a_larger_margin_changes_more(fitted):
    distances = [float(fitted(POOR, margin=margin).distance[0, 0]) for margin in (0.0, 0.1, 0.3)]
    assert distances == sorted(distances)
    assert distances[0] < distances[-1]


def test_where_nothing_lies_that_far_there_is_no_answer(fitted):
    out = fitted(POOR, margin=0.4, permitted_range={"income": (0, 60)})
    assert not out.validity.any()
    assert out.messages[0] == "No permitted change was found that leads credit to class 1, 0.4 past its border."
    assert fitted(POOR, permitted_range={"income": (0, 60)}).validity.all()


@pytest.mark.parametrize("margin", [-0.1, 1.5, "much", None])
def test_a_margin_lies_within_the_range_of_the_output(fitted, margin):
    with pytest.raises(InvalidInput, match="margin is"):
        fitted(POOR, margin=margin)


def test_of_several_classes_the_margin_is_over_the_next_best():
    outputs = [vt.Model(lambda x: x[:, [1, 0]], output=k, range=(0, 1), name="pair") for k in (0, 1)]
    out = fit(outputs, key="pair")(POOR, desired_class=0, margin=0.3)
    (one,) = out.answers[0]
    assert one.row["income"] / 100 - one.row["debt"] / 50 >= 0.3


# --- the descent ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(SCHEMA.n_features, 1), torch.nn.Sigmoid())
    with torch.no_grad():
        module[0].weight[:] = torch.tensor([[-4.0, 9.0, 0.0, 2.0]])
        module[0].bias[:] = -5.0
    return vt.Model(module, range=(0, 1), name="net")


def minimum(made, model, **more):
    classes, points = Classes.of(model, 0.5), SCHEMA.read_points([POOR])
    search = Search(
        SCHEMA, classes, Rules.of(SCHEMA, "all", None), points, np.array([1]), {}, 0.0, 0, more.pop("margin", 0.0)
    )
    descent = Descent.of(classes, SCHEMA, more.pop("coefficients", None))
    return latent_minima(search, descent, made.picture, np.array([0]), made.picture.prototypes[[1]])


def test_torch_models_are_searched_with_gradients(network):
    made = fit(network, latent="none", rows=False)
    assert network.predict(SCHEMA, minimum(made, network))[0] >= 0.5
    assert network.predict(SCHEMA, minimum(made, network, margin=0.3))[0] >= 0.8
    assert torch_modules(Classes.of(MODEL, 0.5), SCHEMA) is None
    assert made([POOR] * 3).validity.all()


def test_coefficients_weigh_the_person_against_the_prototype(network):
    made = fit(network, latent="none", rows=False)
    own, prototype = SCHEMA.features(SCHEMA.read_points([POOR]))[0], made.picture.prototype_features[1]

    def away(coefficients):
        features = SCHEMA.features(minimum(made, network, coefficients=coefficients))[0]
        return np.linalg.norm(features - own), np.linalg.norm(features - prototype)

    near_person, near_prototype = away((1.0, 5.0, 0.0)), away((1.0, 0.0, 5.0))
    assert near_person[0] < near_prototype[0]
    assert near_prototype[1] < near_person[1]
    assert away(None) == away(COEFFICIENTS)
    assert made(POOR, coefficients=(1, 0.2, 20)).validity.all()


@pytest.mark.parametrize("coefficients", [(1.0, 0.5), "abc", 3, (1.0, -0.5, 0.1), (1.0, float("nan"), 0.1)])
def test_coefficients_are_three_numbers(network, coefficients):
    with pytest.raises(InvalidInput, match="coefficients"):
        fit(network, latent="none", rows=False)(POOR, coefficients=coefficients)


def test_coefficients_need_gradients(fitted):
    with pytest.raises(InvalidInput, match="torch model on features"):
        fitted(POOR, coefficients=(1, 0.5, 0.1))
