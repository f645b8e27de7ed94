"""The graphs of our explainers: what each computes from what, and which stages it releases.

Data only: no explainer is imported. A class names its graph in ``__vitrail_flow__``, or is found here by its own name.
Stages are those that matter for privacy; steps between two releases that read neither rows nor anything public are drawn as
one. A graph states what its explainer reads; tests/flow/test_catalogue.py checks that the released stages separate.
"""

from __future__ import annotations

from .published import PUBLISHED
from .stages import Stages

_MODEL = "the model, clipped to its declared range"
_POINTS = "the points asked about"


def _local(title: str) -> Stages:
    """What all pay-per-question local explanations start with."""
    return (
        Stages(title)
        .stage("points", public=True, does=_POINTS)
        .stage("model", public=True, does=_MODEL)
        .stage("labels", after=["rows", "model"], does="the model's output for each row")
        .stage("weights", after=["rows", "points"], does="how near each row is to each point")
    )


STATISTICS = (
    _local("LocalLinear, statistics")
    .stage(
        "statistics",
        after=["rows", "labels", "weights"],
        does="weighted second moments (A, b) for all points",
        released="GramSum",
    )
    .stage("fit", after=["statistics"], does="project, solve in the ball, bands")
    .stage("explanation", after=["fit", "points", "model"], does="contributions per column")
)

DESCENT = (
    _local("LocalLinear, descent")
    .stage("first gradient", after=["rows", "labels", "weights"], does="at zero", released="BoundedSum")
    .stage("iterates", after=["first gradient"], does="phi after each step, projected; public lengths")
    .stage(
        "gradients",
        after=["rows", "labels", "weights", "iterates"],
        does="one per step, each at the iterate before it",
        released="BoundedSum, T - 1 times",
    )
    .stage("means", after=["rows", "weights"], does="weighted mean, if there is an intercept", released="BoundedSum")
    .stage("explanation", after=["iterates", "gradients", "means", "points", "model"], does="last iterate, per column")
)

ADAPTIVE = (
    _local("LocalLinear, adaptive")
    .stage("history", after=["rows"], does="explanations given before", released="earlier, at their own price")
    .stage(
        "start", after=["rows", "labels", "weights", "history"], does="the candidate of shortest gradient", released="Select"
    )
    .stage("beta", after=["rows", "labels", "weights", "start"], does="the gradient at the start", released="BoundedSum")
    .stage("steps", after=["beta", "history"], does="number T' and lengths of the steps")
    .stage(
        "gradients",
        after=["rows", "labels", "weights", "start", "beta", "steps"],
        does="one per step, at the iterate before it",
        released="BoundedSum, T' - 1 times",
    )
    .stage("means", after=["rows", "weights"], does="weighted mean, if there is an intercept", released="BoundedSum")
    .stage(
        "explanation",  # the bill shows the number of steps, whether or not the result does
        after=["gradients", "start", "beta", "steps", "history", "means", "points", "model"],
        does="last iterate, per column; the bill",
    )
)

HISTORY = (
    Stages("LocalLinear, history")
    .stage("points", public=True, does=_POINTS)
    .stage("model", public=True, does=_MODEL)
    .stage("history", after=["rows"], does="explanations given before", released="earlier, at their own price")
    .stage("past points", after=["history"], does="labelled by the model, not by rows")
    .stage("explanation", after=["past points", "points", "model"], does="fit on past points; costs nothing")
)

SYNOPSIS = (
    Stages("LocalLinear, synopsis")
    .stage("points", public=True, does="any point, of anyone, later")
    .stage("model", public=True, does=_MODEL)
    .stage("cells", public=True, does="one cell, or cells by declared columns")
    .stage("products", after=["rows", "model", "cells"], does="of each row: 1, x, f, xx, fx, xxx, ...")
    .stage("moments", after=["products"], does="their sums, one vector", released="ProductSum")
    .stage("synopsis", after=["moments"], does="a file; no rows needed any more")
    .stage("explanation", after=["synopsis", "points", "model"], does="A(z) and b(z) are linear in the moments; solve")
)

CELLS = (
    Stages("LocalLinear, cells learned from rows")
    .stage("points", public=True, does="any point, of anyone, later")
    .stage("model", public=True, does=_MODEL)
    .stage("survey", after=["rows"], does="second moments of the columns", released="ProductSum")
    .stage("cells", after=["survey"], does="cut by the columns that explain most of the distance")
    .stage("moments", after=["rows", "model", "cells"], does="moments of every cell", released="ProductSum")
    .stage("explanation", after=["moments", "cells", "points", "model"], does="a line of the weight per cell; solve")
)

