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
2 off it), so solving and bands are those of ``solve.linear.statistics``. The target 2 (p_k - t) is f_k less a constant,
which moves the intercept and nothing else.

Test: tests/test_classes.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial

import numpy as np

from ..._types import Floats
from ...accounting import Cost, JsonValue
from ...accounting.guarantee import Guarantee
from ...errors import InvalidInput, ModelError
from ...model import Model
from ...results import Attribution
from ...schema import Level, View
from ...solve.linear.problem import LocalProblem
from ...solve.linear.statistics import LocalStatistics, scales_of
from ...solve.linear.weights import Weight
from ...vault import Block, PrivateData, ProductSum
from ..recipe import Ask, Conversation, LocalExplainer, Recipe, Terms, points_identity, sigma_of
from ..sampled import all_rows
from .descent import weighted
from .local_linear import LocalLinear, check_size, explained
from .options import Statistics

VERSION = 2
SUM_TOLERANCE = 1e-6
"""By how much probabilities of public probe rows may add up to more than 1, by rounding."""
NOTE = "One release for {count} classes together; the guarantee and the cost are for all of them."


class ClassAttributions(dict[Level, Attribution]):
    """The explanation of every class; promise and price are for all of them together."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise."""
        return next(iter(self.values())).guarantee

    @property
    def cost(self) -> Cost:
        """The price."""
        return next(iter(self.values())).cost

    @property
    def half_width(self) -> float | None:
        """The median over classes of the half-width of the bands; None without bands."""
        widths = [explanation.half_width for explanation in self.values()]
        return float(np.median([width for width in widths if width is not None])) if None not in widths else None


@dataclass(eq=False)
class LocalClasses(LocalExplainer[ClassAttributions]):
    """Several classes of one model explained at public points, from one release.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    models : list of Model
        The classes: probabilities of one and the same model, such as ``[vt.Model(forest, output=k) for k in (0, 1, 2)]``.
    method : Statistics, optional
        As for ``LocalLinear``.
    weight, view, sampling_rate, key : optional
        As for ``LocalLinear``.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
    >>> rows = np.random.default_rng(0).uniform(size=(20_000, 2))
    >>> data = vt.PrivateData(rows, schema, name="three", n_rows_public=20_000, budget=vt.Budget(3, 1e-6))
    >>> def thirds(x):
    ...     return np.column_stack([x[:, 0] / 2, x[:, 1] / 2, 1 - x[:, 0] / 2 - x[:, 1] / 2])
    >>> models = [vt.Model(thirds, output=k, range=(0, 1)) for k in range(3)]
    >>> found = vt.LocalClasses(data, models)({"a": 0.9, "b": 0.5}, epsilon=2.0)
    >>> [found[k].top(1)[0].column for k in (0, 2)]
    ['a', 'a']
    >>> bool(found[0].values[0, 0] > 0 > found[2].values[0, 0])
    True
    """

    data: PrivateData
    models: Sequence[Model]
    _: KW_ONLY
    method: Statistics = field(default_factory=Statistics)
    weight: Weight | Callable[[Floats], Floats] | None = None
    view: View | None = None
    sampling_rate: float = 1.0
    key: str | None = None

    def __post_init__(self) -> None:
        all_rows(self.sampling_rate, "LocalClasses", "explain one class of a sample with LocalLinear(sampling_rate=)")
        self._alone = [
            LocalLinear(self.data, model, method=self.method, weight=self.weight, view=self.view, key=self.key)
            for model in _checked_models(self.models)
        ]
        self._problems = [local.problem for local in self._alone]

    def conversation(self, points: object) -> Conversation[ClassAttributions]:
        """One question, for the whole price."""
        for local in self._alone:
            raw, _ = local.read_points(points)  # the same for every class; each model is tried at the points
        _check_sums(self._problems)
        check_size(self._problems[0], len(raw))
        known = [problem.identity(self.key) for problem in self._problems]
        models: list[JsonValue] = [identity["model"] for identity in known if identity is not None]
        identity = {"kind": "local classes", "version": VERSION, **self._problems[0].facts(), "models": models}
        identity["points"] = points_identity(raw)
        label = f"local explanations of {len(raw)} points, {len(known)} classes"
        recipe, few = (partial(self._recipe, raw[:n]) for n in (len(raw), 2))
        return Conversation(self.data, recipe, label, identity if all(known) else None, tuple(self.models), few)

    def _recipe(self, raw: Floats, terms: Terms) -> Recipe[ClassAttributions]:
        release = yield Ask(classes_question(self._problems, raw), 1.0)
        shift, bound = shift_and_bound(len(self._problems))
        scales = scales_of(self._problems[0], label_bound=bound)
        sums = np.stack([release.parts[str(point)] for point in range(len(raw))])
        width = sums.shape[1]
        gram = (sums[:, :, :width] + sums[:, :, :width].transpose(0, 2, 1)) / 2
        note = NOTE.format(count=len(self._problems))
        classes = ClassAttributions()
        for rank, problem in enumerate(self._problems):
            cross = sums[:, :, width + rank]
            statistics = LocalStatistics.of_sums(problem, raw, gram, cross, sigma_of(release), terms.n_rows_public, scales)
            explanation = explained(problem, raw, statistics, release, self.method, shift=shift)
            name = problem.model.output
            classes[rank if name is None else name] = replace(explanation, notes=(*explanation.notes, note))
        return classes


