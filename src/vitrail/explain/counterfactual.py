"""Counterfactuals from a private picture of a model's classes: pay once, then explain anyone, free.

The recipe asks for a code of the rows (none, moments, or the steps of a network's training), for the classes in that code,
and, where noise leaves something to see, for private rows. Everything after that is post-processing (``solve/
counterfactual``). x = features / scale, cut to length 1, with a public scale: sqrt(columns) holds every row, because each
column has features of length at most 1; a smaller one cuts long rows and has less noise on the others.

*Moments.* u = (1, x) has |u|^2 <= 2, so u u^T has norm at most 2: a :class:`GramSum` with l2_bound 2 is mu-GDP (4 under
replace-one).

*Network.* First the sum of z = scale x, of norm at most ``scale``. Then, in each step, a row's gradients (z, 1) e^T and
(h, 1) d^T: outer products, so their norm sqrt(|(z, 1)|^2 |e|^2 + |(h, 1)|^2 |d|^2) is known without forming them, and a row
beyond ``clip`` is scaled down to it. A :class:`ProductSum` with l2_bound ``clip`` does that in integers (2 clip under
replace-one). Weights are functions of earlier releases, so asking in turn is adaptive composition: p passes with noise
sigma cost mu = sqrt(p) clip/sigma. Steps on Poisson samples of rate q (DP-SGD) would be quicker and no less noisy for as
many passes: 1/q of them, of mu about q/s each (Dong, Roth & Su 2022), have together the noise s/sqrt(q) of one whole pass
at the same price, sqrt(q)/s.

*Classes.* A row of class s contributes one-hot(s) x (code, 1) and, where they are not too many, one-hot(s) x one-hot(bin)
for each of d columns. With |code| <= 1 the first block has norm at most sqrt 2; the second has d ones, norm sqrt d. They
are weighted by w1 and w2 with 2 w1^2 + d w2^2 = 1, so a row's norm is at most 1. Replace-one: two rows of one class have
codes at most 2 apart and counts that cancel, and differ in at most two bins per column, sqrt(2 d); two rows of different
classes have other coordinates, sqrt(2 + 2) = 2 and sqrt(2 d). Together at most sqrt(4 w1^2 + 2 d w2^2) = sqrt 2. A row
without a class counts zero, which is at most 1 from any other. The class is that of the public model's output for the row,
or its label.

Tests: tests/explain/counterfactual/test_counterfactual_bounds.py, test_counterfactual_network.py,
tests/audit/test_counterfactual_audit.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Literal, get_args

import numpy as np

from .._checks import choice, positive
from .._types import Floats, Indices
from ..accounting import JsonValue
from ..accounting.releases import Release
from ..errors import InvalidInput
from ..model import Model
from ..results.class_picture import By, ClassPicture, block_weights
from ..schema.bins import Bins
from ..solve.counterfactual import codes
from ..solve.counterfactual.classes import Classes
from ..solve.counterfactual.codes import TRAINING_STEPS, AnyCode, IdentityCode, Layer, NetworkCode, code_of, first_code
from ..solve.counterfactual.fitted import FittedCounterfactual
from ..solve.rows.histograms import fine_bins
from ..vault import Block, BoundedSum, GramSum, PrivateData, ProductSum
from .private_rows import MOST_COLUMNS, private_rows_recipe
from .recipe import Ask, Conversation, Given, GlobalExplainer, Recipe, Terms, cost_of, key_of, scaled
from .sampled import all_rows

Latent = Literal["auto", "none", "linear", "sigmoid", "network"]

VERSION = 2
SHARES = {"moments": 0.15, "network": 0.25, "classes": 0.25, "rows": 0.60}
"""Of mu squared; what is not asked for leaves its share to the others."""
MEAN_SHARE = 0.1
"""Of the network's price, for the mean row."""
REHEARSED_STEPS = 2
"""Of a network's training, before the first charge: all steps are alike."""
CLIP_SHARE = 0.5
"""Clip of a row's gradient over ``scale``."""
MOST_MOMENTS = 1_500
"""Features up to which moments are released: their number is squared."""
NO_CODE_BELOW = 16
"""Features up to which ``latent="auto"`` needs no code."""
CLASS_BINS = 20
MOST_CLASS_BINS = 20_000
ROWS_FROM = 100.0
"""Value of n_rows_public * mu from which ``rows="auto"`` pays for private rows."""
HAIR = 1 + 1e-9
"""By how much bounds exceed what a row contributes, so that rounding clips nobody."""


# --- what a row contributes ----------------------------------------------------------------------------------------------


def shortened(features: Floats, scale: float) -> Floats:
    """Rows x = features / scale, cut to length 1; elementwise and along rows, so that a row's bits are its own."""
    x = features / scale
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    return np.asarray(x / np.maximum(norms, 1.0)[:, None])


