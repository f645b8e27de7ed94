"""The memory of explained points, its file, and Algorithm 4."""

from dataclasses import replace

import numpy as np
import pytest

import vitrail as vt
from quadratic_loss import best_affine
from vitrail.errors import InvalidInput
from vitrail.solve.linear.descent import History, HistoryFile, Past
from vitrail.solve.linear.labelled_rows import explain_from
from vitrail.solve.linear.least_squares import solve_in_ball
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import stable

SCHEMA = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1), "team": vt.Categorical(["red", "blue"])})


class Tilted:
    """A model with a content hash."""

    def __init__(self, slope=0.6):
        self.slope = slope

    def predict(self, x):
        return 0.1 + self.slope * x[:, 0] + 0.2 * x[:, 3]


def problem_of(intercept=True, slope=0.6, weight=None):
    return LocalProblem(
        SCHEMA, vt.Model(Tilted(slope), range=(0, 1), inputs="features"), weight or stable(), "soft", intercept
    )


def points(count, seed=0):
    generator = np.random.default_rng(seed)
    return SCHEMA.read_points(
        {
            "a": generator.uniform(size=count),
            "b": generator.uniform(size=count),
            "team": generator.choice(["red", "blue"], count),
        }
    )


def filled(problem, count=30):
    history = History(problem)
    generator = np.random.default_rng(1)
    for number, raw in enumerate(points(count)):
        mean = generator.normal(size=problem.n_features) if problem.intercept else None
        history.add(Past(raw, generator.normal(size=problem.size), number % 3 > 0, 0.1, mean, 0.05, 7, vt.Cost.of_mu(0.01)))
    return history


@pytest.mark.parametrize("intercept", [False, True])
def test_algorithm_4_is_the_weighted_fit_in_the_ball(intercept):
    problem = problem_of(intercept)
    history = filled(problem)
    asked = points(4, seed=3)
    found = explain_from(history, asked)
    past = history.raw_points
    x, f = problem.encode(past), problem.at(past)
    for row, z in enumerate(problem.encode(asked)):
        d = x - z
        alpha = problem.weight(np.linalg.norm(d, axis=1))
        u = np.column_stack([np.ones(len(d)), d]) if intercept else d
        a, b = ((u * alpha[:, None]).T @ u)[None], (u * (alpha * f)[:, None]).sum(axis=0)[None]
        if intercept:
            intercepts, slopes = best_affine(a, b, 3.0)
            assert found.intercepts[row] == pytest.approx(0.5 + 0.5 * intercepts[0])
        else:
            slopes = solve_in_ball(a, b)
        assert found.coefficients[row] == pytest.approx(0.5 * slopes[0], abs=1e-7)
    assert found.method == "history"


def test_algorithm_4_is_free_and_says_so():
    found = explain_from(filled(problem_of()), points(2, seed=3))
    assert found.cost == vt.Cost()
    assert found.guarantee.epsilon == found.guarantee.delta == 0
    assert found.lower is None
    assert "no private row was used" in " ".join(found.notes)


def test_algorithm_4_finds_a_linear_model_exactly():
    """The paper's labels phi_j.z_j could not: f(z_j) is public, and a linear f is recovered from a few points."""
    problem = problem_of()
    found = explain_from(filled(problem, 12), points(3, seed=4))
    assert found.intercepts == pytest.approx(found.outputs, abs=1e-6)
    assert found.predictions == pytest.approx(found.outputs, abs=1e-6)


def test_fewer_points_than_features_still_give_an_explanation():
    found = explain_from(filled(problem_of(), 2), points(1, seed=4))
    assert np.isfinite(found.values).all()


def test_it_reads_back_bit_for_bit(tmp_path):
    history = filled(problem_of())
    history.save(tmp_path / "past.history")
    loaded = History.load(tmp_path / "past.history", problem_of())
    assert len(loaded) == len(history) == 30
    for old, new in zip(history, loaded, strict=True):
        assert (old.raw == new.raw).all()
        assert (old.phi == new.phi).all()
        assert (old.mean == new.mean).all()
        assert (old.computed, old.noise_std, old.mean_std, old.gradients, old.cost) == (
            new.computed, new.noise_std, new.mean_std, new.gradients, new.cost
        )  # fmt: skip
    assert loaded.cost == history.cost
    assert len(loaded.computed()) == 20


def test_a_file_about_another_problem_or_damaged_is_refused(tmp_path):
    path = tmp_path / "past.history"
    history = filled(problem_of())
    history.save(path)
    for other in (problem_of(slope=0.5), problem_of(intercept=False), problem_of(weight=stable(2.0))):
        with pytest.raises(InvalidInput, match="another problem"):
            History.load(path, other)
        with pytest.raises(InvalidInput, match="another problem"):
            history.check(other)
    stored = HistoryFile.load(path)
    assert len(stored.entries) == 30
    replace(stored, entries=(replace(stored.entries[0], phi=np.zeros(1)),)).save(path)
    with pytest.raises(InvalidInput, match="a phi of"):
        History.load(path, problem_of())
    for wrong, said in ((b"{", "no JSON text"), (b"[]", "no whole zip file")):
        path.write_bytes(wrong)
        with pytest.raises(InvalidInput, match=said):
            History.load(path, problem_of())


def test_nothing_can_be_explained_from_nothing():
    with pytest.raises(InvalidInput, match="empty"):
        explain_from(History(problem_of()), points(1))
    with pytest.raises(InvalidInput, match="raw_points have shape"):
        explain_from(filled(problem_of()), np.zeros((1, 9)))


def test_it_shows_counts_and_no_numbers():
    assert repr(filled(problem_of(), 6)) == "History(6 points, 4 of them computed, mu=0.0245)"
