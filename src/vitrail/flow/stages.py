"""Stages: what an explainer computes from what, which of it is released, and a Mermaid diagram of it. No rows, no noise.

``separators`` holds the theorem, its proof and the cheapest set. Stages may be declared in any order; they are checked as a
whole when the first question is asked.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from itertools import pairwise

from .._tables import text_table
from ..errors import InvalidInput
from .separators import EXPLANATION, ROWS, Cut, Graph, cheapest_cut

LETTERS_PER_LINE = 33
LOOKS = {
    "released": "fill:#d6e6f7,stroke:#1d5fa8",
    "public": "fill:#ffffff,stroke:#6b7280,stroke-dasharray:5 4",
    "separator": "stroke:#c2410c,stroke-width:3px",
}
LEAK = "stroke:#b91c1c,stroke-width:3px"
# What would end a quoted Mermaid label or start markup in it.
_ENTITIES = str.maketrans({"#": "#35;", "&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;"})


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
    declared: tuple[Stage, ...] = ()

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
        if any(stage.name == name for stage in self.declared):
            raise InvalidInput(f"there are two stages named {name!r}; names must differ")
        if isinstance(after, str):
            raise InvalidInput(f"after is the text {after!r}; give a list of names, such as [{after!r}]")
        if public and released:
            raise InvalidInput(f"stage {name!r} is public and released; what depends on no row needs no mechanism")
        return replace(self, declared=(*self.declared, Stage(name, tuple(dict.fromkeys(after)), does, public, released)))

    def __getitem__(self, name: str) -> Stage:
        """The stage of that name."""
        for stage in self.declared:
            if stage.name == name:
                return stage
        raise InvalidInput(f"there is no stage {name!r}; the stages are {_names(stage.name for stage in self.declared)}")

    def __iter__(self) -> Iterator[Stage]:
        """The stages as declared, without rows."""
        return iter(self.declared)

    @cached_property
    def graph(self) -> Graph:
        """Who reads whom, checked."""
        return _checked(self)

    @property
    def released(self) -> tuple[str, ...]:
        """The stages that are released, in order of computation."""
        return self.graph.in_order({stage.name for stage in self.declared if stage.released})

    @property
    def public(self) -> tuple[str, ...]:
        """The stages that depend on no row, in order of computation."""
        return self.graph.in_order({stage.name for stage in self.declared if stage.public})

    def each_separator(self) -> Iterator[tuple[str, ...]]:
        """Minimal separators one by one, nearest to the rows first, at a polynomial delay. There may be very many."""
        return self.graph.separators()

    def separators(self) -> tuple[tuple[str, ...], ...]:
        """All inclusion-minimal sets of stages that separate rows from explanation.

        Returns
        -------
        tuple of tuples of str
            Small sets first; among equals those nearer to the rows. Within a set, in order of computation.
        """
        rank = {name: i for i, name in enumerate(self.graph.names)}
        # Of two sets of one size, neither contains the other, so their ranks decide.
        return tuple(sorted(self.each_separator(), key=lambda names: (len(names), [rank[name] for name in names])))

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
        self._check_separates(given, f"{_names(self.graph.in_order(given))} is", "release a stage on that path as well")
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
        self._check_separates(cost, "the stages with a cost are", "give a cost to a stage on that path")
        return cheapest_cut(self.graph, {name: Fraction(value) for name, value in cost.items()})

    def mermaid(self, separator: Iterable[str] | None = None) -> str:
        """The text of a Mermaid flowchart: released stages blue, public ones dashed, a separator orange, a leak red.

        Parameters
        ----------
        separator : iterable of str, optional
            The separator to mark. Default: the minimal one within the released stages; where they hold none, a shortest
            path from the rows to the explanation past them is marked instead.

        Examples
        --------
        >>> import vitrail as vt
        >>> print(vt.flow.Stages().stage("explanation", after=["rows"], released="noisy sum").mermaid())
        flowchart TD
            s0[("rows<br/>private")]
            s1(["explanation<br/>released: noisy sum"])
            s0 --> s1
            classDef released fill:#d6e6f7,stroke:#1d5fa8
            class s1 released
            classDef separator stroke:#c2410c,stroke-width:3px
            class s1 separator
        <BLANKLINE>
        """
        chosen: tuple[str, ...] = ()
        if separator is not None:
            chosen = self.graph.in_order(self._set(separator))
            self.minimal(chosen)  # raises, and says where it leaks
        elif self.is_separator():
            chosen = self.minimal()
        path = self.leak() if self.released and not chosen else None
        keys = {name: f"s{i}" for i, name in enumerate(self.graph.names)}
        edges = [(name, reader) for name in self.graph.names for reader in self.graph.after[name]]
        lines = ["flowchart TD", *(f"    {keys[name]}{self._box(name)}" for name in keys)]
        lines += [f"    {keys[name]} {'-.->' if name in self.public else '-->'} {keys[to]}" for name, to in edges]
        for look, names in (("released", self.released), ("public", self.public), ("separator", chosen)):
            if names:
                lines += [f"    classDef {look} {LOOKS[look]}", f"    class {','.join(keys[name] for name in names)} {look}"]
        lines += [f"    linkStyle {edges.index(edge)} {LEAK}" for edge in pairwise(path or ())]
        return "\n".join([*lines, ""])

    def _box(self, name: str) -> str:
        """The node of a stage: its name and what it does, in lines, inside the brackets that give its shape."""
        texts = ["private"]
        if name != ROWS:
            stage = self[name]
            released = f"released: {stage.released}" if stage.released else ""
            texts = [line for text in (stage.does, released) for line in textwrap.wrap(text, LETTERS_PER_LINE)]
        left, right = {ROWS: ("[(", ")]"), EXPLANATION: ("([", "])")}.get(name, ("[", "]"))
        return f'{left}"{"<br/>".join(text.translate(_ENTITIES) for text in (name, *texts))}"{right}'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows: the diagram where it can draw Mermaid, else the table of stages.

        The table is plain text: as HTML, notebooks would show it instead of the diagram.
        """
        return {"text/vnd.mermaid": self.mermaid(), "text/plain": str(self)}

    def __str__(self) -> str:
        header = ("stage", "after", "does", "depends on rows", "released through")
        rows = [
            (stage.name, ", ".join(stage.after), stage.does, "no" if stage.public else "yes", stage.released)
            for stage in self.declared
        ]
        return text_table(header, rows, [self.title] if self.title else [])

    def _check_separates(self, given: Collection[str], which: str, hint: str) -> None:
        path = self.graph.leak(given)
        if path is not None:
            raise InvalidInput(f"{which} no separator: rows reach the explanation by {' -> '.join(path)}; {hint}")

    def _set(self, names: Iterable[str] | None) -> Collection[str]:
        if names is None:
            return set(self.released)
        if isinstance(names, str):
            raise InvalidInput(f"a set of stages is the text {names!r}; give a list of names, such as [{names!r}]")
        given = set(names)
        if ROWS in given:
            raise InvalidInput("rows cannot be released as they are; make private rows a stage after 'rows'")
        for name in sorted(given - set(self.graph.names), key=str):
            self[name]  # raises, and names the stages
        return given


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def _checked(stages: Stages) -> Graph:
    """The graph of the stages, or an error that says what is wrong with them."""
    before = {ROWS: (), **{stage.name: stage.after for stage in stages.declared}}
    if EXPLANATION not in before:
        raise InvalidInput("there is no stage 'explanation'; declare it, after the stages it is computed from")
    for name, reads in before.items():
        for earlier in reads:
            if earlier not in before:
                raise InvalidInput(f"stage {name!r} is after {earlier!r}, which is no stage; known are {_names(before)}")
    after = {name: tuple(reader for reader, reads in before.items() if name in reads) for name in before}
    if after[EXPLANATION]:
        raise InvalidInput(f"stage {after[EXPLANATION][0]!r} is after 'explanation', which is the last stage of every graph")

    graph = Graph(_in_topological_order(before), before, after)
    for name in graph.names:
        if name != EXPLANATION and not after[name]:
            what = "the rows are" if name == ROWS else f"stage {name!r} is"
            raise InvalidInput(f"{what} read by no other stage; say who reads it, or leave it away")
    tainted = graph.near(())
    for stage in stages.declared:
        if stage.public and stage.name in tainted:
            raise InvalidInput(
                f"stage {stage.name!r} is declared public, but it depends on rows through the stages it is after"
            )
        if not stage.public and stage.name not in tainted:
            raise InvalidInput(
                f"stage {stage.name!r} depends on no row: put it after a stage that does, or declare it public=True"
            )
    return graph