PRIVATE_ROWS = (
    Stages("private rows")
    .stage("bins", public=True, does="of every column, from the schema")
    .stage("counts", after=["rows", "bins"], does="of every bin of every column", released="BoundedSum")
    .stage("groups", after=["counts"], does="bins joined until they hold enough")
    .stage("coarse tables", after=["rows", "groups"], does="of all pairs of columns", released="ProductSum")
    .stage("links", after=["coarse tables", "counts"], does="which columns belong together")
    .stage("linked tables", after=["rows", "groups", "links"], does="finer, of linked pairs only", released="ProductSum")
    .stage(
        "joint model", after=["counts", "coarse tables", "linked tables", "links"], does="a junction tree, made consistent"
    )
    .stage("explanation", after=["joint model"], does="sampled rows, as many as wanted")
)

SHARP = (
    Stages("LocalLinear, private rows")
    .stage("points", public=True, does="any point, of anyone, later")
    .stage("model", public=True, does="asked again, for free")
    .stage(
        "private rows", after=["rows"], does="a model of the joint distribution", released="private_rows: three questions"
    )
    .stage("labelled rows", after=["private rows", "model"], does="sampled rows and the model's output")
    .stage("explanation", after=["labelled rows", "points"], does="weighted least squares near each point")
)

SHAPLEY = (
    Stages("Shapley")
    .stage("points", public=True, does=_POINTS)
    .stage("model", public=True, does=_MODEL)
    .stage("chains", after=["rows", "points", "model"], does="contributions on the way from each row to each point")
    .stage("norms", after=["chains"], does="histogram of their lengths, on public bins", released="BoundedSum or SampledSum")
    .stage("clip", after=["norms"], does="the length that 95 % stay under")
    .stage("sums", after=["chains", "clip"], does="of clipped contributions", released="BoundedSum or SampledSum")
    .stage("explanation", after=["sums", "clip", "points", "model"], does="reconciled: values add up to the output")
)

MARGINALS = (
    Stages("marginals")
    .stage("bins", public=True, does="of every column, from the schema")
    .stage("counts", after=["rows", "bins"], does="of all columns, one vector of norm sqrt(d)", released="BoundedSum")
    .stage("explanation", after=["counts", "bins"], does="shares, means, quantiles")
)

PARTIAL_DEPENDENCE = (
    Stages("PartialDependence")
    .stage("model", public=True, does=_MODEL)
    .stage("fine bins", public=True, does="from the schema")
    .stage("marginals", after=["rows", "fine bins"], does="counts of all columns", released="BoundedSum")
    .stage("reference", after=["marginals", "model"], does="rows drawn from the counts; grids, clips, prior")
    .stage("predictions", after=["rows", "reference", "model"], does="each row moved along each grid, clipped")
    .stage("sums", after=["predictions"], does="all features, one vector", released="BoundedSum or SampledSum")
    .stage("explanation", after=["sums", "reference", "marginals"], does="curves and bands")
)

ACCUMULATED_EFFECTS = (
    Stages("AccumulatedEffects")
    .stage("model", public=True, does=_MODEL)
    .stage("fine bins", public=True, does="from the schema")
    .stage("marginals", after=["rows", "fine bins"], does="counts of all columns", released="BoundedSum")
    .stage("reference", after=["marginals", "model"], does="rows drawn from the counts; bins, prior")
    .stage("differences", after=["rows", "reference", "model"], does="f(upper edge) - f(lower edge), in each row's bin")
    .stage("sizes", after=["differences"], does="a histogram of how large they are", released="BoundedSum")
    .stage("clips", after=["sizes", "reference"], does="from the histogram, or the reference where noise hides a tail")
    .stage("sums", after=["differences", "clips"], does="all features, one vector", released="BoundedSum or SampledSum")
    .stage(
        "explanation",
        after=["sums", "clips", "reference", "marginals"],
        does="effects per bin, accumulated, centred; bands",
    )
)

