"""Counterfactuals from a private picture of the classes: pay once, then explain anyone, free.

``fit`` asks for moments (``moments``), for prototypes and distributions of the classes (``prototypes``) and, where noise
leaves something to see, for private rows (``rows``); each question states its own bound, and the ledger's filter adds them
up to the price that was asked. Everything after that (codes, rows that look like a class, the search) reads releases and the
public model only, so it is post-processing: any number of people, any constraints, on any machine.

The promise is about the rows behind the picture, given the model. What the model itself learned from its training rows is
not covered; a counterfactual tells what the model says, as any query to it does.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...accounting import Cost
from ...errors import InvalidInput
from ...explanation.counterfactuals import Counterfactuals, WhatIf
from ...guarantee import Guarantee, check_neighbours, question_mu
from ...model import Model
from ...schema import FloatArray, Level, Schema
from ..bins import Bins
from ..effects.paying import refuse_what_does_not_fit
from ..rows.cuts import fine_bins
from ..rows.private_rows import MOST_COLUMNS, private_rows
from .classes import OPPOSITE, Classes, Indices
from .gradient import eq18, gradients_of
from .moments import moments_question
from .picture import ClassPicture, code_of
from .pool import NEIGHBOURS, Pool, pool_of
from .prototypes import ClassSums
from .rules import Rules
from .search import Search, find

if TYPE_CHECKING:
    from ...vault import Block, BoundedSum, PrivateData, Quote, Release

LATENTS = ("auto", "none", "linear", "sigmoid")
SHARES = {"moments": Fraction(15, 100), "classes": Fraction(25, 100), "rows": Fraction(60, 100)}
"""Of mu squared; what is not asked for leaves its share to the others."""
MOST_MOMENTS = 1_500
"""Features up to which moments are released: their number is squared."""
NO_CODE_BELOW = 16
"""Features up to which ``latent="auto"`` needs no code."""
CLASS_BINS = 20
MOST_CLASS_BINS = 20_000
ROWS_FROM = 100.0
"""Value of n_rows_public * mu from which ``rows="auto"`` pays for private rows."""
MOST_PEOPLE_AT_ONCE = 256
MOST_ANSWERS = 100


class Counterfactual:
    """What would have changed the model's answer: private counterfactuals for any number of people, paid once.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget. Columns declared ``change="never"``, ``"up"`` or ``"down"`` keep to it.
    model : Model or list of Model
        One output with two sides, or one per class: ``[vt.Model(clf, output=k) for k in classes]``.
    threshold : float
        Of a single output: at least this is class 1.
    by : {"predictions", "labels"}
        Whose prototypes: of the classes that the model predicts, or of the target column's levels.
    latent : {"auto", "none", "linear", "sigmoid"}
        The code in which prototypes are averaged: none, private PCA, or the paper's autoencoder with Taylor sigmoids, both
        trained on released moments.
    rows : "auto" or bool
        Whether to pay for private rows too, to look for answers near rows that look like the data's.
    clip : float, optional
        Bound on the length of an encoded row; longer ones are cut to it. sqrt(columns), which cuts nobody, if not given.
        Rows of pixels are far shorter than that, and noise is proportional to it.
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
    >>> cf = vt.Counterfactual(data, model).fit(epsilon=0.5)
    >>> out = cf({"income": 40, "age": 30}, desired_class=1)
    >>> out.validity.tolist(), [column for column, before, after in out.changes[0][0]]
    ([[True]], ['income'])
    >>> cf({"income": 40, "age": 30}, features_to_vary=["age"]).messages[0]  # nothing but income counts
    'No permitted change was found that leads bank to class 1.'
    >>> round(data.budget.spent_epsilon, 2)
    0.5
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model | Sequence[Model],
        *,
        threshold: float = 0.5,
        by: str = "predictions",
        latent: str = "auto",
        rows: bool | str = "auto",
        clip: float | None = None,
        key: str | None = None,
    ) -> None:
        if not hasattr(data, "feature_schema") or not hasattr(data, "ask"):
            raise InvalidInput(
                f"data is {type(data).__name__}; give vt.PrivateData, or load a stored one: Counterfactual.load"
            )
        if latent not in LATENTS:
            raise InvalidInput(f"latent is {latent!r}; choose one of {', '.join(map(repr, LATENTS))}")
        if by not in ("predictions", "labels"):
            raise InvalidInput(f"by is {by!r}; choose 'predictions' (the model's classes) or 'labels' (the target's)")
        if not isinstance(rows, bool) and rows != "auto":
            raise InvalidInput(f"rows is {rows!r}; choose True, False or 'auto'")
        schema = data.feature_schema
        self._classes = Classes.of(model, threshold)
        for one in self._classes.models:
            one.check(schema)
        self._data: PrivateData | None = data
        self._schema, self._by, self._key = schema, by, key
        self._levels = _label_classes(data, self._classes) if by == "labels" else None
        self._latent = _latent(latent, schema)
        self._rows = rows
        self._scale = _scale(clip, schema)
        self._picture: ClassPicture | None = None
        self._pools: dict[tuple[int, int], Pool] = {}

    def __repr__(self) -> str:
        state = "not fitted" if self._picture is None else f"epsilon={self._picture.guarantee.epsilon:.4g}"
        return f"Counterfactual({self._classes.name}, classes {', '.join(map(repr, self._classes.labels[:6]))}, {state})"

    @property
    def picture(self) -> ClassPicture:
        """What was released."""
        if self._picture is None:
            raise InvalidInput("this Counterfactual was not fitted; pay for it first: .fit(epsilon=...)")
        return self._picture

    @property
    def guarantee(self) -> Guarantee:
        """The promise for everything that it says, ever."""
        return self.picture.guarantee

    @property
    def cost(self) -> Cost:
        """What ``fit`` was charged."""
        return self.picture.cost

    # --- paying ------------------------------------------------------------------------------------------------------

    def fit(self, *, epsilon: float | None = None, mu: float | None = None) -> Counterfactual:
        """Pay for the picture; refused as a whole, before anything is charged, if too little is left.

        Fitting again at the same price replays the stored releases, free (models that are bare functions need ``key=``).
        """
        data = self._asked()
        whole = question_mu(epsilon, mu, data.delta)
        with_rows = self._with_rows(data, whole)
        bins = self._bins()
        asked = [*(("moments",) if self._latent != "none" else ()), "classes", *(("rows",) if with_rows else ())]
        prices = _prices(whole, asked)
        moments_q = moments_question(self._schema, self._scale)
        first = moments_q if self._latent != "none" else self._sums(None, bins)[1]
        refuse_what_does_not_fit(data, first, prices[asked[0]], whole, "This picture of the classes")  # type: ignore[arg-type]

        releases: list[Release] = []
        gram, gram_sigma = None, 0.0
        if self._latent != "none":
            self._rehearse(data, bins, prices["classes"])
            release = data.ask(moments_q, mu=prices["moments"])
            gram, gram_sigma = release.value, release.sigma or 0.0
            releases.append(release)
        code = code_of(self._latent, self._schema, gram, gram_sigma, data.n_rows_public)
        sums, question = self._sums(code, bins)
        release = data.ask(question, mu=prices["classes"])
        releases.append(release)
        cost = sum((one.cost for one in releases), Cost())
        rows = private_rows(data, mu=prices["rows"], columns=self._schema.names) if with_rows else None
        cost = cost if rows is None else cost + rows.cost
        self._pools = {}
        self._picture = ClassPicture(
            dataset=data.name,
            schema=self._schema,
            labels=self._classes.labels,
            latent=self._latent,
            scale=self._scale,
            moments=gram,
            moments_sigma=gram_sigma,
            code=code,
            sums=release.value.reshape(len(self._classes), sums.width),
            sums_sigma=release.sigma or 0.0,
            bins=bins,
            rows=rows,
            n_rows_public=data.n_rows_public,
            cost=cost,
            guarantee=Guarantee.of_mu(cost.mu, data.delta, check_neighbours(data.neighbours)),
            by=self._by,
            models=tuple(one.digest() for one in self._classes.models),
        )
        return self

    def _rehearse(self, data: PrivateData, bins: tuple[Bins, ...], mu: float) -> None:
        """Ask the second question of no rows, before the first is paid: a model that cannot be used is found out here."""
        from ...vault import rehearse

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what there is to warn of is said when the question is asked
            rehearse(
                self._sums(None, bins)[1],
                {name: [] for name in data.schema},
                data.schema,
                mu=mu,
                n_rows_public=data.n_rows_public,
                draws=1,
                target=data.target,
                neighbours=data.neighbours,
            )

    def quote(self, *, epsilon: float | None = None, mu: float | None = None) -> Quote:
        """What ``fit`` would cost, and the noise on the prototypes' sums. Reads no row and charges nothing."""
        data = self._asked()
        whole = question_mu(epsilon, mu, data.delta)
        return data.quote(self._sums(None, self._bins())[1], mu=whole)

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> Quote:
        return self.quote(epsilon=epsilon, mu=mu)

    def _asked(self) -> PrivateData:
        if self._data is None:
            raise InvalidInput("this Counterfactual was loaded from a file and has no data; it needs none: call it")
        return self._data

    def _with_rows(self, data: PrivateData, mu: float) -> bool:
        possible = 2 <= self._schema.n_columns <= MOST_COLUMNS
        if self._rows is True and not possible:
            raise InvalidInput(
                f"rows is True, but private rows have 2 to {MOST_COLUMNS} columns, not {self._schema.n_columns}"
            )
        return possible and (self._rows is True or (self._rows == "auto" and data.n_rows_public * mu >= ROWS_FROM))

    def _bins(self) -> tuple[Bins, ...]:
        """The public bins of every column; none where classes and bins are too many to count."""
        made = tuple(fine_bins(name, column, CLASS_BINS) for name, column in self._schema.items())
        return made if len(self._classes) * sum(map(len, made)) <= MOST_CLASS_BINS else ()

    def _sums(self, code: object, bins: tuple[Bins, ...]) -> tuple[ClassSums, BoundedSum]:
        from .moments import Code, identity_code

        made = code if isinstance(code, Code) else identity_code(self._schema.n_features)
        classes, levels = self._classes, self._levels

        def of(block: Block) -> Indices:
            return classes.of_block(block) if levels is None else levels[block.target.astype(np.intp)]

        sums = ClassSums(of, len(classes), made, self._scale, bins)
        digests = [one.digest() for one in classes.models]
        identity = {
            "by": self._by,
            "models": digests if levels is None else None,
            "threshold": classes.threshold,
            "levels": None if levels is None else levels.tolist(),
            "key": self._key,
        }
        return sums, sums.question(identity, levels is not None or self._key is not None or None not in digests)

    # --- explaining --------------------------------------------------------------------------------------------------

    def __call__(
        self,
        people: object,
        *,
        desired_class: Level = OPPOSITE,
        total_CFs: int = 1,
        features_to_vary: str | Sequence[str] = "all",
        permitted_range: object = None,
        plausibility_weight: float = 1.25,
        seed: int = 0,
    ) -> Counterfactuals:
        """What would have led the model to another class, for each person. Free.

        Parameters
        ----------
        people : object
            Public points: a data frame, a list of dictionaries, one dictionary.
        desired_class : label or "opposite"
            The class to get to; ``"opposite"`` is the other side, or of several classes the model's second choice.
        total_CFs : int
            How many different answers for each.
        features_to_vary : "all" or list of str
            The columns that may change, besides what the schema forbids.
        permitted_range : dict, optional
            Where changed values may lie: ``{"age": (30, 50), "job": ["clerk", "nurse"]}``.
        plausibility_weight : float
            How much nearness to rows of the wanted class counts against nearness to the person: answers of least
            distance + weight x plausibility are sought. 0 gives the nearest answers, often ones that nobody resembles.
        seed : int
            The search's own; it protects nothing and endangers nothing.

        Returns
        -------
        Counterfactuals
            Every answer was scored by the model itself. Who has none has a message.
        """
        picture, schema, classes = self.picture, self._schema, self._classes
        total, seed = _whole("total_CFs", total_CFs, 1, MOST_ANSWERS), _whole("seed", seed, 0, 2**32 - 1)
        if isinstance(plausibility_weight, bool) or not isinstance(plausibility_weight, int | float | np.floating):
            raise InvalidInput(f"plausibility_weight is {plausibility_weight!r}; it must be a number of at least 0")
        if not 0 <= plausibility_weight < math.inf:
            raise InvalidInput(f"plausibility_weight is {plausibility_weight!r}; it must be finite and at least 0")
        rules = Rules.of(schema, features_to_vary, permitted_range)
        queries = schema.read_points(people)
        if not len(queries):
            raise InvalidInput("there is nobody to explain; give at least one point")
        outputs = classes.outputs(schema, queries)
        current = classes.index(outputs)
        if (current < 0).any():
            raise InvalidInput(f"{classes.name} returns no finite number at point {int(np.argmin(current))}")
        target = classes.wanted(desired_class, current, outputs)
        pools = {int(place): self._pool(int(place), seed) for place in np.unique(target[target != current])}
        search = Search(schema, classes, rules, pools, float(plausibility_weight), seed)
        todo = np.flatnonzero(target != current)
        found: dict[int, FloatArray] = {}
        for start in range(0, len(todo), MOST_PEOPLE_AT_ONCE):
            part = todo[start : start + MOST_PEOPLE_AT_ONCE]
            extra = eq18(gradients_of(classes, schema), picture, queries[part], target[part])
            answers = find(search, queries[part], target[part], total, extra)
            found |= dict(zip(part.tolist(), answers, strict=True))
        return self._told(search, queries, outputs, current, target, found, total)

    def _pool(self, place: int, seed: int) -> Pool:
        if (place, seed) not in self._pools:
            self._pools[place, seed] = pool_of(self.picture, self._classes, place, seed)
        return self._pools[place, seed]

    def _told(
        self,
        search: Search,
        queries: FloatArray,
        outputs: NDArray[np.float64],
        current: Indices,
        target: Indices,
        found: dict[int, FloatArray],
        total: int,
    ) -> Counterfactuals:
        """The answers in original units, scored once more by the model."""
        schema, classes, picture = self._schema, self._classes, self.picture
        owner = np.array([place for place, rows in found.items() for _ in rows], dtype=np.intp)
        rows = np.concatenate([np.empty((0, schema.n_columns)), *found.values()])
        scored = classes.outputs(schema, rows)
        right = (classes.index(scored) == target[owner]) & search.rules.kept(queries[owner], rows)
        distance = np.linalg.norm(search.features(queries[owner]) - search.features(rows), axis=1)
        plausibility = search.implausibility(rows, target[owner])
        column = target if len(classes.models) > 1 else np.zeros(len(queries), dtype=np.intp)
        told = schema.frame(rows)
        answers: list[list[WhatIf]] = [[] for _ in queries]
        for line in np.flatnonzero(right):
            row = {name: values[line] for name, values in told.items()}
            place = owner[line]
            answers[place].append(WhatIf(row, distance[line], plausibility[line], float(scored[line, column[place]])))
        shown = schema.frame(queries)
        labels = classes.labels
        messages = []
        for place in range(len(queries)):
            if target[place] == current[place]:
                messages.append(f"{classes.name} says class {labels[target[place]]} already: nothing needs to change.")
            elif not answers[place]:
                messages.append(f"No permitted change was found that leads {classes.name} to class {labels[target[place]]}.")
            else:
                messages.append("")
        lost = [str(labels[place]) for place in np.unique(target) if not picture.known[place]]
        notes = [
            f"Plausibility: mean distance to the nearest {NEIGHBOURS} private rows of the wanted class, smaller is better."
        ]
        if lost:
            notes.append(
                f"Few rows, or too much noise, for a prototype of class {', '.join(lost)}: that of all rows stands in."
            )
        return Counterfactuals(
            columns=schema.names,
            queries=tuple({name: values[i] for name, values in shown.items()} for i in range(len(queries))),
            outputs=tuple(float(outputs[i, column[i]]) for i in range(len(queries))),
            classes=tuple(labels[place] for place in current),
            wanted=tuple(labels[place] for place in target),
            answers=tuple(tuple(some) for some in answers),
            messages=tuple(messages),
            total_CFs=total,
            guarantee=picture.guarantee,
            cost=picture.cost,
            model=classes.name,
            dataset=picture.dataset,
            notes=tuple(notes),
        )

    # --- files -------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the releases to a file that explains anyone, anywhere, without the data. The model is not in it."""
        self.picture.save(path)

    @classmethod
    def load(cls, path: str | Path, *, model: Model | Sequence[Model], threshold: float = 0.5) -> Counterfactual:
        """Read what ``save`` wrote; ``model`` is the one it was fitted for."""
        picture = ClassPicture.load(path)
        made = cls.__new__(cls)
        made._data, made._schema, made._by, made._key = None, picture.schema, picture.by, None
        made._classes = Classes.of(model, threshold)
        made._latent, made._rows, made._scale, made._levels = picture.latent, picture.rows is not None, picture.scale, None
        made._picture, made._pools = picture, {}
        if made._classes.labels != picture.labels:
            raise InvalidInput(
                f"the file is about the classes {', '.join(map(repr, picture.labels[:12]))}, and the model has "
                f"{', '.join(map(repr, made._classes.labels[:12]))}; give the model that it was fitted for"
            )
        digests = tuple(one.digest() for one in made._classes.models)
        both = zip(digests, picture.models, strict=False)
        if picture.by == "predictions" and any(None not in pair and pair[0] != pair[1] for pair in both):
            raise InvalidInput("the file was fitted for the classes of another model; give that one, or fit again")
        for one in made._classes.models:
            one.check(picture.schema)
        return made


