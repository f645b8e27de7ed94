"""A model that fails is found out on public rows, before the first charge; where it cannot be, what was paid is not lost."""

import warnings

import numpy as np
import pytest

import vitrail as vt
from vitrail.accounting import Cost, epsilon_of, rounded_up
from vitrail.errors import ModelError
from vitrail.explain.quoted import MOST_EDGE_ROWS, edge_rows, try_model

ROWS = 400
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(0, 100),
        "weight": vt.Numeric(0, 1),
        "job": vt.Categorical(["a", "b", "c"]),
        "risk": vt.Numeric(0, 1),
    }
)
FEATURES = vt.Schema({name: SCHEMA[name] for name in ("age", "weight", "job")})
POINT = {"age": 40.0, "weight": 0.5, "job": "a"}

FROM_MARGINALS = {
    "report": lambda data, model: vt.GlobalReport(data, model)(epsilon=1.0),
    "report of SHAP": lambda data, model: vt.GlobalReport(data, model, parts=["shap"])(epsilon=1.0),
    "partial dependence": lambda data, model: vt.PartialDependence(data, model)(epsilon=1.0),
    "surface": lambda data, model: vt.PartialDependence(data, model, columns=[("age", "job")])(epsilon=1.0),
    "accumulated effects": lambda data, model: vt.AccumulatedEffects(data, model)(epsilon=1.0),
    "importance": lambda data, model: vt.PermutationImportance(data, model)(epsilon=1.0),
    "interactions": lambda data, model: vt.Interactions(data, model)(epsilon=1.0),
    "SHAP dependence": lambda data, model: vt.ShapDependence(data, model)(epsilon=1.0),
    "SHAP importance": lambda data, model: vt.ShapImportance(data, model)(epsilon=1.0),
}
"""They pay for marginals, and ask the model about rows drawn from them."""
PAYING_FIRST = {
    **FROM_MARGINALS,
    "private rows": lambda data, model: vt.LocalLinear(data, model).fit(epsilon=1.0, kind=vt.linear.Rows(n_sampled=500)),
}
EXPLAINERS = {
    **PAYING_FIRST,
    "statistics": lambda data, model: vt.LocalLinear(data, model)(POINT, epsilon=1.0),
    "descent": lambda data, model: vt.LocalLinear(data, model, method="descent")(POINT, epsilon=1.0),
    "adaptive": lambda data, model: vt.LocalLinear(data, model, method="adaptive")(POINT, epsilon=1.0),
    "moments": lambda data, model: vt.LocalLinear(data, model).fit(epsilon=1.0, kind="moments"),
    "cells": lambda data, model: vt.LocalLinear(data, model).fit(epsilon=1.0, kind="cells"),
    "classes": lambda data, model: vt.LocalClasses(data, [model])(POINT, epsilon=1.0),
    "Shapley": lambda data, model: vt.Shapley(data, model)(POINT, epsilon=1.0),
    "Shapley with a chosen clip": lambda data, model: vt.Shapley(data, model, clip="auto")(POINT, epsilon=1.0),
    "any curve": lambda data, model: vt.AnyCurve(
        data, lambda asked, X: [asked.predict(X).mean()], x_grid=[0.0], y_range=(0, 1), model=model, isolation="none"
    )(epsilon=1.0),
    "counterfactual": lambda data, model: vt.Counterfactual(data, model).fit(epsilon=1.0),
    "counterfactual with a code": lambda data, model: vt.Counterfactual(data, model, latent="linear").fit(epsilon=1.0),
    "counterfactual with a network": lambda data, model: vt.Counterfactual(data, model, latent="network").fit(epsilon=1.0),
    "release": lambda data, model: vt.release(data, model, epsilon=1.0),
}


def data_of():
    generator = np.random.default_rng(0)
    rows = {
        "age": generator.uniform(20, 60, ROWS),
        "weight": generator.uniform(0, 1, ROWS),
        "job": generator.choice(["a", "b"], ROWS),
        "risk": generator.uniform(0, 1, ROWS),
    }
    return vt.PrivateData(rows, SCHEMA, name="people", target="risk", n_rows_public=ROWS, budget=vt.Budget(3, 1e-6))


def outputs(features):
    return 0.2 + 0.6 * features[:, 0]


def failing(where, how="raises"):
    def model(features):
        bad = where(features)
        if how == "raises" and bad.any():
            raise KeyError("no such thing")
        return np.where(bad, np.nan, outputs(features))

    return vt.Model(model, range=(0, 1), name="fragile")


