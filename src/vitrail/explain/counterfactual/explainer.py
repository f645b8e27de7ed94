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
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...accounting import Cost, rounded_up
from ...errors import InvalidInput
from ...guarantee import Guarantee
from ...model import Model
from ...results.class_picture import ClassPicture
from ...results.counterfactuals import Counterfactuals, WhatIf
from ...schema import FloatArray, Level
from ...solve.counterfactual.gradient import eq18, gradients_of
from ...solve.counterfactual.pool import NEIGHBOURS, Pool, pool_of
from ...solve.counterfactual.rules import Rules
from ...solve.counterfactual.search import PLAUSIBILITY_WEIGHT, Search, find
from .asking import Asking
from .classes import OPPOSITE, Classes, Indices

if TYPE_CHECKING:
    from ...vault import PrivateData, Quote

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
    latent : {"auto", "none", "linear", "sigmoid", "network"}
        The code in which prototypes are averaged: none, private PCA, or the paper's autoencoder with Taylor sigmoids, both
        trained on released moments; or a neural network of one hidden layer, trained on noisy gradients in eighty passes
        over the rows (for pictures: slower, and better than moments while epsilon is small).
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
        asking = Asking.of(data, model, threshold=threshold, by=by, latent=latent, rows=rows, clip=clip, key=key)
        self._asking: Asking | None = asking
        self._classes, self._schema = asking.classes, asking.schema
        self._picture: ClassPicture | None = None
        self._pools: dict[tuple[int, int], Pool] = {}

    def __repr__(self) -> str:
        state = "not fitted" if self._picture is None else f"epsilon={rounded_up(self._picture.guarantee.epsilon)}"
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
        self._picture = self._asked().paid(epsilon=epsilon, mu=mu)
        self._pools = {}
        return self

    def quote(self, *, epsilon: float | None = None, mu: float | None = None) -> Quote:
        """What ``fit`` would cost, whether it fits, and what is left. Reads no row and charges nothing."""
        return self._asked().quote(epsilon=epsilon, mu=mu)

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> Quote:
        return self.quote(epsilon=epsilon, mu=mu)

    def _asked(self) -> Asking:
        if self._asking is None:
            raise InvalidInput("this Counterfactual was loaded from a file and has no data; it needs none: call it")
        return self._asking

    # --- explaining --------------------------------------------------------------------------------------------------

    def __call__(
        self,
        people: object,
        *,
        desired_class: Level = OPPOSITE,
        total_CFs: int = 1,
        features_to_vary: str | Sequence[str] = "all",
        permitted_range: object = None,
        plausibility_weight: float = PLAUSIBILITY_WEIGHT,
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
        _check_models(classes, picture)
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
    def load(cls, path: str | Path, *, model: Model | Sequence[Model]) -> Counterfactual:
        """Read what ``save`` wrote; ``model`` is the one it was fitted for."""
        return cls.of_picture(ClassPicture.load(path), model=model)

    @classmethod
    def of_picture(cls, picture: ClassPicture, *, model: Model | Sequence[Model]) -> Counterfactual:
        """Explain from a picture that is at hand, as ``load`` does from a file."""
        classes = Classes.of(model, picture.threshold)
        if classes.labels != picture.labels:
            raise InvalidInput(
                f"the file is about the classes {', '.join(map(repr, picture.labels[:12]))}, and the model has "
                f"{', '.join(map(repr, classes.labels[:12]))}; give the model that it was fitted for"
            )
        _check_models(classes, picture)
        for one in classes.models:
            one.check(picture.schema)
        made = cls.__new__(cls)
        made._asking, made._classes, made._schema = None, classes, picture.schema
        made._picture, made._pools = picture, {}
        return made


def _check_models(classes: Classes, picture: ClassPicture) -> None:
    """Refuse a picture of the classes of another model, or of what this one was before it was fitted again."""
    both = zip((one.digest() for one in classes.models), picture.models, strict=False)
    if picture.by == "predictions" and any(None not in pair and pair[0] != pair[1] for pair in both):
        raise InvalidInput(
            "the picture of the classes was made for another model, or before this one was fitted again; give the model "
            "that it was made for, or fit again"
        )


def _whole(name: str, given: object, least: int, most: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not least <= given <= most:
        raise InvalidInput(f"{name} is {given!r}; it must be a whole number from {least} to {most}")
    return int(given)
