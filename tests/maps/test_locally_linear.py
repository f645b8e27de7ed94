"""The estimator: scikit-learn's own checks, logistic regression, bad input, explanations, pictures."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

import vitrail as vt
from error_rates import planted_noise


def blobs(n=400, seed=0):
    """Two classes, one of them in two places: no single linear map tells them apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.clip(np.array([[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]])[y] + rng.normal(0, 0.06, (n, 2)), 0, 1)
    return X, np.where(y == 1, "middle", "sides")


def halves(n, seed=0):
    X = np.random.default_rng(seed).uniform(0, 1, (n, 2))
    return X, np.where(X[:, 0] > 0.5, "right", "left")


def free(**changes):
    return vt.LocallyLinearClassifier(math.inf, **{"random_state": 0, "steps": 200, "batch_size": 10**9, **changes})


EXPECTED_FAILURES: dict[str, str] = {}
"""Checks of scikit-learn that fail, with reasons: none."""


def test_scikit_learn_is_content():
    found = check_estimator(
        free(steps=100, learning_rate=0.1, n_maps=2), expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None
    )
    failed = [(one["check_name"], str(one["exception"])[:200]) for one in found if one["status"] == "failed"]
    assert failed == []
    assert sum(one["status"] == "passed" for one in found) > 40


def test_one_map_is_logistic_regression():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(300, 3)), axis=1)
    ours = free(n_maps=1, steps=3000, learning_rate=0.05, average=0.01, momentum=0.9).fit(X, y)
    theirs = LogisticRegression(C=np.inf, tol=1e-8, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)
    one = free(n_maps=1, beta=7.0, steps=50).fit(X, y)  # with one map, beta is of no consequence
    np.testing.assert_allclose(
        one.predict_proba(X), free(n_maps=1, beta=0.1, steps=50).fit(X, y).predict_proba(X), atol=1e-5
    )


def test_several_maps_do_what_one_cannot():
    X, y = blobs()
    one, four = (free(n_maps=m, learning_rate=0.2, steps=500, beta=1.0).fit(X, y).score(X, y) for m in (1, 4))
    assert four > 0.97
    assert one < 0.95


def test_the_same_seed_gives_the_same_bits_without_privacy_and_is_refused_with_it():
    X, y = blobs(100)
    a, b = (free(batch_size=20, steps=30).fit(X, y) for _ in range(2))
    assert np.array_equal(a.maps_, b.maps_)
    with pytest.raises(vt.errors.InvalidInput, match="random_state"):
        vt.LocallyLinearClassifier(1.0, random_state=0, steps=3, batch_size=10**6).fit(X, y)


def test_numpy_and_torch_do_the_same():
    X, y = blobs(200)
    a, b = (free(steps=50, device=device).fit(X, y) for device in ("cpu", "torch"))
    np.testing.assert_allclose(a.maps_, b.maps_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    "changes", [{"projection": 2}, {"filters": vt.PictureFilters((4, 4), size=3, shifts=8, mirror=True)}]
)
def test_projections_and_filters_end_in_maps_of_the_input(changes):
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (300, 16))
    y = (X[:, :8].sum(axis=1) > X[:, 8:].sum(axis=1)).astype(int)
    clf = free(n_maps=3, learning_rate=0.05, **changes).fit(X, y)
    assert clf.maps_.shape == (3, 2, 16)
    assert clf.score(X, y) > (0.6 if "projection" in changes else 0.75)
    span = np.linalg.matrix_rank(clf.maps_.reshape(-1, 16), tol=1e-5)
    assert span <= (6 if "projection" in changes else 9)


@planted_noise()
def test_a_private_model_learns_and_says_what_it_took_as_public():
    X, y = halves(3000)
    clf = vt.LocallyLinearClassifier(4.0, 1e-5, bounds=(0, 1), n_maps=3, steps=100, batch_size=3000).fit(X, y)
    assert clf.score(X, y) > 0.75
    for word in ("epsilon = 4", "read off y", "row count 3000, read off X", "columns", "checked on X"):
        assert word in clf.guarantee_.sentence
    declared = vt.LocallyLinearClassifier(4.0, classes=["left", "right"], n_rows_public=3000, steps=3, batch_size=3000).fit(
        X, y
    )
    assert "the classes, as declared; the row count 3000, as declared" in declared.guarantee_.sentence
    assert clf.guarantee_.to_json()["promise"]["epsilon"] == 4.0
    assert "No privacy" in free(steps=3).fit(X, y).guarantee_.sentence


