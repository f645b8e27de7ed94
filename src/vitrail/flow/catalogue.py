"""The graphs of our explainers and of "Tailoring DP to Any Explainer": what each computes, and which stages it releases.

Data only: no explainer is imported. A class names its graph in ``__vitrail_flow__``, or is found here by its own name;
``Class/variant`` where a class has several ways. Stages are those that matter for privacy: what runs between two releases
and reads neither rows nor anything public is one stage. tests/flow/test_catalogue.py checks that the released ones separate.

The ``plain`` graphs release nothing: their separators are the paper's "minimal privacy-enabling sets", except for the rows
themselves, which the paper counts as a set and we do not. A curve's rug, which shows where the data lie, is a stage here: it
reads the rows and is part of the picture. Neighbours there are replace-one, so the row count is public. Shares of epsilon
are those of the public code; the printed DP PDP spends all of it on the y values.
"""

from __future__ import annotations

from ..errors import InvalidInput
from .stages import Stages

_OURS = """
LocalLinear = LocalLinear, statistics
  points | public | the points asked about
  model | public | the model, clipped to its declared range
  labels | rows, model | the model's output for each row
  weights | rows, points | how near each row is to each point
  statistics | rows, labels, weights | weighted second moments (A, b) for all points | GramSum
  fit | statistics | project, solve in the ball, bands
  explanation | fit, points, model | contributions per column
LocalLinear/descent = LocalLinear, descent
  points | public | the points asked about
  model | public | the model, clipped to its declared range
  labels | rows, model | the model's output for each row
  weights | rows, points | how near each row is to each point
  first gradient | rows, labels, weights | at zero | BoundedSum
  iterates | first gradient | phi after each step, projected; public lengths
  gradients | rows, labels, weights, iterates | one per step, each at the iterate before it | BoundedSum, T - 1 times
  means | rows, weights | weighted mean, if there is an intercept | BoundedSum
  explanation | iterates, gradients, means, points, model | last iterate, per column
LocalLinear/adaptive = LocalLinear, adaptive
  points | public | the points asked about
  model | public | the model, clipped to its declared range
  labels | rows, model | the model's output for each row
  weights | rows, points | how near each row is to each point
  history | rows | explanations given before | earlier, at their own price
  start | rows, labels, weights, history | the candidate of shortest gradient | Select
  beta | rows, labels, weights, start | the gradient at the start | BoundedSum
  steps | beta, history | number T' and lengths of the steps
  gradients | rows, labels, weights, start, beta, steps | one per step, at the iterate before it | BoundedSum, T' - 1 times
  means | rows, weights | weighted mean, if there is an intercept | BoundedSum
  explanation | gradients, start, beta, steps, history, means, points, model | last iterate, per column; the bill
LocalLinear/history = LocalLinear, history
  points | public | the points asked about
  model | public | the model, clipped to its declared range
  history | rows | explanations given before | earlier, at their own price
  past points | history | labelled by the model, not by rows
  explanation | past points, points, model | fit on past points; costs nothing
LocalLinear/synopsis = LocalLinear, synopsis
  points | public | any point, of anyone, later
  model | public | the model, clipped to its declared range
  cells | public | one cell, or cells by declared columns
  products | rows, model, cells | of each row: 1, x, f, xx, fx, xxx, ...
  moments | products | their sums, one vector | ProductSum
  synopsis | moments | a file; no rows needed any more
  explanation | synopsis, points, model | A(z) and b(z) are linear in the moments; solve
LocalLinear/cells = LocalLinear, cells learned from rows
  points | public | any point, of anyone, later
  model | public | the model, clipped to its declared range
  survey | rows | second moments of the columns | ProductSum
  cells | survey | cut by the columns that explain most of the distance
  moments | rows, model, cells | moments of every cell | ProductSum
  explanation | moments, cells, points, model | a line of the weight per cell; solve
LocalLinear/rows = LocalLinear, private rows
  points | public | any point, of anyone, later
  model | public | asked again, for free
  private rows | rows | a model of the joint distribution | private_rows: three questions
  labelled rows | private rows, model | sampled rows and the model's output
  explanation | labelled rows, points | weighted least squares near each point
Shapley = Shapley
  points | public | the points asked about
  model | public | the model, clipped to its declared range
  chains | rows, points, model | contributions on the way from each row to each point
  norms | chains | histogram of their lengths, on public bins | BoundedSum
  clip | norms | the length that 95 % stay under
  sums | chains, clip | of clipped contributions | BoundedSum
  explanation | sums, clip, points, model | reconciled: values add up to the output
Marginals = marginals
  bins | public | of every column, from the schema
  counts | rows, bins | of all columns, one vector of norm sqrt(d) | BoundedSum
  explanation | counts, bins | shares, means, quantiles
PrivateRows = private rows
  bins | public | of every column, from the schema
  counts | rows, bins | of every bin of every column | BoundedSum
  groups | counts | bins joined until they hold enough
  coarse tables | rows, groups | of all pairs of columns | ProductSum
  links | coarse tables, counts | which columns belong together
  linked tables | rows, groups, links | finer, of linked pairs only | ProductSum
  joint model | counts, coarse tables, linked tables, links | a junction tree, made consistent
  explanation | joint model | sampled rows, as many as wanted
PartialDependence = PartialDependence
  model | public | the model, clipped to its declared range
  fine bins | public | from the schema
  marginals | rows, fine bins | counts of all columns | BoundedSum
  reference | marginals, model | rows drawn from the counts; grids, clips, prior
  predictions | rows, reference, model | each row moved along each grid, clipped
  sums | predictions | all features, one vector | BoundedSum
  explanation | sums, reference, marginals | curves and bands
AccumulatedEffects = AccumulatedEffects
  model | public | the model, clipped to its declared range
  fine bins | public | from the schema
  marginals | rows, fine bins | counts of all columns | BoundedSum
  reference | marginals, model | rows drawn from the counts; bins, prior
  differences | rows, reference, model | f(upper edge) - f(lower edge), in each row's bin
  sizes | differences | a histogram of how large they are | BoundedSum
  clips | sizes, reference | from the histogram, or the reference where noise hides a tail
  sums | differences, clips | all features, one vector | BoundedSum
  explanation | sums, clips, reference, marginals | effects per bin, accumulated, centred; bands
PermutationImportance = PermutationImportance
  model | public | the model and a bounded loss
  fine bins | public | from the schema
  marginals | rows, fine bins | counts of all columns | BoundedSum
  donors | marginals | values drawn from the released counts
  losses | rows, donors, model | of each row, and with each feature replaced by a donor
  sums | losses | all features and the base loss, one vector | BoundedSum
  explanation | sums | differences, ranking, confidence in pairs
Interactions = Interactions
  model | public | the model, clipped to its declared range
  grid | public | of features and of pairs, from the schema
  marginals | rows, grid | counts, as weights of the grid | BoundedSum
  predictions | rows, grid, model | rows with one or two features moved
  sums | predictions | 1-d and 2-d partial dependence, one vector | BoundedSum
  explanation | sums, marginals, grid | Friedman's H, noise variance taken off
ShapDependence = ShapDependence
  model | public | the model, clipped to its declared range
  bins | public | of the feature, from the schema
  marginals | rows, bins | counts of all columns | BoundedSum
  background | marginals | rows drawn from the released counts
  Shapley values | rows, background, model | of each row, clipped
  sums | rows, Shapley values, bins | per bin of the feature | BoundedSum
  explanation | sums, marginals, bins | mean value per bin; bands
AnyCurve = AnyCurve
  explainer | public | any function of rows, approved by the owner; grid and y range
  groups | rows | each row draws its group afresh
  curves | groups, explainer | one per group, on the grid, clipped to the range
  sum | curves | of the groups' curves | GroupedSum
  explanation | sum, explainer | mean curve and band
AnyCurve/retrain = AnyCurve, retrained
  recipe | public | how to train a model; explainer, grid and y range
  groups | rows | each training row draws its group afresh
  group models | groups, recipe | one model per group, trained on it
  curves | groups, group models, recipe | one per group, clipped to the range
  sum | curves | of the groups' curves | GroupedSum
  explanation | sum, recipe | mean curve and band; protects training data
AnyRanking = AnyRanking
  ranker | public | any function of rows, approved by the owner; the items
  groups | rows | each row draws its group afresh
  ranks | groups, ranker | Borda points of one ranking per group
  sum | ranks | of the groups' points | GroupedSum
  explanation | sum | items by noisy points
"""
"""A graph: ``name = title``, then its stages: name | what it reads, or "public" | what it does | mechanism."""

