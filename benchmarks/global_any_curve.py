"""Curves by subsample and aggregate: the published generic design beside ``vt.AnyCurve``, at the same grid points and range.

Groups, noise and clip are those of AnyCurve's own question; the curve of a group is the paper's non-private one, as in the
published design. What tells the two apart: how many groups there are (200 as published; from epsilon, grid points and rows
here), how rows come into them (equal parts; each by a draw of its own), and the noise (Laplace on every grid point, at eight
ninths of epsilon; Gaussian on the curve as a whole, at delta 1e-6).
"""

from __future__ import annotations

import numpy as np

import vitrail as vt
from global_curves import CASES, EPSILONS, KINDS, Row, _seeded
from global_setup import Bench, Case, Part, mise, typical
from papers import tailoring_published as published
from vitrail.accounting import mu_of
from vitrail.explain.recipe import Terms

DEALS = 2


def law(case: Case, name: str, kind: str, epsilon: float) -> tuple[int, float]:
    """Groups of AnyCurve's question, and the noise of the mean on every grid point."""
    data, places = case.private, published.grid(case, name, published.RESOLUTION)
    grid = list(case.schema[name].levels) if case.categorical(name) else places  # type: ignore[union-attr]

    def explainer(model: object, x: object) -> np.ndarray:
        return np.zeros(len(places))  # nobody asks it

    low, high = published.generic_range(case, kind)
    curve = vt.AnyCurve(data, explainer, x_grid=grid, y_range=(low, high), isolation="none", name=name)
    question = next(curve.conversation().recipe(Terms.of(data, mu_of(epsilon, data.delta)))).question
    assert isinstance(question, vt.GroupedSum)
    sigma = data.quote(question, epsilon=epsilon).sigma
    assert sigma is not None
    return question.groups, sigma / question.groups


def mean_of_groups(case: Case, name: str, kind: str, groups: int, rng: np.random.Generator) -> np.ndarray:
    """The mean of the groups' clipped curves; an empty group, or one of a single value, says the middle of the range."""
    places, (low, high) = published.grid(case, name, published.RESOLUTION), published.generic_range(case, kind)
    labels = rng.integers(0, groups, case.m)
    order = np.argsort(labels, kind="stable")
    total = np.zeros(len(places))
    for rows in np.split(order, np.searchsorted(labels[order], np.arange(1, groups))):
        if len(rows):
            total += np.clip(np.interp(places, *published.part_curve(case, name, kind, rows)), low, high)
        else:
            total += (low + high) / 2
    return total / groups


def errors(case: Case, name: str, kind: str, epsilon: float) -> Row:
    """MISE against the paper's non-private curve of the model as it is."""
    rng = _seeded("any curve", case.name, kind, name, epsilon)
    groups, std = law(case, name, kind, epsilon)
    places, truth = published.grid(case, name, published.RESOLUTION), case.truth(kind, name, "published", clip=False)
    low, high = published.generic_range(case, kind)
    found = []
    for _ in range(DEALS):
        mean = mean_of_groups(case, name, kind, groups, rng)
        noisy = mean + std * rng.normal(size=(case.scale.published_draws // DEALS, len(places)))
        found.append(mise(published.interpolated(case.axis(name), places, np.clip(noisy, low, high)), truth))
    return {"groups": groups, "any_curve": typical(np.concatenate(found))}


def generic_curves(bench: Bench) -> Part:
    """All columns at every epsilon; what the published design loses is in the rows of the parts pdp and ale."""
    rows: list[Row] = []
    for name in CASES:
        case = bench.case(name)
        for kind in KINDS:
            for feature in case.names:
                for epsilon in EPSILONS:
                    where: Row = {"data": name, "kind": kind, "feature": feature, "epsilon": epsilon}
                    rows.append({**where, **errors(case, feature, kind, epsilon)})
    how = f"{DEALS} deals of the rows to the groups, {bench.scale.published_draws} draws; typical mean of ten repetitions"
    return Part({}, rows, how)