def shift_and_bound(count: int) -> tuple[float, float]:
    """The shift of targets f_k - shift, f_k = 2 p_k - 1, of so many classes that makes the bound on their length smallest.

    Examples
    --------
    >>> [round(shift_and_bound(count)[1] ** 2, 3) for count in (1, 2, 3, 100)]
    [1.0, 2.0, 2.667, 3.96]
    """
    t = 1 / max(count, 2)
    return 2 * t - 1, 2 * math.sqrt(1 - 2 * t + count * t * t)


def classes_question(problems: Sequence[LocalProblem], raw_points: Floats) -> ProductSum:
    """The one question behind :class:`LocalClasses`.

    Parameters
    ----------
    problems : list of LocalProblem
        One per class, alike but for the model; with an intercept and soft labels.
    raw_points : array (points, columns of a row)
        As ``schema.read_points`` returns them.
    """
    problem, count = problems[0], len(problems)
    shift, bound = shift_and_bound(count)
    scales = scales_of(problem, label_bound=bound)
    kappa, eta = scales.intercept, scales.label
    points = problem.encode(raw_points)

    def rows(block: Block) -> tuple[Floats, ...]:
        x = problem.x(block.features)
        f = np.stack([each.label(block.predictions(each.model)) for each in problems], axis=1)
        y = eta * (f - shift)
        made: list[Floats] = []
        for point in points:
            d, alpha = weighted(problem, x, point)
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
        right_bounds=(math.hypot(longest, eta * bound) * (1 + 1e-9),) * queries,
        l2_bound=math.sqrt(queries) * scales.l2_bound,
    )


def _checked_models(models: Sequence[Model]) -> list[Model]:
    if isinstance(models, Model) or not isinstance(models, Sequence) or not models:
        raise InvalidInput("models must be a list of vt.Model, one per class; for a single class use vt.LocalLinear")
    for model in models:
        if not isinstance(model, Model):
            raise InvalidInput(f"models holds {type(model).__name__}; wrap each class: vt.Model(your_model, output=...)")
        if (model.lo, model.hi) != (0.0, 1.0):
            raise ModelError(f"{model!r} is no probability; LocalClasses needs outputs in (0, 1) that add up to at most 1")
    outputs = [model.output for model in models]
    if len(models) > 1 and len(set(outputs)) < len(outputs):
        raise InvalidInput(f"models explain the outputs {outputs}; every class must be another one")
    return list(models)


def _check_sums(problems: Sequence[LocalProblem]) -> None:
    """Refuse what is plainly no set of probabilities, on public rows."""
    schema = problems[0].row_schema
    raw = schema.probe_rows(256)
    total = np.sum([problem.model.predict_points(schema, raw) for problem in problems], axis=0)
    if total.max() > 1 + SUM_TOLERANCE:
        raise ModelError(
            f"the outputs of the models add up to {total.max():g} on a public probe row; classes exclude each other, so "
            "their probabilities must add up to at most 1"
        )
