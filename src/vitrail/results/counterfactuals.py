"""Counterfactuals: what would have changed a model's answer, person by person. Post-processing of releases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._checks import whole
from .._types import Bools, Figure, Floats
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .base import Frame, Result, show
from .checks import PlainValue, checked_names, checked_texts, plain_column, plain_points, plain_value

if TYPE_CHECKING:
    from ..schema import Picture

Change = tuple[str, PlainValue, PlainValue]
PER_POINT = ("points", "outputs", "classes", "wanted", "messages", "answers")
NUMBERS = ("distance", "plausibility", "output")
MOST_ANSWERS = 1000
"""To one person."""


@dataclass(frozen=True)
class WhatIf:
    """One answer: a whole row, in original units and levels, that the model puts in the wanted class.

    ``distance`` is that from the person, Euclidean in the encoding (numbers in [0, 1], categories one-hot); ``plausibility``
    the mean distance to the nearest private rows of the wanted class: smaller is more plausible; ``output`` what the model
    says about the row (of several classes: for the wanted one).
    """

    row: Mapping[str, PlainValue]
    distance: float
    plausibility: float
    output: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", {str(name): plain_value(value) for name, value in self.row.items()})
        for name in NUMBERS:
            object.__setattr__(self, name, _finite(name, getattr(self, name)))


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactuals(Result, stored_as="counterfactuals/1"):
    """For each person the smallest changes that the search found to lead the model to another class.

    Attributes
    ----------
    columns : tuple of str
        The columns of a row.
    points : tuple of dict
        The people, in original units and levels.
    outputs : tuple of float
        What the model says about them.
    classes : tuple
        The class that the model puts each of them in.
    wanted : tuple
        The class that was asked for.
    answers : tuple of tuple of WhatIf
        For each person the answers, the best first; empty where there is none.
    messages : tuple of str
        For each person a sentence where something is to be said: no answer, nothing to change.
    total_CFs : int
        How many answers were asked for.
    guarantee : Guarantee
        The promise of the releases behind all of them.
    cost : Cost
        What those were charged, once, for any number of people.
    model, dataset : str
        Whose answers, from whose rows.
    notes : tuple of str
        Sentences a reader should know.

    Examples
    --------
    >>> import vitrail as vt
    >>> from vitrail.results.counterfactuals import WhatIf
    >>> older = WhatIf({"age": 45, "sex": "f"}, distance=0.2, plausibility=0.1, output=0.7)
    >>> out = vt.Counterfactuals(("age", "sex"), ({"age": 31, "sex": "f"},), (0.3,), (0,), (1,), ((older,),), ("",), 1,
    ...     vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
    >>> out.changes
    (((('age', 31, 45),),),)
    >>> out.validity.tolist(), out.frame()["age"].tolist()
    ([[True]], [45])
    """

    columns: tuple[str, ...]
    points: tuple[dict[str, PlainValue], ...]
    outputs: tuple[float, ...]
    classes: tuple[PlainValue, ...]
    wanted: tuple[PlainValue, ...]
    answers: tuple[tuple[WhatIf, ...], ...]
    messages: tuple[str, ...]
    total_CFs: int  # noqa: N815 - DiCE's name
    guarantee: Guarantee
    cost: Cost
    model: str = "model"
    dataset: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = checked_names(self.columns, "columns")
        self._check_fields("counterfactuals")
        total = whole("total_CFs", self.total_CFs, most=MOST_ANSWERS, of="counterfactuals")
        for name in PER_POINT:
            if len(given := getattr(self, name)) != len(self.points):
                raise InvalidInput(f"{name} of counterfactuals has {len(given)} entries for {len(self.points)} people")
        for answers in self.answers:
            if not all(isinstance(answer, WhatIf) and set(answer.row) == set(columns) for answer in answers):
                raise InvalidInput("every answer of counterfactuals must be a WhatIf with all columns")
            if len(answers) > total:
                raise InvalidInput(f"somebody has {len(answers)} counterfactuals, more than the {total} that were asked for")
        self._fix(columns=columns, points=plain_points(self.points, columns))
        self._fix(outputs=tuple(_finite("output", output) for output in self.outputs))
        self._fix(classes=tuple(map(plain_value, self.classes)), wanted=tuple(map(plain_value, self.wanted)))
        self._fix(notes=checked_texts(self.notes, "notes"), messages=checked_texts(self.messages, "messages"))

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Counterfactuals]:
        return (self[point] for point in range(len(self)))

    def __getitem__(self, point: int) -> Counterfactuals:
        """The counterfactuals of one person; promise and price remain those of the whole."""
        if isinstance(point, bool) or not isinstance(point, int | np.integer) or not -len(self) <= point < len(self):
            raise IndexError(f"there are counterfactuals of {len(self)} people; {point!r} is none of them")
        return replace(self, **{name: (getattr(self, name)[point],) for name in PER_POINT})  # type: ignore[arg-type]

    # --- numbers -----------------------------------------------------------------------------------------------------

    @property
    def validity(self) -> Bools:
        """(people, total_CFs): whether there is an answer that the model puts in the wanted class."""
        return np.isfinite(self.distance)

    @property
    def distance(self) -> Floats:
        """(people, total_CFs): distance from the person; NaN where there is no answer."""
        return self._numbers("distance")

    @property
    def plausibility(self) -> Floats:
        """(people, total_CFs): distance to rows of the wanted class; NaN where there is no answer."""
        return self._numbers("plausibility")

    def _numbers(self, name: str) -> Floats:
        numbers = np.full((len(self), self.total_CFs), np.nan)
        for point, answers in enumerate(self.answers):
            numbers[point, : len(answers)] = [getattr(answer, name) for answer in answers]
        return numbers

    @property
    def changes(self) -> tuple[tuple[tuple[Change, ...], ...], ...]:
        """For each person and answer: (column, before, after) of every change."""

        def changed(before: Mapping[str, PlainValue], after: Mapping[str, PlainValue]) -> tuple[Change, ...]:
            return tuple((name, before[name], after[name]) for name in self.columns if before[name] != after[name])

        pairs = zip(self.points, self.answers, strict=True)
        return tuple(tuple(changed(point, answer.row) for answer in answers) for point, answers in pairs)

    def frame(self) -> Frame:
        """One line per answer, in original units, as columns that any data frame library takes.

        ``point`` is the number of the person, ``wanted`` the class, then all columns of the row, ``distance``,
        ``plausibility`` and ``output``.
        """
        lines = [(point, answer) for point, answers in enumerate(self.answers) for answer in answers]
        frame: Frame = {"point": np.array([point for point, _ in lines], dtype=np.intp)}
        frame["wanted"] = plain_column([self.wanted[point] for point, _ in lines])
        frame |= {name: plain_column([answer.row[name] for _, answer in lines]) for name in self.columns}
        return frame | {name: np.array([getattr(answer, name) for _, answer in lines]) for name in NUMBERS}

    # --- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, point: int = 0, *, picture: Picture | None = None) -> Figure:
        """Draw one person's answers: a table before and after with changed cells marked, or pictures.

        Parameters
        ----------
        point : int
            Which person.
        picture : Picture, optional
            For rows that are pictures: the person's, the counterfactual and their difference are shown.
        """
        if picture is None:
            return show.changes_figure(self, point)
        return show.pictures_figure(self, point, picture.shape)

    def plot_distances(self) -> Figure:
        """Draw, for all people, how far answers are from the person and from the wanted class."""
        return show.distances_figure(self)

    def __repr__(self) -> str:
        answered = sum(map(bool, self.answers))
        return f"Counterfactuals({self.model}, {answered} of {len(self)} people answered, {self.guarantee.brief})"


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not math.isfinite(value):
        raise InvalidInput(f"{name} of a counterfactual is {value!r}; it must be a finite number")
    return float(value)
