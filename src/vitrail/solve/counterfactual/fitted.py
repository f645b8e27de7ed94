"""Counterfactuals for any number of people, from a picture of the classes that was paid for once. Post-processing.

Everything here reads releases and the public model only. The promise is about the rows behind the picture, given the model;
what the model itself learned from its training rows is not covered.

*Models with gradients* start from minima of the paper's objective too: ``descent.py``.

*A model that no picture was made for* (``on_rows``) has classes on private rows too: what it says of the stored ones. Their
mean rows and histograms stand in for the picture. Nothing is asked, so it is free, for any model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..._checks import number, whole
from ..._types import Floats, Indices
from ...accounting import Cost
from ...accounting.guarantee import Guarantee
from ...errors import InvalidInput
from ...model import Model
from ...model.contents import read_once
from ...results.checks import plain_rows
from ...results.class_picture import ClassPicture, block_weights
from ...results.counterfactuals import Counterfactuals, WhatIf
from ...results.private_rows import PrivateRows
from ...schema import Level
from .classes import OPPOSITE, Classes, Desired, listed
from .codes import IdentityCode
from .descent import Coefficients, Descent, latent_minima
from .permitted import Columns, Ranges, Rules
from .refinement import find
from .search import NEIGHBOURS, Candidates, Pool, Search, pool_of

POINTS_AT_ONCE = 64
VALUES_AT_ONCE = 16_384
"""Points times columns: of wide rows fewer points are searched for at once, because undoing copies rows."""
MOST_ANSWERS = 100
PLAUSIBILITY_NOTE = (
    f"Plausibility: mean distance to the nearest {NEIGHBOURS} private rows of the wanted class, smaller is better."
)
ON_ROWS_NOTE = (
    "Counterfactuals start from private rows, in the classes that {name} puts them in. Plausibility: mean distance to the "
    f"nearest {NEIGHBOURS} of those in the wanted class, smaller is better."
)


class FittedCounterfactual:
    """What would have changed the model's answer, for any number of people, from a picture that was paid for.

    Parameters
    ----------
    picture : ClassPicture
        The releases: what ``Counterfactual(data, model)`` buys, or a file of them. An attribute of the same name.
    model : Model or list of Model
        The model that the picture was made for. Its content is compared with the picture's at every call.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"income": vt.Numeric(0, 100), "debts": vt.Numeric(0, 50)})
    >>> people = {"income": np.linspace(0, 100, 5000), "debts": np.tile([10, 40], 2500)}
    >>> data = vt.PrivateData(people, schema, name="loans", n_rows_public=5000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: (x[:, 0] > 0.6).astype(float), range=(0, 1), name="bank")
    >>> picture = vt.Counterfactual(data, model)(epsilon=0.5)
    >>> explain = vt.FittedCounterfactual(picture, model)
    >>> explain({"income": 40, "debts": 30}, desired_class=1).validity.tolist()
    [[True]]
    """

    def __init__(self, picture: ClassPicture, model: Model | Sequence[Model]) -> None:
        classes = Classes.of(model, picture.threshold)
        if classes.labels != picture.labels:
            raise InvalidInput(
                f"the picture is about the classes {listed(picture.labels)}, and the model has {listed(classes.labels)}; "
                "give the model that it was fitted for"
            )
        self.picture, self._classes, self.notes = picture, classes, (PLAUSIBILITY_NOTE,)
        self._pools: dict[tuple[tuple[Level, ...], int, int], Pool] = {}
        for class_model in classes.models:
            class_model.check(picture.schema)

    @classmethod
    def on_rows(cls, rows: PrivateRows, model: Model | Sequence[Model], threshold: float) -> FittedCounterfactual:
        """For any model, from private rows alone: what it says of the stored rows stands in for a picture of its classes.

        Parameters
        ----------
        rows : PrivateRows
            Of the columns that the model reads.
        model : Model or list of Model
            With two sides, or one per class.
        threshold : float
            Of a single output: at least this is class 1.
        """
        classes, schema = Classes.of(model, threshold), rows.schema
        for class_model in classes.models:
            class_model.check(schema)
        number = classes.index(classes.outputs(schema, rows.sampled))
        weights, scale = block_weights(len(rows.bins)), math.sqrt(schema.n_features)  # which cuts nobody

        def sums_of(own: Floats) -> Floats:
            counts = [np.bincount(cut.index(own[:, j]), minlength=len(cut)) for j, cut in enumerate(rows.bins)]
            codes = [*(schema.features(own)[0].sum(axis=0) / scale), len(own)]
            return np.concatenate([weights.codes * np.array(codes), weights.counts * np.concatenate(counts)])

        picture = ClassPicture(
            dataset=rows.dataset,
            schema=schema,
            labels=classes.labels,
            threshold=classes.threshold,
            by="predictions",
            models=tuple(class_model.digest() for class_model in classes.models),
            scale=scale,
            code=IdentityCode(schema.n_features),
            sums=np.stack([sums_of(rows.sampled[number == side]) for side in range(len(classes))]),
            sums_sigma=weights.codes,  # counts are of stored rows: a class that few of them are in stands out of nothing
            bins=rows.bins,
            rows=rows,
            n_rows_public=rows.n_rows_public,
            cost=rows.cost,
            guarantee=rows.guarantee,
        )
        made = cls(picture, model)
        made.notes = (ON_ROWS_NOTE.format(name=classes.name),)
        return made

    def __repr__(self) -> str:
        classes = self._classes
        return f"FittedCounterfactual({classes.name}, classes {listed(classes.labels, 6)}, {self.guarantee.brief})"

    @property
    def classes(self) -> Classes:
        """The classes of the model that it asks."""
        return self._classes

    @property
    def guarantee(self) -> Guarantee:
        """The promise for everything that it says, ever."""
        return self.picture.guarantee

    @property
    def cost(self) -> Cost:
        """What the picture was charged."""
        return self.picture.cost

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file, from which ``load`` explains anyone without the data. The model is not in it."""
        return self.picture.save(path)

    @classmethod
    def load(cls, path: str | Path, *, model: Model | Sequence[Model]) -> FittedCounterfactual:
        """Read what ``save`` wrote; ``model`` is the one it was fitted for."""
        fitted = cls(ClassPicture.load(path), model)
        fitted._check_models()
        return fitted

    @read_once()
    def __call__(
        self,
        points: object,
        *,
        desired_class: Level = OPPOSITE,
        desired: Desired | None = None,
        total_CFs: int = 1,
        features_to_vary: Columns = "all",
        permitted_range: Ranges = None,
        plausibility_weight: float = 0.0,
        margin: float = 0.0,
        coefficients: Coefficients | None = None,
        seed: int = 0,
    ) -> Counterfactuals:
        """What would have led the model to another class, for each person. Free.

        Parameters
        ----------
        points : dictionary, list of dictionaries, data frame, array
            Public points.
        desired_class : label or "opposite"
            The class to get to; ``"opposite"`` is the other side, or of several classes the model's second choice.
        desired : (low, high), optional
            A range of outputs to get into instead, for a model that returns amounts; None for an open end.
        total_CFs : int
            How many answers for each, at most: they differ in the columns that they change.
        features_to_vary : "all" or list of str
            The columns that may change, besides what the schema forbids; of linked ones either names both.
        permitted_range : dict, optional
            Where changed values may lie: ``{"age": (30, 50), "job": ["clerk", "nurse"]}``.
        plausibility_weight : float
            How much nearness to rows of the wanted class counts when answers are chosen, against how much they change. 0
            gives the smallest changes; more gives answers that resemble people of the class, and change more.
        margin : float
            How far past the border of the wanted class an answer's output must lie. At 0 answers lie at the border: a change
            a little smaller would not do. More is safer advice where the model will be fitted again, and changes more.
        coefficients : (alpha, beta, gamma), optional
            Of eq. 18, for torch models on features: what missing the class, distance to the person and distance to the
            prototype count in the latent search. (1, 0.5, 0.1) if not given.
        seed : int
            The search's own; it protects nothing and endangers nothing.

        Returns
        -------
        Counterfactuals
            Every answer was scored by the model itself. Who has none has a message.
        """
        schema, classes = self.picture.schema, self._classes
        self._check_models()
        if desired is not None:
            if desired_class != OPPOSITE:
                raise InvalidInput("desired_class and desired were both given; give a class or a range of outputs, not both")
            classes = classes.between(desired)
        total = whole("total_CFs", total_CFs, most=MOST_ANSWERS)
        seed = whole("seed", seed, least=0, most=2**32 - 1)
        weight = number("plausibility_weight", plausibility_weight, low=0, high=1e100)
        past = number("margin", margin, low=0, high=classes.models[0].hi - classes.models[0].lo)
        descent = Descent.of(classes, schema, coefficients)
        rules = Rules.of(schema, features_to_vary, permitted_range)
        raw = schema.read_points(points)
        if not len(raw):
            raise InvalidInput("there is nobody to explain; give at least one point")
        outputs = classes.outputs(schema, raw)
        current = classes.index(outputs)
        if (current < 0).any():
            raise InvalidInput(f"{classes.name} returns no finite number at point {int(np.argmin(current))}")
        target = classes.wanted(desired_class if desired is None else 1, current, outputs)
        pools = {int(wanted): self._pool(classes, int(wanted), seed) for wanted in np.unique(target[target != current])}
        search = Search(schema, classes, rules, raw, target, pools, weight, seed, past)
        answers = self._answers(search, np.flatnonzero(target != current), total, descent)
        return self._result(search, outputs, current, answers, total)

    def _pool(self, classes: Classes, wanted: int, seed: int) -> Pool:
        known = classes.labels, wanted, seed
        if known not in self._pools:
            self._pools[known] = pool_of(self.picture, classes, wanted, seed, self._like(classes, wanted))
        return self._pools[known]

    def _like(self, classes: Classes, wanted: int) -> int:
        """The number of the picture's class that a class is most like: for a range of outputs the side of its middle."""
        if classes.highest is None:
            return wanted
        low, high = max(classes.threshold, classes.models[0].lo), min(classes.highest, classes.models[0].hi)
        return int((low + high) / 2 >= self.picture.threshold)

    def _answers(self, search: Search, points: Indices, total: int, descent: Descent | None) -> Candidates:
        """Answers for these points, some of them at a time."""
        answers = Candidates(np.empty(0, dtype=np.intp), np.empty((0, search.points.shape[1])))
        at_once = max(1, min(POINTS_AT_ONCE, VALUES_AT_ONCE // search.points.shape[1]))
        for start in range(0, len(points), at_once):
            batch = points[start : start + at_once]
            extra = None
            if descent is not None:
                like = [self._like(search.classes, number) for number in search.target[batch]]
                extra = latent_minima(search, descent, self.picture, batch, self.picture.prototypes[like])
            rows = find(search, batch, total, extra)
            answers = answers.joined(Candidates(np.repeat(batch, [len(row) for row in rows]), np.concatenate(rows)))
        return answers

    def _result(self, search: Search, outputs: Floats, current: Indices, answers: Candidates, total: int) -> Counterfactuals:
        """The answers in original units, scored once more by the model."""
        schema, classes, picture, target = search.schema, search.classes, self.picture, search.target
        scored = classes.outputs(schema, answers.rows)
        right = search.accepts(scored, answers.point)
        right &= search.rules.kept(search.points[answers.point], answers.rows)
        output = target if len(classes.models) > 1 else np.zeros_like(target)
        rows = plain_rows(schema.frame(answers.rows))
        distance, plausibility = search.distance(answers), search.implausibility(answers)
        by_point: list[list[WhatIf]] = [[] for _ in target]
        for line in np.flatnonzero(right):
            point = answers.point[line]
            output_there = float(scored[line, output[point]])
            by_point[point].append(WhatIf(rows[line], distance[line], plausibility[line], output_there))
        messages, past = [], f", {search.margin:g} past its border" if search.margin else ""
        for wanted, is_there, changes in zip(target, target == current, by_point, strict=True):
            label = classes.in_words(wanted)
            missing = "" if changes else f"No permitted change was found that leads {classes.name} to {label}{past}."
            already = f"{classes.name} says {label} already: nothing needs to change."
            messages.append(already if is_there else missing)
        return Counterfactuals(
            columns=schema.names,
            points=plain_rows(schema.frame(search.points)),
            outputs=tuple(np.take_along_axis(outputs, output[:, None], axis=1)[:, 0].tolist()),
            classes=tuple(classes.labels[number] for number in current),
            wanted=tuple(classes.labels[number] for number in target),
            answers=tuple(map(tuple, by_point)),
            messages=tuple(messages),
            total_CFs=total,
            guarantee=picture.guarantee,
            cost=picture.cost,
            model=classes.name,
            dataset=picture.dataset,
            notes=(*self.notes, *picture.notes_on(np.unique([self._like(classes, number) for number in target]))),
        )

    def _check_models(self) -> None:
        """Refuse a picture of the classes of another model, or of what this one was before it was fitted again."""
        both = zip((model.digest() for model in self._classes.models), self.picture.models, strict=False)
        if self.picture.by == "predictions" and any(None not in pair and pair[0] != pair[1] for pair in both):
            raise InvalidInput(
                "the picture of the classes was made for another model, or before this one was fitted again; give the "
                "model that it was made for, or fit again"
            )
