"""Training rows pulled out of example-based explanations; influence against leaving a row out."""

import numpy as np
import pytest

from vitrail.audit import reconstruction
from vitrail.audit.influence import LastLayerInfluence, LogisticInfluence
from vitrail.errors import InvalidInput


def rows_and_labels(seed, rows, dimension):
    generator = np.random.default_rng((seed, 77))
    points = generator.normal(size=(rows, dimension))
    return points, (points[:, 0] + 0.5 * generator.normal(size=rows) > 0).astype(int)


def test_influence_is_what_leaving_a_row_out_does():
    points, labels = rows_and_labels(0, 80, 3)
    whole = LogisticInfluence.fit(points, labels, l2=0.05)
    asked = points[:1] * 0.5
    said = int(whole.predict(asked)[0] > 0.5)

    def loss(theta):
        margin = (2 * said - 1) * float(asked[0] @ theta)
        return float(np.logaddexp(0, -margin))

    changes = []
    for left_out in range(80):
        kept = np.arange(80) != left_out
        # The mean over 79 rows with 80/79 of the penalty is the mean over 80 without one row.
        without = LogisticInfluence.fit(points[kept], labels[kept], l2=0.05 * 80 / 79)
        changes.append(loss(without.weights[0]) - loss(whole.weights[0]))
    assert np.corrcoef(changes, whole.influences(asked)[0])[0, 1] > 0.98


def test_the_last_layer_of_two_classes_agrees_with_logistic_regression():
    """Two softmax columns of opposite sign are one logistic column: the same rows are shown."""
    points, labels = rows_and_labels(1, 60, 3)
    logistic = LogisticInfluence.fit(points, labels, l2=0.1, intercept=True)
    # Softmax weights w and -w make a logit of 2 w = theta: the penalty l2 |theta|^2/2 becomes 2 l2 (|w|^2 + |-w|^2)/2.
    last = LastLayerInfluence.fit(points, labels, lambda x: x, l2=0.2)
    assert (last.shown(points)[:, 0] == logistic.shown(points)[:, 0]).mean() > 0.95


def test_orthogonal_queries_recover_every_independent_row():
    points, labels = rows_and_labels(2, 60, 80)
    shows = LogisticInfluence.fit(points, labels, l2=0.01)
    audit = reconstruction(shows, 80, queries=80, hessian_inverse=shows.hessian_inverse(), training=points)
    by = {row.strategy: row for row in audit.rows}
    assert by["H-orthogonal"].share == 1
    assert by["H-orthogonal"].queries <= 61
    assert by["H-orthogonal"].over_queries[:60] == tuple(range(1, 61))  # a new row with every query
    assert by["random"].share < 0.9
    assert audit.rank_bound == 60
    assert audit.best().strategy in ("H-orthogonal", "orthogonal")


def test_in_few_dimensions_the_span_is_soon_everything():
    points, labels = rows_and_labels(3, 100, 4)
    shows = LogisticInfluence.fit(points, labels, l2=0.01, k=2)
    audit = reconstruction(
        shows, 4, strategies=["H-orthogonal", "walk"], queries=200, hessian_inverse=shows.hessian_inverse(), training=points
    )
    by = {row.strategy: row for row in audit.rows}
    assert by["H-orthogonal"].queries <= 4
    assert audit.rank_bound == 4
    assert by["H-orthogonal"].recovered <= 2 * 4
    assert by["walk"].recovered >= by["H-orthogonal"].recovered
    assert audit.shown_per_query == 2


def test_groups_say_who_is_hurt(tmp_path):
    generator = np.random.default_rng(4)
    common = generator.normal(size=(90, 5)) * 0.2
    rare = generator.normal(size=(10, 5)) * 3
    points = np.concatenate([common, rare])
    labels = generator.integers(0, 2, 100)
    shows = LogisticInfluence.fit(points, labels, l2=0.1)
    groups = ["common"] * 90 + ["rare"] * 10
    audit = reconstruction(shows, 5, strategies="random", queries=100, training=points, groups=groups)
    shares = audit.rows[0].by_group
    assert shares["rare"].value > shares["common"].value
    assert "hit hardest: rare" in audit.summary()
    assert "Whose rows" in audit.report(tmp_path / "page.html").read_text()
    assert audit.to_json()["rows"][0]["by_group"]["rare"]["lower"] <= shares["rare"].value


def test_a_network_shows_rows_by_its_last_layer():
    points, labels = rows_and_labels(5, 50, 4)
    shows = LastLayerInfluence.fit(points, labels, np.tanh, k=3)
    audit = reconstruction(
        shows, (np.full(4, -2), np.full(4, 2)), strategies=["random", "walk"], queries=40, training=points
    )
    assert all(0 < row.share < 1 for row in audit.rows)
    weights = np.zeros((2, 5))
    with pytest.raises(InvalidInput, match="constant last"):
        LastLayerInfluence.fit(points, labels, np.tanh, weights=weights[:, :4])
    assert LastLayerInfluence.fit(points, labels, np.tanh, weights=weights)(points[:1]).shape == (1, 1, 4)


POINTS, LABELS = rows_and_labels(6, 30, 3)
SHOWS = LogisticInfluence.fit(POINTS, LABELS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"example_explainer": 3}, "function of points"),
        ({"queries": 0}, "queries is 0"),
        ({"domain": 4}, "must return|cannot|matmul|shape"),
        ({"domain": 0}, "number of features"),
        ({"domain": (-1.0, 1.0)}, "two arrays"),
        ({"strategies": "guess"}, "strategies names"),
        ({"strategies": "H-orthogonal"}, "needs hessian_inverse"),
        ({"hessian_inverse": np.eye(2)}, "hessian_inverse has shape"),
        ({"training": POINTS[:, :2]}, "training has shape"),
        ({"groups": ["a"]}, "groups names"),
        ({"example_explainer": lambda x: np.full((1, 1, 3), np.nan)}, "NaN"),
        ({"example_explainer": lambda x: np.zeros(3)}, "must return"),
    ],
)
def test_bad_input_is_refused(given, message):
    arguments = {"example_explainer": SHOWS, "domain": 3} | given
    with pytest.raises((InvalidInput, ValueError), match=message):
        reconstruction(**arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogisticInfluence.fit(POINTS, np.zeros(30)), "both classes"),
        (lambda: LogisticInfluence.fit(POINTS[:1], LABELS[:1]), "at least 2"),
        (lambda: LogisticInfluence.fit(POINTS, LABELS, k=31), "k is 31"),
    ],
)
def test_bad_training_rows_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


@pytest.mark.slow
def test_the_synthetic_benchmark_is_recovered_whole():
    points, labels = rows_and_labels(7, 900, 1025)
    shows = LogisticInfluence.fit(points, labels, l2=0.01)
    audit = reconstruction(
        shows, 1025, strategies="H-orthogonal", queries=1000, hessian_inverse=shows.hessian_inverse(), training=points
    )
    assert audit.rows[0].share == 1