_PUBLISHED = """
plain/PDP = plain PDP
  model | public | the model
  x values | rows | (1) the values that occur
  y values | rows, x values, model | (2) mean prediction at each
  explanation | x values, y values | points of the plot, no rug
plain/PDP with rug = plain PDP with its rug
  model | public | the model
  x values | rows | (1) the values that occur
  y values | rows, x values, model | (2) mean prediction at each
  rug | rows | where the feature's values lie
  explanation | x values, y values, rug | the plot that is shown
plain/ALE = plain ALE
  model | public | the model
  quantiles | rows | edges of the bins
  differences | rows, quantiles, model | summed within each bin
  counts | rows, quantiles | rows per bin
  effects | differences, counts | accumulated
  centred | effects, counts | mean effect taken off
  rug | rows | where the feature's values lie
  explanation | centred, quantiles, rug | the plot that is shown
plain/PFI = plain PFI
  model | public | the model and its loss
  permutation | public | of the row numbers, at random
  permuted rows | rows, permutation | one feature exchanged
  base error | rows, model | of the model
  errors | permuted rows, model | per feature
  importances | base error, errors | differences
  explanation | importances | the ranking
published/PDP = DP PDP, as printed
  model | public | the model, range [lo, hi]
  x values | public | equidistant between given bounds, or given categories
  y values | rows, x values, model | mean predictions | Laplace, 8/9 of epsilon
  rug | rows, x values | histogram | Laplace, 1/9 of epsilon
  explanation | x values, y values, rug | the plot
published/PDP code = DP PDP, as its code runs it
  model | public | the model, range [lo, hi]
  categories | rows | bounds and categories, read off the data
  x values | categories | equidistant between the bounds, or the categories
  y values | rows, x values, model | mean predictions | Laplace, 8/9 of epsilon
  rug | rows, x values | histogram | Laplace, 1/9 of epsilon
  explanation | x values, y values, rug | the plot
published/ALE = DP ALE, as printed
  model | public | the model, range [lo, hi]
  bounds | public | of the feature, given; m bins of n/m rows each
  quantiles | rows, bounds | edges of the bins | approximate quantiles, 4/9 of epsilon
  differences | rows, quantiles, model | summed within each bin | Laplace, 4/9 of epsilon
  effects | differences, bounds | divided by n/m, accumulated, centred
  rug | rows, bounds | histogram | Laplace, 1/9 of epsilon
  explanation | effects, quantiles, rug | the plot
published/categorical ALE code = DP ALE of a categorical feature, as its code runs it
  model | public | the model, range [lo, hi]
  categories | rows | those that occur in the data
  differences | rows, categories, model | summed per category | Laplace, 8/9 of epsilon
  counts | rows, categories | rows per category | Laplace(1/(epsilon/9))
  effects | differences, counts | divided, accumulated, centred
  rug | rows, categories | the counts, a second time | Laplace(1/(epsilon/9))
  explanation | effects, categories, rug | the plot
published/PFI = DP PFI, as printed
  model | public | the model, range [lo, hi]; squared error
  permutation | public | of the row numbers, at random
  permuted rows | rows, permutation | one feature exchanged
  errors | permuted rows, model | per feature | Laplace, epsilon/M each
  explanation | errors | the ranking; the base error cancels
published/generic plot = generic DP plot, as printed
  x values | public | equidistant, or given categories
  explainer | public | any, with its model
  parts | rows | l equal parts
  curves | parts, explainer, x values | one per part, interpolated, clipped
  mean | curves | of the curves | Laplace, 8/9 of epsilon
  rug | rows, x values | histogram | Laplace, 1/9 of epsilon
  explanation | mean, x values, rug | the plot
published/generic ranking = generic DP rank aggregation, as printed
  explainer | public | any ranking, with its model; M items
  parts | rows | l equal parts
  ranks | parts, explainer | Borda points of each part
  votes | ranks | points per item | Laplace
  explanation | votes | items by noisy votes
"""


