"""Stages: what an explainer computes from what, and which of it is released. Pure mathematics; no rows, no noise.

``separators`` holds the theorem and its proof, ``cheapest`` the cheapest set, ``drawing`` the picture. Stages may be
declared in any order; they are checked as a whole when the first question is asked.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from .cheapest import Cut, cheapest_cut
from .separators import EXPLANATION, ROWS, Graph

if TYPE_CHECKING:
    from .drawing import Drawing


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a computation.

    Attributes
    ----------
    name : str
        What it is called.
    after : tuple of str
        The stages it reads, all of them: what it reads and does not name is a leak that no theorem sees.
    does : str
        One line about it.
    public : bool
        Whether it depends on no row.
    released : str
        The mechanism it is released through; empty if it is not.
    """

    name: str
    after: tuple[str, ...]
    does: str = ""
    public: bool = False
    released: str = ""


@dataclass(frozen=True)
class Stages:
    """The stages between ``rows`` and ``explanation``: which to release so that all algorithms of that shape are private.

    Parameters
    ----------
    title : str
        Of the picture.

    Notes
    -----
    ``rows`` is there from the start and cannot be released as it is; to consider private rows, make them a stage
    after ``rows``. ``explanation`` has to be declared, and may be released itself.

    Examples
    --------
    >>> import vitrail as vt
    >>> curve = (
    ...     vt.flow.Stages("partial dependence")
    ...     .stage("x values", after=["rows"], does="values of the feature that occur")
    ...     .stage("y values", after=["rows", "x values"], does="mean prediction at each", released="noisy sum")
    ...     .stage("explanation", after=["x values", "y values"])
    ... )
    >>> curve.separators()
    (('explanation',), ('x values', 'y values'))
    >>> curve.leak()   # only the y values are released
    ('rows', 'x values', 'explanation')
    >>> curve.cheapest({"x values": 1.0, "y values": 0.5, "explanation": 4.0})
    Cut(stages=('x values', 'y values'), cost=1.5)
    """

    title: str = ""
    parts: tuple[Stage, ...] = ()

    def stage(
        self, name: str, *, after: Iterable[str] = (), does: str = "", public: bool = False, released: str = ""
    ) -> Stages:
        """These stages and one more.

        Parameters
        ----------
        name : str
            A new name; ``"explanation"`` for the last stage.
        after : iterable of str
            Every stage it reads, declared before or later.
        does : str
            One line about it.
        public : bool
            Whether it depends on no row: a grid from the schema, the model, the question.
        released : str
            The mechanism it is released through, if it is.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput(f"the name of a stage is {name!r}; it must be a text that is not empty")
        if name == ROWS:
            raise InvalidInput(
                "'rows' is the input of every graph and there already; choose another name for a stage of yours"
            )
        if any(part.name == name for part in self.parts):
            raise InvalidInput(f"there are two stages named {name!r}; names must differ")
        if isinstance(after, str):
            raise InvalidInput(f"after is the text {after!r}; give a list of names, such as [{after!r}]")
        if public and released:
            raise InvalidInput(f"stage {name!r} is public and released; what depends on no row needs no mechanism")
        return replace(self, parts=(*self.parts, Stage(name, tuple(dict.fromkeys(after)), does, public, released)))

    def __getitem__(self, name: str) -> Stage:
        """The stage of that name."""
        for part in self.parts:
            if part.name == name:
                return part
        raise InvalidInput(f"there is no stage {name!r}; the stages are {_names(part.name for part in self.parts)}")

    def __iter__(self) -> Iterator[Stage]:
        """The stages as declared, without rows."""
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def graph(self) -> Graph:
        """Who reads whom, checked."""
        return _checked(self)

    @property
    def released(self) -> tuple[str, ...]:
        """The stages that are released, in order of computation."""
        return self.graph.in_order({part.name for part in self.parts if part.released})

    @property
    def public(self) -> tuple[str, ...]:
        """The stages that depend on no row, in order of computation."""
        return self.graph.in_order({part.name for part in self.parts if part.public})

    def each_separator(self) -> Iterator[tuple[str, ...]]:
        """Minimal separators one by one, nearest to the rows first, at a polynomial delay. There may be very many."""
        return self.graph.separators()

    def separators(self) -> tuple[tuple[str, ...], ...]:
        """All inclusion-minimal sets of stages that part rows from explanation.

        Returns
        -------
        tuple of tuples of str
            Small sets first; among equals those nearer to the rows. Within a set, in order of computation.
        """
        place = {name: i for i, name in enumerate(self.graph.names)}
        # Of two sets of one size, neither contains the other, so their places decide.
        return tuple(sorted(self.each_separator(), key=lambda names: (len(names), [place[name] for name in names])))

    def leak(self, released: Iterable[str] | None = None) -> tuple[str, ...] | None:
        """A shortest path from rows to explanation past the released stages; None if there is none.

        Parameters
        ----------
        released : iterable of str, optional
            Default: the stages declared as released.
        """
        return self.graph.leak(self._set(released))

    def is_separator(self, released: Iterable[str] | None = None) -> bool:
        """Whether every path from rows to explanation meets a released stage (default: those declared so)."""
        return self.leak(released) is None

    def minimal(self, released: Iterable[str] | None = None) -> tuple[str, ...]:
        """A minimal separator within a separator (default: the released stages).

        The rest is not needed for privacy. It may still be worth its price: what is released before a stage is a constant
        for that stage's sensitivity (donors drawn from released counts, in permutation importance, halve it).
        """
        given = self._set(released)
        path = self.graph.leak(given)
        if path is not None:
            raise InvalidInput(
                f"{_names(self.graph.in_order(given))} is no separator: rows reach the explanation by {' -> '.join(path)}; "
                "release a stage on that path as well"
            )
        return self.graph.in_order(self.graph.minimal(given))

    def cheapest(self, cost: Mapping[str, float]) -> Cut:
        """The separator with the least sum of costs.

        Parameters
        ----------
        cost : mapping of str to float
            What it costs to release each stage, in a currency that adds (mu squared; epsilon). Stages that are not named
            cannot be released.

        Returns
        -------
        Cut
            The stages and the sum. Of several that cost the same, one nearest to the rows.
        """
        self._set(cost)
        for name, value in cost.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
                raise InvalidInput(
                    f"the cost of stage {name!r} is {value!r}; it must be a finite number of at least 0; leave away what "
                    "cannot be released"
                )
        cut = cheapest_cut(self.graph, {name: Fraction(value) for name, value in cost.items()})
        if cut is None:
            path = self.graph.leak(set(cost)) or ()
            raise InvalidInput(
                f"the stages with a cost are no separator: rows reach the explanation by {' -> '.join(path)}; give a "
                "cost to a stage on that path"
            )
        return cut

    def draw(self, separator: Iterable[str] | None = None) -> Drawing:
        """A picture of the stages.

        Parameters
        ----------
        separator : iterable of str, optional
            The separator to highlight. Default: the minimal one within the released stages, if they hold one.
        """
        from .drawing import Drawing

        if separator is None:
            chosen = self.minimal() if self.is_separator() else ()
        else:
            chosen = self.graph.in_order(self._set(separator))
            if not self.is_separator(chosen):
                self.minimal(chosen)  # raises, and says where it leaks
        return Drawing(self, chosen)

    def _set(self, names: Iterable[str] | None) -> Collection[str]:
        if names is None:
            return set(self.released)
        if isinstance(names, str):
            raise InvalidInput(f"a set of stages is the text {names!r}; give a list of names, such as [{names!r}]")
        given = set(names)
        if ROWS in given:
            raise InvalidInput("rows cannot be released as they are; make private rows a stage after 'rows'")
        for name in sorted(given - set(self.graph.names), key=str):
            raise InvalidInput(f"there is no stage {name!r}; the stages are {_names(part.name for part in self.parts)}")
        return given


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def _checked(stages: Stages) -> Graph:
    """The graph of the stages, or an error that says what is wrong with them."""
    before = {ROWS: (), **{part.name: part.after for part in stages.parts}}
    if EXPLANATION not in before:
        raise InvalidInput("there is no stage 'explanation'; declare it, after the stages it is computed from")
    for name, reads in before.items():
        for earlier in reads:
            if earlier not in before:
                raise InvalidInput(f"stage {name!r} is after {earlier!r}, which is no stage; known are {_names(before)}")
    after: dict[str, list[str]] = {name: [] for name in before}
    for name, reads in before.items():
        for earlier in reads:
            after[earlier].append(name)
    if after[EXPLANATION]:
        raise InvalidInput(f"stage {after[EXPLANATION][0]!r} is after 'explanation', which is the last stage of every graph")

    graph = Graph(_in_topological_order(before, after), before, {name: tuple(readers) for name, readers in after.items()})
    for name in graph.names:
        if name != EXPLANATION and not after[name]:
            what = "the rows are" if name == ROWS else f"stage {name!r} is"
            raise InvalidInput(f"{what} read by no other stage; say who reads it, or leave it away")
    tainted = graph.near(())
    for part in stages.parts:
        if part.public and part.name in tainted:
            raise InvalidInput(
                f"stage {part.name!r} is declared public, but it depends on rows through the stages it is after"
            )
        if not part.public and part.name not in tainted:
            raise InvalidInput(
                f"stage {part.name!r} depends on no row: put it after a stage that does, or declare it public=True"
            )
    return graph


def _in_topological_order(before: Mapping[str, tuple[str, ...]], after: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Each stage after those it reads; among those that could come next, the one declared first."""
    place = {name: i for i, name in enumerate(before)}
    names = list(before)
    missing = {name: len(reads) for name, reads in before.items()}
    ready = [place[name] for name, count in missing.items() if count == 0]
    order = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for reader in after[name]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, place[reader])
    if len(order) < len(before):
        raise InvalidInput(
            f"the stages run in a circle: {' -> '.join(_a_circle(before, set(order)))}; no stage may need itself"
        )
    return tuple(order)


def _a_circle(before: Mapping[str, tuple[str, ...]], sound: Collection[str]) -> list[str]:
    """Some circle among the stages that could not be ordered: walk backwards until a name comes again."""
    walk = [next(name for name in before if name not in sound)]
    while walk[-1] not in walk[:-1]:
        walk.append(next(earlier for earlier in before[walk[-1]] if earlier not in sound))
    return list(reversed(walk[walk.index(walk[-1]) :]))