BAD = {
    "epsilon is zero": ({"epsilon": 0}, "epsilon"),
    "epsilon is negative": ({"epsilon": -1.0}, "epsilon"),
    "epsilon is minus infinity": ({"epsilon": -math.inf}, "epsilon"),
    "delta is one": ({"delta": 1.0}, "delta"),
    "no maps": ({"n_maps": 0}, "n_maps"),
    "clip is zero": ({"clip": 0.0}, "clip"),
    "clip is infinite": ({"clip": math.inf}, "clip"),
    "beta is negative": ({"beta": -1.0}, "beta"),
    "steps and epochs": ({"steps": 3, "epochs": 1}, "both given"),
    "filters and projection": ({"filters": vt.PictureFilters((2, 2), size=1), "projection": 2}, "both given"),
    "filters of another shape": ({"filters": vt.PictureFilters((4, 4), size=2)}, "16 pixels"),
    "unknown schedule": ({"schedule": "linear"}, "schedule"),
    "unknown device": ({"device": "abacus"}, "device"),
    "bounds upside down": ({"bounds": (1, 0)}, "bounds"),
    "X outside the bounds": ({"bounds": (0, 0.5)}, "outside the declared bounds in column 0"),
    "a class that was not declared": ({"classes": ["sides", "top"]}, "none of the declared classes"),
    "rows below one": ({"n_rows_public": 0}, "n_rows_public"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_before_training(name):
    changes, word = BAD[name]
    X, y = blobs(60)
    with pytest.raises(vt.errors.InvalidInput, match=word):
        vt.LocallyLinearClassifier(**{"steps": None if "epochs" in changes else 3, **changes}).fit(X, y)


def test_bad_rows_are_told_before_training():
    X, y = blobs(60)
    with pytest.raises(ValueError, match="NaN"):
        vt.LocallyLinearClassifier(steps=3).fit(np.where(X > 0.7, np.nan, X), y)
    with pytest.raises(vt.errors.InvalidInput, match="one class only"):
        vt.LocallyLinearClassifier(steps=3).fit(X, np.full(60, "sides"))


def test_explanations_add_up_to_the_score():
    X, y = blobs()
    clf = free(n_maps=4, bounds=(0, 1)).fit(pd.DataFrame(X, columns=["across", "up"]), y)
    frame = pd.DataFrame(X[:6], columns=["across", "up"])
    told = clf.explain_local(frame)
    assert told.columns == ("across", "up") == tuple(clf.feature_names_in_)
    np.testing.assert_allclose(told.predictions, told.outputs, atol=1e-9)
    margin = clf.decision_function(frame)
    np.testing.assert_allclose(
        clf.explain_local(frame, target="sides").outputs - clf.explain_local(frame, target="middle").outputs,
        margin,
        atol=1e-9,
    )
    for active in clf.active_maps(frame, top=4):
        assert sum(one.weight for one in active) == pytest.approx(1)
        assert [one.weight for one in active] == sorted((one.weight for one in active), reverse=True)
    with pytest.raises(vt.errors.InvalidInput, match="classes are"):
        clf.explain_local(frame, target="nowhere")
    back = vt.Attribution.from_json(
        vt.LocallyLinearClassifier(3.0, steps=3, batch_size=10**6).fit(X, y).explain_local(X[0]).to_json()
    )
    assert back.guarantee.epsilon == 3.0


def test_around_a_point_the_score_is_the_average_map_where_one_map_decides():
    """With a very large beta one map has all the weight, and the coefficients are the model's derivative."""
    X, y = blobs()
    clf = free(n_maps=3, learning_rate=0.1).fit(X, y)
    clf.beta_ = 1e4
    x, step = X[:1], 1e-6
    told = clf.explain_local(x, target="sides")
    for column in range(2):
        moved = x.copy()
        moved[0, column] += step
        slope = (clf.explain_local(moved, target="sides").outputs[0] - told.outputs[0]) / step
        assert slope == pytest.approx(told.coefficients[0, column], rel=1e-3, abs=1e-4)


def test_the_bank_of_maps():
    X, y = blobs()
    clf = free(n_maps=4).fit(X, y)
    bank = clf.explain_global(X)
    np.testing.assert_allclose(bank.usage.sum(axis=0), 1)
    assert bank.order("sides")[0] == int(np.argmax(bank.usage[:, bank.classes.index("sides")]))
    assert clf.explain_global().usage is None
    assert len(bank.frame()["weight"]) == 4 * 2 * 2
    assert [name for name, _ in bank.top("sides", 2)] in (["x0", "x1"], ["x1", "x0"])
    with pytest.raises(vt.errors.InvalidInput, match="none of the classes"):
        bank.order("nowhere")


def test_pictures_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (80, 16)), rng.integers(2, size=80)
    clf = free(n_maps=3, steps=5, filters=vt.PictureFilters((4, 4), size=3, shifts=0)).fit(X, y)
    for name, figure in {
        "pictures": clf.plot.filters((4, 4), top=2, X_public=X),
        "bars": clf.plot.filters(),
        "one": clf.plot.attribution(X[0]),
    }.items():
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 3000
    with pytest.raises(vt.errors.InvalidInput, match="9 pixels"):
        clf.plot.filters((3, 3))


def test_a_schema_reads_frames_with_categories():
    schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 100, 300), "smoker": rng.choice(["no", "yes"], 300)})
    y = np.where(frame.smoker == "yes", "ill", "well")
    clf = free(schema=schema, learning_rate=0.2).fit(frame, y)
    assert clf.score(frame, y) > 0.99
    told = clf.explain_local(frame[:2], target="ill")
    assert told.columns == ("age", "smoker")
    assert abs(told.values[0, 1]) > abs(told.values[0, 0])
    with pytest.raises(vt.errors.SchemaError, match="smoker"):
        clf.predict(pd.DataFrame({"age": [1.0], "smoker": ["maybe"]}))
    pickle.loads(pickle.dumps(clf)).predict(frame[:2])


def test_clone_pickle_and_set_params():
    X, y = blobs(200)
    clf = free().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(X), clf.predict_proba(X))
    again = clone(clf).set_params(n_maps=2)
    assert again.get_params()["n_maps"] == 2
    assert not hasattr(again, "maps_")
    assert np.array_equal(clone(clf).fit(X, y).maps_, clf.maps_)


def test_epochs_are_passes_over_the_declared_rows():
    X, y = blobs(200)
    clf = free(steps=None, epochs=3, batch_size=50).fit(X, y)
    assert clf.guarantee_.steps == 12
    assert clf.guarantee_.sampling_rate == 0.25


@pytest.mark.gpu
def test_an_accelerator_does_what_the_cpu_does():
    assert torch.cuda.is_available()
    X, y = blobs(200)
    a, b = (free(steps=50, device=device).fit(X, y) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(a.maps_, b.maps_, rtol=1e-6, atol=1e-9)