PERMUTATION_IMPORTANCE = (
    Stages("PermutationImportance")
    .stage("model", public=True, does="the model and a bounded loss")
    .stage("fine bins", public=True, does="from the schema")
    .stage("marginals", after=["rows", "fine bins"], does="counts of all columns", released="BoundedSum")
    .stage("donors", after=["marginals"], does="values drawn from the released counts")
    .stage("losses", after=["rows", "donors", "model"], does="of each row, and with each feature replaced by a donor")
    .stage("sums", after=["losses"], does="all features and the base loss, one vector", released="BoundedSum")
    .stage("explanation", after=["sums"], does="differences, ranking, confidence in pairs")
)

INTERACTIONS = (
    Stages("Interactions")
    .stage("model", public=True, does=_MODEL)
    .stage("grid", public=True, does="of features and of pairs, from the schema")
    .stage("marginals", after=["rows", "grid"], does="counts, as weights of the grid", released="BoundedSum")
    .stage("predictions", after=["rows", "grid", "model"], does="rows with one or two features moved")
    .stage("sums", after=["predictions"], does="1-d and 2-d partial dependence, one vector", released="BoundedSum")
    .stage("explanation", after=["sums", "marginals", "grid"], does="Friedman's H, noise variance taken off")
)

SHAP_DEPENDENCE = (
    Stages("ShapDependence")
    .stage("model", public=True, does=_MODEL)
    .stage("bins", public=True, does="of the feature, from the schema")
    .stage("marginals", after=["rows", "bins"], does="counts of all columns", released="BoundedSum")
    .stage("background", after=["marginals"], does="rows drawn from the released counts")
    .stage("Shapley values", after=["rows", "background", "model"], does="of each row, clipped")
    .stage("sums", after=["rows", "Shapley values", "bins"], does="per bin of the feature", released="BoundedSum")
    .stage("explanation", after=["sums", "marginals", "bins"], does="mean value per bin; bands")
)

ANY_CURVE = (
    Stages("AnyCurve")
    .stage("explainer", public=True, does="any function of rows, approved by the owner; grid and y range")
    .stage("groups", after=["rows"], does="each row draws its group afresh")
    .stage("curves", after=["groups", "explainer"], does="one per group, on the grid, clipped to the range")
    .stage("sum", after=["curves"], does="of the groups' curves", released="GroupedSum")
    .stage("explanation", after=["sum", "explainer"], does="mean curve and band")
)

ANY_RANKING = (
    Stages("AnyRanking")
    .stage("ranker", public=True, does="any function of rows, approved by the owner; the items")
    .stage("groups", after=["rows"], does="each row draws its group afresh")
    .stage("ranks", after=["groups", "ranker"], does="Borda points of one ranking per group")
    .stage("sum", after=["ranks"], does="of the groups' points", released="GroupedSum")
    .stage("explanation", after=["sum"], does="items by noisy points")
)

ANY_CURVE_RETRAIN = (
    Stages("AnyCurve, retrained")
    .stage("recipe", public=True, does="how to train a model; explainer, grid and y range")
    .stage("groups", after=["rows"], does="each training row draws its group afresh")
    .stage("group models", after=["groups", "recipe"], does="one model per group, trained on it")
    .stage("curves", after=["groups", "group models", "recipe"], does="one per group, clipped to the range")
    .stage("sum", after=["curves"], does="of the groups' curves", released="GroupedSum")
    .stage("explanation", after=["sum", "recipe"], does="mean curve and band; protects training data")
)

OURS: dict[str, Stages] = {
    "LocalLinear": STATISTICS,
    "LocalLinear/descent": DESCENT,
    "LocalLinear/adaptive": ADAPTIVE,
    "LocalLinear/history": HISTORY,
    "LocalLinear/synopsis": SYNOPSIS,
    "LocalLinear/cells": CELLS,
    "LocalLinear/rows": SHARP,
    "Shapley": SHAPLEY,
    "Marginals": MARGINALS,
    "PrivateRows": PRIVATE_ROWS,
    "PartialDependence": PARTIAL_DEPENDENCE,
    "AccumulatedEffects": ACCUMULATED_EFFECTS,
    "PermutationImportance": PERMUTATION_IMPORTANCE,
    "Interactions": INTERACTIONS,
    "ShapDependence": SHAP_DEPENDENCE,
    "AnyCurve": ANY_CURVE,
    "AnyCurve/retrain": ANY_CURVE_RETRAIN,
    "AnyRanking": ANY_RANKING,
}
"""By class name; ``Class/variant`` where a class has several ways."""

CATALOGUE: dict[str, Stages] = {**OURS, **PUBLISHED}