def moments_question(features: int, scale: float) -> GramSum:
    """The count, the first and the second moments of x."""

    def u(block: Block) -> Floats:
        x = shortened(block.features, scale)
        return np.concatenate([np.ones((len(x), 1)), x], axis=1)

    return GramSum(
        u,
        size=features + 1,
        l2_bound=2.0 * HAIR,
        row_norm=math.sqrt(2.0) * HAIR,
        key=_key("moments", scale),  # about no model: other models at the same price use the same answer
        label="counterfactuals: moments",
    )


def _grid_rows(scale: float) -> Callable[[Block], Floats]:
    """z of a block: features cut to length ``scale``, on the grid (rounded down: no row gets longer)."""
    return lambda block: np.asarray(np.floor(shortened(block.features, scale) * scale * codes.ROW_CELLS) / codes.ROW_CELLS)


def mean_question(features: int, scale: float) -> BoundedSum:
    """The sum of all rows z."""
    key, label = _key("network-mean", scale), "counterfactuals: mean row"
    return BoundedSum(_grid_rows(scale), size=features, l2_bound=scale * HAIR, key=key, label=label)


def step_question(code: NetworkCode, step: int, before: Release | None = None) -> ProductSum:
    """The clipped gradients of all rows at these weights, summed; ``before`` is the release of the step before."""
    z, clip = _grid_rows(code.scale), CLIP_SHARE * code.scale
    features, units = code.hidden.shape[0] - 1, code.size
    # Named by the release that led to the weights, not by the weights: their last bits are another BLAS's on resuming.
    history = None if before is None else hashlib.sha256(before.value.tobytes()).hexdigest()
    return ProductSum(
        lambda block: code.gradients(z(block)),
        lefts=(features + 1, units + 1),
        rights=(units, features),
        # (z, 1) and (h, 1) have norm 1 at least: e or d longer than clip would be scaled down to it in any case.
        left_bounds=(math.sqrt(code.scale**2 + 1) * HAIR, math.sqrt(units + 1) * HAIR),
        right_bounds=(clip, clip),
        l2_bound=clip,
        key=None if history is None else _key("network-step", code.scale, step, units, history),
        label=f"counterfactuals: network, step {step + 1}",
    )


def training(
    terms: Terms, features: int, scale: float, n_steps: int = TRAINING_STEPS, units: int = codes.UNITS
) -> Recipe[tuple[NetworkCode, list[Release]]]:
    """Train a network: the mean row, then one question a step."""
    n, releases = terms.n_rows_public, [(yield Ask(mean_question(features, scale), MEAN_SHARE))]
    code = first_code(np.clip(releases[0].value / n, 0.0, 1.0), scale, units)
    hidden, output = Layer(code.hidden), Layer(code.output)
    for step in range(n_steps):
        release = yield Ask(step_question(code, step, releases[-1]), (1 - MEAN_SHARE) / n_steps)
        hidden, output = (layer.after(release.parts[i] / n, step, n_steps) for i, layer in (("0", hidden), ("1", output)))
        code = NetworkCode(hidden.weights, output.weights, scale)
        releases.append(release)
    return code, releases


@dataclass(frozen=True, eq=False)
class ClassSums:
    """What a row contributes to the question about the classes, as a function of a block.

    Attributes
    ----------
    classes : callable
        The number of the class of each row of a block; -1 for none.
    n_classes : int
        How many classes.
    code : Code, IdentityCode or NetworkCode
        What encodes a row.
    scale : float
        See the module.
    bins : tuple of Bins
        Of the columns that are counted by class.
    """

    classes: Callable[[Block], Indices]
    n_classes: int
    code: AnyCode
    scale: float
    bins: tuple[Bins, ...]

    @property
    def width(self) -> int:
        """How many numbers a class has: its code, its count, its bins."""
        return self.code.size + 1 + sum(map(len, self.bins))

    def __call__(self, block: Block) -> Floats:
        """(rows, classes x width), weighted; NaN for a row without a class."""
        weights, rows, size = block_weights(len(self.bins)), np.arange(len(block)), self.code.size
        own = np.zeros((len(block), self.width))
        own[:, :size] = self.code.encode(shortened(block.features, self.scale)) * weights.codes
        own[:, size] = weights.codes
        start = size + 1
        for column in self.bins:
            own[rows, start + column.index(block.column(column.name))] = weights.counts
            start += len(column)
        number = self.classes(block)
        by_class = np.zeros((len(block), self.n_classes, self.width))
        by_class[rows, np.maximum(number, 0)] = own
        by_class[number < 0] = np.nan
        return by_class.reshape(len(block), -1)

    def question(self) -> BoundedSum:
        """The sum to ask for."""
        label, apart = f"counterfactuals: prototypes of {self.n_classes} classes", math.sqrt(2.0) * HAIR
        return BoundedSum(self, self.n_classes * self.width, l2_bound=HAIR, replace_bound=apart, label=label)


