"""Counterfactuals: what would have changed a model's answer, person by person. Post-processing of releases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee
from . import files, stored
from .checks import PlainValue, checked_names, checked_texts, plain_points, plain_value
from .door import Drawn, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..schema import Picture

KIND, VERSION = "vitrail-counterfactuals", 1
Floats = NDArray[np.float64]
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
class Counterfactuals(Drawn):
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
    >>> found.validity.tolist(), found.frame()["age"]
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
        columns = checked_names(self.columns, "columns")
        queries = plain_points(self.queries, columns)
        for name in ("outputs", "classes", "wanted", "answers", "messages"):
            if len(getattr(self, name)) != len(queries):
                raise InvalidInput(
                    f"{name} of counterfactuals has {len(getattr(self, name))} entries for {len(queries)} people"
                )
        for some in self.answers:
            for one in some:
                if not isinstance(one, WhatIf) or set(one.row) != set(columns):
                    raise InvalidInput("every answer of counterfactuals must be a WhatIf with all columns")
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "queries", queries)
        object.__setattr__(self, "notes", checked_texts(self.notes, "notes"))
        object.__setattr__(self, "messages", checked_texts(self.messages, "messages"))

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

    def frame(self) -> dict[str, list[PlainValue]]:
        """One line per answer, in original units, as columns that any data frame library takes.

        ``query`` is the number of the person, ``wanted`` the class, then all columns of the row, ``distance``,
        ``plausibility`` and ``output``.
        """
        lines = [(place, one) for place, some in enumerate(self.answers) for one in some]
        made: dict[str, list[PlainValue]] = {"query": [place for place, _ in lines]}
        made["wanted"] = [self.wanted[place] for place, _ in lines]
        made |= {name: [one.row[name] for _, one in lines] for name in self.columns}
        made |= {name: [getattr(one, name) for _, one in lines] for name in ("distance", "plausibility", "output")}
        return made

    # --- files -------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, JsonValue]:
        """The counterfactuals as plain JSON values; every number comes back exactly."""
        return {
            **stored.header(KIND, VERSION, self.guarantee, self.cost, self.notes),
            "model": self.model,
            "dataset": self.dataset,
            "columns": list(self.columns),
            "total_CFs": self.total_CFs,
            "people": [
                {
                    "query": dict(self.queries[place]),
                    "output": self.outputs[place],
                    "class": self.classes[place],
                    "wanted": self.wanted[place],
                    "message": self.messages[place],
                    "answers": [
                        {
                            "row": dict(one.row),
                            "distance": one.distance,
                            "plausibility": one.plausibility,
                            "output": one.output,
                        }
                        for one in self.answers[place]
                    ],
                }
                for place in range(len(self))
            ],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue]) -> Counterfactuals:
        """Read back what ``to_json`` wrote."""
        return stored.read(KIND, VERSION, fields, _counterfactuals)

    def save(self, path: str | Path) -> Path:
        """Write JSON text; returns where."""
        return files.save(self.to_json(), path)

    @classmethod
    def load(cls, path: str | Path) -> Counterfactuals:
        """Read what ``save`` wrote."""
        return cls.from_json(files.load(path))

    # --- pictures ----------------------------------------------------------------------------------------------------

    def plot(self, person: int = 0, *, picture: Picture | None = None) -> Figure:
        """Draw one person's answers: a table before and after with changed cells marked, or pictures.

        Parameters
        ----------
        person : int
            Which person.
        picture : Picture, optional
            For rows that are pictures: the query, the counterfactual and their difference are shown.
        """
        if picture is None:
            return show.changes_figure(self, person)
        return show.pictures_figure(self, person, picture.shape)

    def plot_distances(self) -> Figure:
        """Draw, for all people, how far answers are from the person and from the wanted class."""
        return show.distances_figure(self)

    def __repr__(self) -> str:
        answered = sum(bool(some) for some in self.answers)
        promise = self.guarantee.brief
        return f"Counterfactuals({self.model}, {answered} of {len(self)} people answered, {promise})"


def _changes(
    columns: tuple[str, ...], before: Mapping[str, PlainValue], after: Mapping[str, PlainValue]
) -> tuple[Change, ...]:
    return tuple((name, before[name], after[name]) for name in columns if before[name] != after[name])


def _counterfactuals(fields: Mapping[str, JsonValue]) -> Counterfactuals:
    guarantee, cost, notes = stored.promise(fields)
    people = fields["people"]
    if not isinstance(people, list):
        raise TypeError("'people' must be a list")
    total = fields["total_CFs"]
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        raise TypeError("'total_CFs' must be a whole number")
    some = [_person(one) for one in people]
    answers = tuple(one[4] for one in some)
    if any(len(mine) > total for mine in answers):
        raise ValueError("somebody has more answers than were asked for")
    return Counterfactuals(
        columns=stored.texts(fields, "columns"),
        queries=tuple(one[0] for one in some),
        outputs=tuple(one[1] for one in some),
        classes=tuple(one[2] for one in some),
        wanted=tuple(one[3] for one in some),
        answers=answers,
        messages=tuple(one[5] for one in some),
        total_CFs=total,
        guarantee=guarantee,
        cost=cost,
        model=stored.text(fields, "model"),
        dataset=stored.text(fields, "dataset"),
        notes=notes,
    )


def _person(
    fields: JsonValue,
) -> tuple[dict[str, PlainValue], float, PlainValue, PlainValue, tuple[WhatIf, ...], str]:
    if not isinstance(fields, dict) or not isinstance(fields["answers"], list):
        raise TypeError("a person must be an object with 'answers'")
    answers = []
    for one in fields["answers"]:
        if not isinstance(one, dict):
            raise TypeError("an answer must be an object")
        numbers = {name: _number(one, name) for name in ("distance", "plausibility", "output")}
        answers.append(WhatIf(_row(one, "row"), **numbers))
    before, wanted = fields["class"], fields["wanted"]
    if isinstance(before, list | dict) or isinstance(wanted, list | dict):
        raise TypeError("a class must be a plain value")
    return _row(fields, "query"), _number(fields, "output"), before, wanted, tuple(answers), stored.text(fields, "message")


def _row(fields: Mapping[str, JsonValue], name: str) -> dict[str, PlainValue]:
    value = fields[name]
    if not isinstance(value, dict):
        raise TypeError(f"{name!r} must be an object")
    return {column: plain_value(one) for column, one in value.items()}


def _number(fields: Mapping[str, JsonValue], name: str) -> float:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name!r} must be a number")
    return float(value)