def _in_topological_order(before: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Each stage after those it reads; among those that could come next, the one declared first."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        raise InvalidInput(f"the stages run in a circle: {' -> '.join(error.args[1])}; no stage may need itself") from error
    order: dict[str, None] = {}
    while len(order) < len(before):
        ready = (name for name, reads in before.items() if name not in order and order.keys() >= set(reads))
        order[next(ready)] = None
    return tuple(order)


# The catalogue


def _read_catalogue() -> dict[str, Stages]:
    """The graphs of ``catalogue.txt``, which says how it is written, by name."""
    graphs: dict[str, Stages] = {}
    for line in files(__package__).joinpath("catalogue.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 1:
            key, _, title = line.partition(" = ")
            graphs[key] = Stages(title)
            continue
        name, reads, does, released = (*cells, "")[:4]
        public = reads == "public"
        after = () if public else reads.split(", ")
        graphs[key] = graphs[key].stage(name, after=after, does=does, public=public, released=released)
    return graphs


CATALOGUE = _read_catalogue()

DECLARATION = "__vitrail_flow__"
OUR_PACKAGE = __name__.split(".")[0]


def names() -> tuple[str, ...]:
    """The names in the catalogue.

    Examples
    --------
    >>> import vitrail as vt
    >>> [name for name in vt.flow.names() if name.startswith("Accumulated")]
    ['AccumulatedEffects']
    """
    return tuple(CATALOGUE)


def of(explainer: object, variant: str | None = None) -> Stages:
    """The stages of an explainer, with the released ones marked.

    Parameters
    ----------
    explainer : class, instance, function or str
        What declares ``__vitrail_flow__``: stages, a name in the catalogue, or a function without arguments that returns
        either. One of ours without it is looked up by its own name; a text is a name in the catalogue.
    variant : str, optional
        The way it is used, where there are several: ``of(vt.LocalLinear, "descent")``.

    Returns
    -------
    Stages

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.flow.of(vt.LocalLinear).released
    ('statistics',)
    >>> vt.flow.of("AccumulatedEffects").minimal()
    ('marginals', 'sizes', 'sums')
    """
    declared = explainer if isinstance(explainer, str) else _declared(explainer)
    if isinstance(declared, Stages):
        if variant is not None:
            raise InvalidInput(f"variant is {variant!r}, but these stages have no variants; leave it away")
        return declared
    name = declared if variant is None else f"{declared}/{variant}"
    if name not in CATALOGUE:
        raise InvalidInput(f"there are no stages for {name!r}; known are {', '.join(map(repr, CATALOGUE))}")
    return CATALOGUE[name]


def _declared(explainer: object) -> Stages | str:
    """Stages, or the name of stages in the catalogue."""
    declared = getattr(explainer, DECLARATION, None)
    if callable(declared):
        declared = declared()
    if isinstance(declared, Stages | str):
        return declared
    holder = explainer if hasattr(explainer, "__name__") else type(explainer)
    name = str(getattr(holder, "__name__", ""))
    if declared is not None:
        raise InvalidInput(
            f"{name}.{DECLARATION} is a {type(declared).__name__}; it must be vitrail.flow.Stages, a name in the catalogue, "
            "or a function that returns one of them"
        )
    # A stranger's class is not what one of ours with that name is.
    if str(getattr(holder, "__module__", "")).split(".")[0] == OUR_PACKAGE:
        for known in (name, name.title().replace("_", "")):  # private_rows is PrivateRows
            if known in CATALOGUE:
                return known
    raise InvalidInput(
        f"{name} publishes no stages; give it a class attribute {DECLARATION} = vitrail.flow.Stages(...), or ask for one of "
        f"{', '.join(map(repr, CATALOGUE))}"
    )
