"""Several classes of one model explained together, from one release.

Around a point z every class needs the same matrix A = sum alpha u u^T, u = (kappa, x - z), and a vector b_k = sum alpha y_k
u of its own. Asked one by one, K classes pay for A K times. Together a row contributes alpha u (u, y_1, ..., y_K)^T, one
outer product.

*The bound.* Its norm is alpha |u| sqrt(|u|^2 + |y|^2). Probabilities of different classes are not negative and add up to at
most 1, and y_k = 2 eta (p_k - t), so |y|^2 is a convex function of p, largest at a corner: p = 0 gives 4 eta^2 K t^2, and p
= e_k gives 4 eta^2 (1 - 2t + K t^2), the larger one for t <= 1/2. t = 1/max(K, 2) makes it smallest: |y| <= eta B with B^2 =
4 (1 - 2t + K t^2), that is 1 for one class, 2 for two, 8/3 for three, and below 4 for any number of them. The vault clips
what exceeds the bounds, so a model whose outputs are no probabilities costs accuracy, never privacy.

*Cost*: (bound/sigma)^2, once. *Neighbours*: as the dataset declares. *Noise*: the release has independent noise of std sigma
on every entry; the symmetric part of its square block then has the law of a Gram sum (std sigma on the diagonal, sigma/sqrt
2 off it), so solving and bands are those of ``statistics``. The target 2 (p_k - t) is f_k less a constant, which moves the
intercept and nothing else.

Test: tests/test_classes.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidInput, ModelError
from ...guarantee import question_mu
from ...model import Model
from ...results import Attribution
from ...schema import Level, View
from ...solve.linear.bands import DRAWS
from ...solve.linear.weights import Weight
from .batch import check_options, explained
from .gradients import digest_of, problem_identity
from .local import LocalLinear
from .problem import Floats, LocalProblem
from .statistics import NAMED_WEIGHTS, LocalStatistics, Scales, scales_of

if TYPE_CHECKING:
    from ...vault import Block, PrivateData, ProductSum

VERSION = 1
SUM_TOLERANCE = 1e-6
"""By how much probabilities of public probe rows may add up to more than 1, by rounding."""
NOTE = "One release for {count} classes together; the guarantee and the cost are for all of them."


def explain_classes(
    data: PrivateData,
    models: Sequence[Model],
    points: object,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    weight: Weight | Callable[[Floats], Floats] | None = None,
    view: View | None = None,
    radius: float | None = None,
    max_features: int | None = None,
    bands: bool = True,
    draws: int = DRAWS,
    key: str | None = None,
) -> dict[Level, Attribution]:
    """Explain several classes of a model at public points, all of them together for ``epsilon``.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    models : list of Model
        The classes: probabilities of one and the same model, such as ``[vt.Model(forest, output=k) for k in (0, 1, 2)]``.
    points : object
        What ``LocalLinear`` takes.
    epsilon, mu : float
        The price of all points and classes together.
    weight, view : optional
        As for ``LocalLinear``.
    radius, max_features, bands, draws
        As for ``LocalLinear`` with method ``"statistics"``.
    key : str, optional
        A name for models or weights that are bare functions.

    Returns
    -------
    dict of class to Attribution

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
    >>> rows = np.random.default_rng(0).uniform(size=(20_000, 2))
    >>> data = vt.PrivateData(rows, schema, name="three", n_rows_public=20_000, budget=vt.Budget(3, 1e-6))
    >>> def thirds(x):
    ...     return np.column_stack([x[:, 0] / 2, x[:, 1] / 2, 1 - x[:, 0] / 2 - x[:, 1] / 2])
    >>> models = [vt.Model(thirds, output=k, range=(0, 1)) for k in range(3)]
    >>> found = vt.explain_classes(data, models, {"a": 0.9, "b": 0.5}, epsilon=2.0)
    >>> [found[k].top(1)[0].column for k in (0, 2)]
    ['a', 'a']
    >>> bool(found[0].values[0, 0] > 0 > found[2].values[0, 0])
    True
    """
    first, *others = _checked_models(models)
    explain = LocalLinear(data, first, weight=weight, view=view)
    raw_points = explain.read(points)
    problem = explain.problem
    problems = [problem, *(replace(problem, model=model) for model in others)]
    for model in others:
        LocalLinear(data, model, weight=weight, view=view).read(points)
    check_options(problem, len(raw_points), radius, max_features, draws)
    _check_sums(problems)
    price = question_mu(epsilon, mu, data.delta)
    question = classes_question(problems, raw_points, key=key)
    release = data.ask(question, mu=price)
    assert release.sigma is not None
    labels = Shifted.of(len(problems))
    scales = scales_of(problem, label_bound=labels.bound)
    sums = np.stack([release.parts[str(place)] for place in range(len(raw_points))])
    width = sums.shape[1]
    gram = (sums[:, :, :width] + sums[:, :, :width].transpose(0, 2, 1)) / 2
    found: dict[Level, Attribution] = {}
    for place, one in enumerate(problems):
        statistics = LocalStatistics.of_sums(
            one, raw_points, gram, sums[:, :, width + place], release.sigma, data.n_rows_public, scales
        )
        made = explained(
            one,
            raw_points,
            statistics,
            guarantee=release.guarantee,
            cost=release.cost,
            radius=radius,
            max_features=max_features,
            bands=bands,
            draws=draws,
            shift=labels.shift,
        )
        name = one.model.output
        note = NOTE.format(count=len(problems))
        found[place if name is None else name] = replace(made, notes=(*made.notes, note))
    return found


@dataclass(frozen=True)
class Shifted:
    """Targets f_k - shift of K classes, f_k = 2 p_k - 1, and the bound on their length.

    Examples
    --------
    >>> [round(Shifted.of(count).bound ** 2, 3) for count in (1, 2, 3, 100)]
    [1.0, 2.0, 2.667, 3.96]
    """

    shift: float
    bound: float

    @classmethod
    def of(cls, count: int) -> Shifted:
        """The shift that makes the bound smallest."""
        t = 1 / max(count, 2)
        return cls(2 * t - 1, 2 * math.sqrt(1 - 2 * t + count * t * t))


def classes_question(problems: Sequence[LocalProblem], raw_points: Floats, *, key: str | None = None) -> ProductSum:
    """The one question behind :func:`explain_classes`, for asking, quoting or auditing.

    Parameters
    ----------
    problems : list of LocalProblem
        One per class, alike but for the model; with an intercept and soft labels.
    raw_points : array (points, columns of a row)
        As ``schema.read_points`` returns them.
    key : str, optional
        A name for models and weight where they have no content to be told by.
    """
    from ...vault import ProductSum  # here, so that stored explanations can be read without loading the vault

    problem, count = problems[0], len(problems)
    labels = Shifted.of(count)
    scales = scales_of(problem, label_bound=labels.bound)
    kappa, eta = scales.intercept, scales.label
    points = problem.encode(raw_points)

    def rows(block: Block) -> tuple[Floats, ...]:
        x = problem.x(block)
        y = np.stack([eta * (one.label(block.predictions(one.model)) - labels.shift) for one in problems], axis=1)
        made: list[Floats] = []
        for point in points:
            d = x - point
            alpha = np.clip(problem.weight(np.sqrt(np.einsum("ij,ij->i", d, d))), 0.0, 1.0)
            u = np.concatenate((np.full((len(d), 1), kappa), d), axis=1)
            made += [u * alpha[:, None], np.concatenate((u, y), axis=1)]
        return tuple(made)

    longest = math.sqrt(kappa**2 + problem.largest_distance**2) * (1 + 1e-9)
    queries, size = len(points), points.shape[1] + 1
    return ProductSum(
        rows,
        lefts=(size,) * queries,
        rights=(size + count,) * queries,
        left_bounds=(longest,) * queries,
        right_bounds=(math.hypot(longest, eta * labels.bound) * (1 + 1e-9),) * queries,
        l2_bound=math.sqrt(queries) * scales.l2_bound,
        key=_identity(problems, points, scales, key),
        label=f"local explanations of {queries} point{'s' if queries != 1 else ''}, {count} classes",
    )


def _identity(problems: Sequence[LocalProblem], points: Floats, scales: Scales, key: str | None) -> str | None:
    problem = problems[0]
    models = [one.model_identity(key) for one in problems]
    if None in models or (key is None and problem.weight.name not in NAMED_WEIGHTS):
        return None
    parts = {
        "kind": "local classes",
        "version": VERSION,
        **problem_identity(problem),
        "scales": [scales.intercept, scales.label],
        "models": models,
        "points": digest_of(points),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _checked_models(models: Sequence[Model]) -> list[Model]:
    if isinstance(models, Model) or not isinstance(models, Sequence) or not models:
        raise InvalidInput("models must be a list of vt.Model, one per class; for a single class use vt.LocalLinear")
    for model in models:
        if not isinstance(model, Model):
            raise InvalidInput(f"models holds {type(model).__name__}; wrap each class: vt.Model(your_model, output=...)")
        if (model.lo, model.hi) != (0.0, 1.0):
            raise ModelError(
                f"{model!r} is no probability; explain_classes needs outputs in (0, 1) that add up to at most 1"
            )
    outputs = [model.output for model in models]
    if len(models) > 1 and len(set(outputs)) < len(outputs):
        raise InvalidInput(f"models explain the outputs {outputs}; every class must be another one")
    return list(models)


def _check_sums(problems: Sequence[LocalProblem]) -> None:
    """Refuse what is plainly no set of probabilities, on public rows."""
    schema = problems[0].row_schema
    raw = schema.probe_rows(256)
    total = np.sum([one.model.predict_points(schema, raw) for one in problems], axis=0)
    if total.max() > 1 + SUM_TOLERANCE:
        raise ModelError(
            f"the outputs of the models add up to {total.max():g} on a public probe row; classes exclude each other, so "
            "their probabilities must add up to at most 1"
        )