def unlucky(data, how):
    """A model that answers on the rows it is asked about before the first charge, and on no others."""
    known = set()

    def unknown(features):
        rows = [row.tobytes() for row in np.ascontiguousarray(features)]
        if data.budget.n_questions == 0:
            known.update(rows)
        return np.array([row not in known for row in rows])

    return failing(unknown, how)


def asked(explainer, data, model):
    return quietly(EXPLAINERS[explainer], data, model)


def quietly(ask, *words, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(*words, **options)


@pytest.mark.parametrize("how", ["raises", "nothing"])
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_model_that_fails_in_a_corner_costs_nothing(explainer, how):
    data = data_of()
    with pytest.raises(ModelError, match="fragile"):
        asked(explainer, data, failing(lambda x: (x[:, 0] == 1) & (x[:, 1] == 1) & (x[:, 4] == 1), how))
    assert data.budget.spent == Cost()


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_model_that_fails_for_a_level_nobody_has_costs_nothing(explainer):
    data = data_of()
    with pytest.raises(ModelError, match="fragile"):
        asked(explainer, data, failing(lambda x: x[:, 4] == 1))
    assert data.budget.spent == Cost()


@pytest.mark.parametrize("how", ["raises", "nothing"])
@pytest.mark.parametrize("explainer", [*PAYING_FIRST, "release"])
def test_a_model_that_fails_where_curves_begin_costs_nothing(explainer, how):
    """One column at its end, another one anywhere: no probe row is there, but every curve of the column is."""
    data = data_of()
    with pytest.raises(ModelError, match="fragile"):
        asked(explainer, data, failing(lambda x: (x[:, 0] == 0) & (x[:, 2] == 0), how))
    assert data.budget.spent == Cost()


def test_a_model_behind_a_view_is_tried_on_whole_rows():
    view = vt.Picture((2, 2), patches=(1, 2), high=1)
    rows = view.rows(np.random.default_rng(0).uniform(size=(ROWS, 2, 2)))
    data = vt.PrivateData(rows, view.schema(), name="pictures", n_rows_public=ROWS, budget=vt.Budget(3, 1e-6))
    with pytest.raises(ModelError, match="fragile"):
        vt.LocalLinear(data, failing(lambda x: x[:, 3] == 1), view=view)(view.rows(np.full((2, 2), 0.5)), epsilon=1.0)
    assert data.budget.spent == Cost()


@pytest.mark.parametrize(
    ("explainer", "how"),
    # Private rows without an output are left out, and one of the others may be a corner that was tried.
    [(name, "raises") for name in PAYING_FIRST] + [(name, "nothing") for name in FROM_MARGINALS],
)
def test_a_model_that_fails_later_says_what_was_charged_and_the_release_is_kept(explainer, how):
    """No try and no rehearsal can find a model that fails once something was charged, and not before."""
    data = data_of()
    with pytest.raises(ModelError, match="fragile") as told:
        asked(explainer, data, unlucky(data, how))
    spent = data.budget.spent_epsilon
    assert spent > 0
    assert f"Epsilon {spent:.4g} was charged before that, and stays charged" in str(told.value)
    asked(explainer, data, vt.Model(outputs, range=(0, 1), name="mended"))
    assert spent <= data.budget.spent_epsilon <= 1 + 1e-9  # one price for both calls


@pytest.mark.parametrize("parts", [["rows", "local", "pdp"], ["local", "pdp"]])
def test_a_release_says_what_its_other_parts_cost(parts):
    data = data_of()
    with pytest.raises(ModelError, match="fragile") as told:
        quietly(vt.release, data, unlucky(data, "nothing"), epsilon=1.0, parts=parts)
    charges = [entry.cost for entry in data.budget.entries if entry.kind == "charged"]
    epsilon = epsilon_of(sum(charges, Cost()).mu, data.delta)
    assert f"Epsilon {rounded_up(epsilon)} was charged before that, and stays charged" in str(told.value)


def test_every_end_and_every_level_is_tried_in_several_surroundings():
    rows, names = edge_rows(FEATURES)
    assert len(rows) == len(names) == 8 * 7
    for place, name in enumerate(FEATURES):
        column = FEATURES[name]
        ends = (column.low, column.high) if isinstance(column, vt.Numeric) else range(3)
        for end in ends:
            assert len(np.unique(rows[rows[:, place] == end], axis=0)) >= 8
    many = vt.Schema({f"c{place}": vt.Numeric(0, 1) for place in range(3000)})
    assert 1000 <= len(edge_rows(many)[0]) <= MOST_EDGE_ROWS


def test_a_try_is_free_of_complaints_about_a_good_model():
    try_model(vt.Model(outputs, range=(0, 1)), FEATURES)