def _graphs(table: str) -> dict[str, Stages]:
    """The stages of every graph in a table, by name."""
    graphs: dict[str, Stages] = {}
    for line in table.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 1:
            key, _, title = line.partition(" = ")
            graphs[key] = Stages(title)
            continue
        name, reads, does, released = (*cells, "")[:4]
        public = reads == "public"
        after = () if public else reads.split(", ")
        graphs[key] = graphs[key].stage(name, after=after, does=does, public=public, released=released)
    return graphs


OURS = _graphs(_OURS)
CATALOGUE = {**OURS, **_graphs(_PUBLISHED)}

DECLARATION = "__vitrail_flow__"
OUR_PACKAGE = __name__.split(".")[0]


def names() -> tuple[str, ...]:
    """The names in the catalogue.

    Examples
    --------
    >>> import vitrail as vt
    >>> [name for name in vt.flow.names() if name.startswith("Accumulated")]
    ['AccumulatedEffects']
    """
    return tuple(CATALOGUE)


def of(explainer: object, variant: str | None = None) -> Stages:
    """The stages of an explainer, with the released ones marked.

    Parameters
    ----------
    explainer : class, instance, function or str
        What declares ``__vitrail_flow__``: stages, a name in the catalogue, or a function without arguments that returns
        either. One of ours without it is looked up by its own name; a text is a name in the catalogue.
    variant : str, optional
        The way it is used, where there are several: ``of(vt.LocalLinear, "descent")``.

    Returns
    -------
    Stages

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.flow.of(vt.LocalLinear).released
    ('statistics',)
    >>> vt.flow.of("AccumulatedEffects").minimal()
    ('marginals', 'sizes', 'sums')
    """
    declared = explainer if isinstance(explainer, str) else _declared(explainer)
    if isinstance(declared, Stages):
        if variant is not None:
            raise InvalidInput(f"variant is {variant!r}, but these stages have no variants; leave it away")
        return declared
    name = declared if variant is None else f"{declared}/{variant}"
    if name not in CATALOGUE:
        raise InvalidInput(f"there are no stages for {name!r}; known are {', '.join(map(repr, CATALOGUE))}")
    return CATALOGUE[name]


def _declared(explainer: object) -> Stages | str:
    """Stages, or the name of stages in the catalogue."""
    declared = getattr(explainer, DECLARATION, None)
    if callable(declared):
        declared = declared()
    if isinstance(declared, Stages | str):
        return declared
    holder = explainer if hasattr(explainer, "__name__") else type(explainer)
    name = str(getattr(holder, "__name__", ""))
    if declared is not None:
        raise InvalidInput(
            f"{name}.{DECLARATION} is a {type(declared).__name__}; it must be vitrail.flow.Stages, a name in the catalogue, "
            "or a function that returns one of them"
        )
    # A stranger's class is not what one of ours with that name is.
    if str(getattr(holder, "__module__", "")).split(".")[0] == OUR_PACKAGE:
        for known in (name, name.title().replace("_", "")):  # private_rows is PrivateRows
            if known in CATALOGUE:
                return known
    raise InvalidInput(
        f"{name} publishes no stages; give it a class attribute {DECLARATION} = vitrail.flow.Stages(...), or ask for one of "
        f"{', '.join(map(repr, CATALOGUE))}"
    )