def _key(kind: str, *facts: JsonValue) -> str:
    return key_of(f"counterfactual-{kind}", VERSION, facts=list(facts))


# --- the explainer -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Counterfactual(GlobalExplainer[ClassPicture]):
    """What would have changed the model's answer: private counterfactuals for any number of people, paid once.

    ``fit(epsilon=...)`` buys the picture of the classes; what it returns explains people, free. Calling it with a price
    buys the bare picture; ``quote`` says beforehand what a price would buy.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget. Columns declared ``change="never"``, ``"up"`` or ``"down"`` keep to it, and
        answers keep the schema's ``rules``.
    model : Model or list of Model
        One output with two sides, or one per class: ``[vt.Model(clf, output=k) for k in classes]``.
    threshold : float
        Of a single output: at least this is class 1.
    by : {"predictions", "labels"}
        Whose prototypes: of the classes that the model predicts, or of the target column's levels.
    latent : {"auto", "none", "linear", "sigmoid", "network"}
        The code in which prototypes are averaged: none, private PCA, or the paper's autoencoder with Taylor sigmoids, both
        trained on released moments; or a neural network of one hidden layer, trained on noisy gradients in eighty passes
        over the rows (for pictures: slower, and better than moments while epsilon is small).
    rows : "auto" or bool
        Whether to pay for private rows too, to look for answers near rows that look like the data's.
    clip : float, optional
        Bound on the length of an encoded row; longer ones are cut to it. sqrt(columns), which cuts nobody, if not given.
        Rows of pixels are far shorter than that, and noise is proportional to it.
    sampling_rate : float
        1: all rows are looked at.
    key : str, optional
        A name for models that are bare functions: fitting again then replays the stored releases, free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"income": vt.Numeric(0, 100), "age": vt.Numeric(18, 90, integer=True, change="up")})
    >>> generator = np.random.default_rng(0)
    >>> rows = {"income": generator.uniform(0, 100, 5000), "age": generator.integers(18, 90, 5000)}
    >>> data = vt.PrivateData(rows, schema, name="loans", n_rows_public=5000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: (x[:, 0] > 0.6).astype(float), range=(0, 1), name="bank")
    >>> fitted = vt.Counterfactual(data, model).fit(epsilon=0.5)
    >>> out = fitted({"income": 40, "age": 30}, desired_class=1)
    >>> out.validity.tolist(), [column for column, before, after in out.changes[0][0]]
    ([[True]], ['income'])
    >>> fitted({"income": 40, "age": 30}, features_to_vary=["age"]).messages[0]  # nothing but income counts
    'No permitted change was found that leads bank to class 1.'
    >>> round(data.budget.spent_epsilon, 2)
    0.5
    """

    data: PrivateData
    model: Model | Sequence[Model]
    _: KW_ONLY
    threshold: float = 0.5
    by: By = "predictions"
    latent: Latent = "auto"
    rows: bool | Literal["auto"] = "auto"
    clip: float | None = None
    sampling_rate: float = 1.0
    key: str | None = None

    def __post_init__(self) -> None:
        self.check_inputs()
        why = "what a sample adds to moments and prototypes of the classes is not released; vt.release(sampling_rate=) seeks"
        all_rows(self.sampling_rate, "Counterfactual", f"{why} counterfactuals on private rows of a sample")
        if not isinstance(self.rows, bool) and self.rows != "auto":
            raise InvalidInput(f"rows is {self.rows!r}; choose True, False or 'auto'")
        self._schema = self.data.feature_schema
        n_columns = self._schema.n_columns
        self._can_have_rows = 2 <= n_columns <= MOST_COLUMNS
        if self.rows is True and not self._can_have_rows:
            raise InvalidInput(f"rows is True, but private rows have 2 to {MOST_COLUMNS} columns, not {n_columns}")
        self._classes = Classes.of(self.model, self.threshold)
        for class_model in self._classes.models:
            class_model.check(self._schema)
        self.by, self._levels = choice("by", self.by, get_args(By)), None
        if self.by == "labels":
            if (target := self.data.target) is None:
                raise InvalidInput("by='labels' needs data with a target=; use by='predictions', the model's classes")
            self._levels = self._classes.levels_of(target, self.data.schema[target])
        self.latent = _latent(self.latent, self._schema.n_features)
        self._scale = min(math.inf if self.clip is None else positive("clip", self.clip), math.sqrt(n_columns))
        bins = tuple(fine_bins(name, column, CLASS_BINS) for name, column in self._schema.items())
        self._bins = bins if len(self._classes) * sum(map(len, bins)) <= MOST_CLASS_BINS else ()

    def fit(self, *, epsilon: Given = None, mu: Given = None) -> FittedCounterfactual:
        """Pay for the picture of the classes; what is returned explains any number of people, free.

        Fitting again at the same price replays the stored releases, free (models that are bare functions need ``key=``).

        Raises
        ------
        BudgetExceeded
            If the account or the analyst's cap cannot pay for all of it. Nothing was charged.
        """
        return FittedCounterfactual(self(epsilon=epsilon, mu=mu), self.model)

    def conversation(self) -> Conversation[ClassPicture]:
        """A code of the rows, the classes in it, private rows."""
        models: list[JsonValue] = [model.identity(self._schema, self.key) for model in self._classes.models]
        # Labels say the class without the model, so any model has the same picture of them.
        classes = models if self._levels is None else self._levels.tolist()
        named: dict[str, JsonValue] = {"scale": self._scale, "threshold": self._classes.threshold, "key": self.key}
        identity = {
            "kind": "counterfactual",
            "version": VERSION,
            "classes": classes,
            **self.options_but("clip", "sampling_rate"),
            **named,
        }
        known = self._levels is not None or None not in models
        label = f"counterfactuals of {self._classes.name}"
        few_steps = partial(self._recipe, n_steps=REHEARSED_STEPS)
        return Conversation(self.data, self._recipe, label, identity if known else None, self._classes.models, few_steps)

    def class_sums(self, code: AnyCode) -> ClassSums:
        """What rows contribute to the question about the classes, in a code."""
        classes, levels = self._classes, self._levels

        def numbers(block: Block) -> Indices:
            if levels is not None:
                return levels[block.target.astype(np.intp)]
            return classes.index(np.stack([block.predictions(model) for model in classes.models], axis=1))

        return ClassSums(numbers, len(classes), code, self._scale, self._bins)

    def _shares(self, terms: Terms) -> dict[str, float]:
        """The share of each question, of those that are asked: a function of public numbers."""
        with_rows = self.rows is True or (self.rows == "auto" and terms.n_rows_public * terms.mu >= ROWS_FROM)
        of_code = {"none": [], "network": ["network"]}.get(self.latent, ["moments"])
        asked = [*of_code, "classes", *(["rows"] if with_rows and self._can_have_rows else [])]
        return {name: SHARES[name] / sum(SHARES[each] for each in asked) for name in asked}

    def _recipe(self, terms: Terms, n_steps: int = TRAINING_STEPS) -> Recipe[ClassPicture]:
        shares, features = self._shares(terms), self._schema.n_features
        code: AnyCode = IdentityCode(features)
        releases: list[Release] = []
        if share := shares.get("network"):
            code, releases = yield from scaled(training(terms.scaled(share), features, self._scale, n_steps), share)
        if share := shares.get("moments"):
            release = yield Ask(moments_question(features, self._scale), share)
            code = code_of(self.latent, release.value, release.sigma or 0.0, terms.n_rows_public)
            releases = [release]
        sums = self.class_sums(code)
        release = yield Ask(sums.question(), shares["classes"])
        releases.append(release)
        rows = None
        if share := shares.get("rows"):
            rows = yield from scaled(private_rows_recipe(terms.scaled(share), columns=self._schema.names), share)
        return ClassPicture(
            dataset=terms.dataset,
            schema=self._schema,
            labels=self._classes.labels,
            threshold=self._classes.threshold,
            by=self.by,
            models=tuple(model.digest() for model in self._classes.models),
            scale=self._scale,
            code=code,
            sums=release.value.reshape(len(self._classes), sums.width),
            sums_sigma=release.sigma or 0.0,
            bins=self._bins,
            rows=rows,
            n_rows_public=terms.n_rows_public,
            cost=cost_of(releases) if rows is None else cost_of(releases) + rows.cost,
            guarantee=terms.promise(*releases, *(() if rows is None else (rows,))),
        )


def _latent(latent: Latent, features: int) -> Latent:
    """The kind of code that is used, or an error where there are too many features for it."""
    choice("latent", latent, get_args(Latent))
    if latent == "auto":
        return "linear" if NO_CODE_BELOW < features <= MOST_MOMENTS else "none"
    most = {"none": features, "network": codes.MOST_FEATURES}.get(latent, MOST_MOMENTS)
    if features > most:
        raise InvalidInput(
            f"latent is {latent!r}, and the rows have {features} features; it takes at most {most}, use latent='none'"
        )
    return latent
