"""Counterfactuals: what would have changed a model's answer, person by person. Post-processing of releases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost
from ..errors import InvalidInput
from ..guarantee import Guarantee
from .base import Frame, Result
from .checks import Floats, PlainValue, checked_names, checked_texts, plain_column, plain_points, plain_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..schema import Picture
    from ..show.counterfactuals import WhatIfShape

MOST_ANSWERS = 1000
"""To one person."""
Change = tuple[str, PlainValue, PlainValue]


@dataclass(frozen=True)
class WhatIf:
    """One answer: a row that the model puts in the wanted class.

    Attributes
    ----------
    row : dict
        The whole row, in original units and levels.
    distance : float
        From the person, Euclidean in the encoding (numbers in [0, 1], categories one-hot).
    plausibility : float
        Mean distance to the nearest private rows of the wanted class: smaller is more plausible.
    output : float
        What the model says about the row (of several classes: for the wanted one).
    """

    row: Mapping[str, PlainValue]
    distance: float
    plausibility: float
    output: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", {str(name): plain_value(value) for name, value in self.row.items()})
        for name in ("distance", "plausibility", "output"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float | np.floating) or not math.isfinite(number):
                raise InvalidInput(f"{name} of an answer is {number!r}; it must be a finite number")
            object.__setattr__(self, name, float(number))


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactuals(Result, stored_as="counterfactuals/1"):
    """For each person the smallest found changes that lead the model to another class.

    Attributes
    ----------
    columns : tuple of str
        The columns of a row.
    queries : tuple of dict
        The people, in original units and levels.
    outputs : tuple of float
        What the model says about them.
    classes : tuple
        The class that the model puts each of them in.
    wanted : tuple
        The class that was asked for.
    answers : tuple of tuple of WhatIf
        For each person the answers, the best first; none where none was found.
    messages : tuple of str
        For each person a sentence where something is to be said: nothing found, nothing to change.
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
    >>> found = vt.Counterfactuals(("age", "sex"), ({"age": 31, "sex": "f"},), (0.3,), (0,), (1,), ((older,),), ("",), 1,
    ...     vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost.of_mu(0.2))
    >>> found.changes
    (((('age', 31, 45),),),)
    >>> found.validity.tolist(), found.frame()["age"].tolist()
    ([[True]], [45])
    """

    columns: tuple[str, ...]
    queries: tuple[dict[str, PlainValue], ...]
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
        self._check_types("counterfactuals")
        columns = checked_names(self.columns, "columns")
        queries = plain_points(self.queries, columns)
        for name in ("outputs", "classes", "wanted", "answers", "messages"):
            if len(getattr(self, name)) != len(queries):
                raise InvalidInput(
                    f"{name} of counterfactuals has {len(getattr(self, name))} entries for {len(queries)} people"
                )
        if isinstance(self.total_CFs, bool) or not 1 <= self.total_CFs <= MOST_ANSWERS:
            raise InvalidInput(f"total_CFs of counterfactuals is {self.total_CFs!r}; it must be from 1 to {MOST_ANSWERS}")
        for answers in self.answers:
            if any(not isinstance(answer, WhatIf) or set(answer.row) != set(columns) for answer in answers):
                raise InvalidInput("every answer of counterfactuals must be a WhatIf with all columns")
            if len(answers) > self.total_CFs:
                raise InvalidInput(f"somebody has {len(answers)} answers, and {self.total_CFs} were asked for")
        self._fix(columns=columns, queries=queries)
        self._fix(notes=checked_texts(self.notes, "notes"), messages=checked_texts(self.messages, "messages"))
        self._fix(classes=tuple(map(plain_value, self.classes)), wanted=tuple(map(plain_value, self.wanted)))

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Counterfactuals]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> Counterfactuals:
        """The counterfactuals of one person."""
        if isinstance(place, bool) or not isinstance(place, int | np.integer) or not -len(self) <= place < len(self):
            raise IndexError(f"there are counterfactuals of {len(self)} people; {place!r} is none of them")
        one = range(len(self))[place]
        names = ("queries", "outputs", "classes", "wanted", "answers", "messages")
        return replace(self, **{name: (getattr(self, name)[one],) for name in names})  # type: ignore[arg-type]

    # --- numbers -----------------------------------------------------------------------------------------------------

    @property
    def validity(self) -> NDArray[np.bool_]:
        """(people, total_CFs): whether there is an answer that the model puts in the wanted class."""
        found = np.zeros((len(self), self.total_CFs), dtype=np.bool_)
        for place, some in enumerate(self.answers):
            found[place, : len(some)] = True
        return found

    @property
    def distance(self) -> Floats:
        """(people, total_CFs): distance from the person; NaN where there is no answer."""
        return self._numbers("distance")

    @property
    def plausibility(self) -> Floats:
        """(people, total_CFs): distance to rows of the wanted class; NaN where there is no answer."""
        return self._numbers("plausibility")

    def _numbers(self, name: str) -> Floats:
        found = np.full((len(self), self.total_CFs), np.nan)
        for place, some in enumerate(self.answers):
            found[place, : len(some)] = [getattr(one, name) for one in some]
        return found

    @property
    def changes(self) -> tuple[tuple[tuple[Change, ...], ...], ...]:
        """For each person and answer: (column, before, after) of every change."""
        return tuple(
            tuple(_changes(self.columns, query, one.row) for one in some)
            for query, some in zip(self.queries, self.answers, strict=True)
        )

    def frame(self) -> Frame:
        """One line per answer, in original units, as columns that any data frame library takes.

        ``query`` is the number of the person, ``wanted`` the class, then all columns of the row, ``distance``,
        ``plausibility`` and ``output``.
        """
        lines = [(place, one) for place, some in enumerate(self.answers) for one in some]
        made: Frame = {"query": np.array([place for place, _ in lines], dtype=np.intp)}
        made["wanted"] = plain_column([self.wanted[place] for place, _ in lines])
        made |= {name: plain_column([one.row[name] for _, one in lines]) for name in self.columns}
        numbers = ("distance", "plausibility", "output")
        return made | {name: np.array([getattr(one, name) for _, one in lines], dtype=np.float64) for name in numbers}

    # --- pictures ----------------------------------------------------------------------------------------------------

    def shape(self, place: int = 0) -> WhatIfShape:
        """What a picture of one person needs to know."""
        from ..show.counterfactuals import WhatIfShape

        one = self[place]
        return WhatIfShape(
            title=f"{self.model} says {one.classes[0]}; what would make it say {one.wanted[0]}?",
            columns=self.columns,
            before=tuple(one.queries[0][name] for name in self.columns),
            after=tuple(tuple(answer.row[name] for name in self.columns) for answer in one.answers[0]),
            distances=tuple(answer.distance for answer in one.answers[0]),
            plausibilities=tuple(answer.plausibility for answer in one.answers[0]),
            outputs=(one.outputs[0], *(answer.output for answer in one.answers[0])),
            message=one.messages[0],
        )

    def plot(self, place: int = 0, *, picture: Picture | None = None) -> Figure:
        """Draw one person's answers: a table before and after with changed cells marked, or pictures.

        Parameters
        ----------
        place : int
            Which person.
        picture : Picture, optional
            For rows that are pictures: the query, the counterfactual and their difference are shown.
        """
        from ..show.counterfactuals import picture_figure, what_if_figure

        shape = self.shape(place)
        return what_if_figure(shape) if picture is None else picture_figure(shape, picture.shape)

    def plot_distances(self) -> Figure:
        """Draw, for all people, how far answers are from the person and from the wanted class."""
        from ..show.counterfactuals import distances_figure

        return distances_figure(self.distance[:, 0], self.plausibility[:, 0], title=f"counterfactuals of {self.model}")

    def __repr__(self) -> str:
        answered = sum(bool(some) for some in self.answers)
        promise = self.guarantee.brief
        return f"Counterfactuals({self.model}, {answered} of {len(self)} people answered, {promise})"

    def _repr_html_(self) -> str:
        from ..show.counterfactuals import what_if_html

        more = (f"The first 3 of {len(self)} people are shown.",) if len(self) > 3 else ()
        return what_if_html([self.shape(place) for place in range(min(len(self), 3))], repr(self), (*more, *self.sentences))


def _changes(
    columns: tuple[str, ...], before: Mapping[str, PlainValue], after: Mapping[str, PlainValue]
) -> tuple[Change, ...]:
    return tuple((name, before[name], after[name]) for name in columns if before[name] != after[name])
