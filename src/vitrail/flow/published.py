"""Graphs of "Tailoring DP to Any Explainer": the plain explainers, its designs as printed, and two as its code runs them.

The plain graphs have nothing released; their separators are the paper's "minimal privacy-enabling sets", except for the
rows themselves, which the paper counts as a set and we do not (make private rows a stage). A curve's rug, which shows where
the data lie, is drawn as a stage here: it reads the rows and is part of the picture. Neighbours there are replace-one, so
the row count is public. Shares of epsilon are those of the public code; the printed DP PDP spends all of it on the y
values.
"""

from __future__ import annotations

from .stages import Stages

_MODEL = "the model, range [lo, hi]"

PLAIN_PDP = (
    Stages("plain PDP")
    .stage("model", public=True, does="the model")
    .stage("x values", after=["rows"], does="(1) the values that occur")
    .stage("y values", after=["rows", "x values", "model"], does="(2) mean prediction at each")
    .stage("explanation", after=["x values", "y values"], does="points of the plot, no rug")
)

PLAIN_PDP_WITH_RUG = (
    Stages("plain PDP with its rug")
    .stage("model", public=True, does="the model")
    .stage("x values", after=["rows"], does="(1) the values that occur")
    .stage("y values", after=["rows", "x values", "model"], does="(2) mean prediction at each")
    .stage("rug", after=["rows"], does="where the feature's values lie")
    .stage("explanation", after=["x values", "y values", "rug"], does="the plot that is shown")
)

PLAIN_ALE = (
    Stages("plain ALE")
    .stage("model", public=True, does="the model")
    .stage("quantiles", after=["rows"], does="edges of the bins")
    .stage("differences", after=["rows", "quantiles", "model"], does="summed within each bin")
    .stage("counts", after=["rows", "quantiles"], does="rows per bin")
    .stage("effects", after=["differences", "counts"], does="accumulated")
    .stage("centred", after=["effects", "counts"], does="mean effect taken off")
    .stage("rug", after=["rows"], does="where the feature's values lie")
    .stage("explanation", after=["centred", "quantiles", "rug"], does="the plot that is shown")
)

PLAIN_PFI = (
    Stages("plain PFI")
    .stage("model", public=True, does="the model and its loss")
    .stage("permutation", public=True, does="of the row numbers, at random")
    .stage("permuted rows", after=["rows", "permutation"], does="one feature exchanged")
    .stage("base error", after=["rows", "model"], does="of the model")
    .stage("errors", after=["permuted rows", "model"], does="per feature")
    .stage("importances", after=["base error", "errors"], does="differences")
    .stage("explanation", after=["importances"], does="the ranking")
)

PDP = (
    Stages("DP PDP, as printed")
    .stage("model", public=True, does=_MODEL)
    .stage("x values", public=True, does="equidistant between given bounds, or given categories")
    .stage("y values", after=["rows", "x values", "model"], does="mean predictions", released="Laplace, 8/9 of epsilon")
    .stage("rug", after=["rows", "x values"], does="histogram", released="Laplace, 1/9 of epsilon")
    .stage("explanation", after=["x values", "y values", "rug"], does="the plot")
)

PDP_CODE = (
    Stages("DP PDP, as its code runs it")
    .stage("model", public=True, does=_MODEL)
    .stage("categories", after=["rows"], does="bounds and categories, read off the data")
    .stage("x values", after=["categories"], does="equidistant between the bounds, or the categories")
    .stage("y values", after=["rows", "x values", "model"], does="mean predictions", released="Laplace, 8/9 of epsilon")
    .stage("rug", after=["rows", "x values"], does="histogram", released="Laplace, 1/9 of epsilon")
    .stage("explanation", after=["x values", "y values", "rug"], does="the plot")
)

ALE = (
    Stages("DP ALE, as printed")
    .stage("model", public=True, does=_MODEL)
    .stage("bounds", public=True, does="of the feature, given; m bins of n/m rows each")
    .stage("quantiles", after=["rows", "bounds"], does="edges of the bins", released="approximate quantiles, 4/9 of epsilon")
    .stage(
        "differences",
        after=["rows", "quantiles", "model"],
        does="summed within each bin",
        released="Laplace, 4/9 of epsilon",
    )
    .stage("effects", after=["differences", "bounds"], does="divided by n/m, accumulated, centred")
    .stage("rug", after=["rows", "bounds"], does="histogram", released="Laplace, 1/9 of epsilon")
    .stage("explanation", after=["effects", "quantiles", "rug"], does="the plot")
)

ALE_CATEGORICAL_CODE = (
    Stages("DP ALE of a categorical feature, as its code runs it")
    .stage("model", public=True, does=_MODEL)
    .stage("categories", after=["rows"], does="those that occur in the data")
    .stage(
        "differences", after=["rows", "categories", "model"], does="summed per category", released="Laplace, 8/9 of epsilon"
    )
    .stage("counts", after=["rows", "categories"], does="rows per category", released="Laplace(1/(epsilon/9))")
    .stage("effects", after=["differences", "counts"], does="divided, accumulated, centred")
    .stage("rug", after=["rows", "categories"], does="the counts, a second time", released="Laplace(1/(epsilon/9))")
    .stage("explanation", after=["effects", "categories", "rug"], does="the plot")
)

PFI = (
    Stages("DP PFI, as printed")
    .stage("model", public=True, does="the model, range [lo, hi]; squared error")
    .stage("permutation", public=True, does="of the row numbers, at random")
    .stage("permuted rows", after=["rows", "permutation"], does="one feature exchanged")
    .stage("errors", after=["permuted rows", "model"], does="per feature", released="Laplace, epsilon/M each")
    .stage("explanation", after=["errors"], does="the ranking; the base error cancels")
)

GENERIC_PLOT = (
    Stages("generic DP plot, as printed")
    .stage("x values", public=True, does="equidistant, or given categories")
    .stage("explainer", public=True, does="any, with its model")
    .stage("parts", after=["rows"], does="l equal parts")
    .stage("curves", after=["parts", "explainer", "x values"], does="one per part, interpolated, clipped")
    .stage("mean", after=["curves"], does="of the curves", released="Laplace, 8/9 of epsilon")
    .stage("rug", after=["rows", "x values"], does="histogram", released="Laplace, 1/9 of epsilon")
    .stage("explanation", after=["mean", "x values", "rug"], does="the plot")
)

GENERIC_RANKING = (
    Stages("generic DP rank aggregation, as printed")
    .stage("explainer", public=True, does="any ranking, with its model; M items")
    .stage("parts", after=["rows"], does="l equal parts")
    .stage("ranks", after=["parts", "explainer"], does="Borda points of each part")
    .stage("votes", after=["ranks"], does="points per item", released="Laplace")
    .stage("explanation", after=["votes"], does="items by noisy votes")
)

PUBLISHED: dict[str, Stages] = {
    "plain/PDP": PLAIN_PDP,
    "plain/PDP with rug": PLAIN_PDP_WITH_RUG,
    "plain/ALE": PLAIN_ALE,
    "plain/PFI": PLAIN_PFI,
    "published/PDP": PDP,
    "published/PDP code": PDP_CODE,
    "published/ALE": ALE,
    "published/categorical ALE code": ALE_CATEGORICAL_CODE,
    "published/PFI": PFI,
    "published/generic plot": GENERIC_PLOT,
    "published/generic ranking": GENERIC_RANKING,
}