def _label_classes(data: PrivateData, classes: Classes) -> Indices:
    if data.target is None:
        raise InvalidInput("by='labels' needs data with a target=; use by='predictions', the model's classes")
    return classes.levels_of(data.target, data.schema[data.target])


def _latent(given: str, schema: Schema) -> str:
    if given != "auto":
        if given != "none" and schema.n_features > MOST_MOMENTS:
            raise InvalidInput(
                f"latent is {given!r}, and the rows have {schema.n_features} features; moments are released of at most "
                f"{MOST_MOMENTS}, use latent='none'"
            )
        return given
    return "linear" if NO_CODE_BELOW < schema.n_features <= MOST_MOMENTS else "none"


def _scale(clip: float | None, schema: Schema) -> float:
    if clip is None:
        return math.sqrt(schema.n_columns)
    if isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip < math.inf:
        raise InvalidInput(
            f"clip is {clip!r}; it must be a positive length, at most {math.sqrt(schema.n_columns):.4g} is useful"
        )
    return min(float(clip), math.sqrt(schema.n_columns))


def _prices(mu: float, asked: Sequence[str]) -> dict[str, float]:
    """The price of each question: whole units of the ledger that add up to no more than the price of all."""
    units = math.floor(Fraction(mu) ** 2 * 10**12)
    total = sum(SHARES[name] for name in asked)
    parts = {name: math.floor(SHARES[name] / total * units) for name in asked}
    if min(parts.values()) < 10:
        raise InvalidInput(f"the price of this picture is mu = {mu:.3g}, too small to buy anything; ask for more")
    if len(asked) == 1:
        return {asked[0]: mu}
    return {name: math.sqrt(part / 10**12) * (1 - 2e-15) for name, part in parts.items()}


def _whole(name: str, given: object, least: int, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not least <= given <= most:
        raise InvalidInput(f"{name} is {given!r}; it must be a whole number from {least} to {most}")
    return int(given)
