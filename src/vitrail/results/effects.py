"""Curves of columns, and surfaces of pairs, from one release. Needs neither vault nor ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, overload

import numpy as np

from .._types import Figure, Floats
from ..accounting import Cost
from ..accounting.guarantee import Guarantee
from ..errors import InvalidInput
from .band_claim import TWO_SIDED_95, BandClaim, weakest
from .base import Frame, Result, counted, show
from .curve import Curve, Surface
from .marginals import Marginals
from .row_count import RowCount
from .verdict import Judgement, Verdict, judge_sizes, root_mean_square, sentences, shape_size


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Result, Mapping[str, Curve], stored_as="effects/1"):
    """Curves by column, from one release.

    ``effects["age"]`` is a :class:`Curve`; ``effects.plot()`` draws all of them; ``effects.frame()`` is one tidy table.
    ``effects["age", "sex"]`` is a :class:`Surface`, where that pair was asked for.

    Attributes
    ----------
    curves : mapping of str to Curve
        By column, in the order asked for.
    marginals : Marginals or None
        The released histograms that lie under the curves; None inside a report, which has them once.
    guarantee : Guarantee
        The promise for all of it, marginals included, whether they were paid for here or before.
    cost : Cost
        The price of what was asked for these curves; marginals that were given are not in it.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "height": vt.Numeric(0, 200)})
    >>> rows = {"age": np.linspace(0, 100, 4000), "height": np.full(4000, 170.0)}
    >>> data = vt.PrivateData(rows, schema, name="people", n_rows_public=4000, budget=vt.Budget(2, 1e-6))
    >>> effects = vt.PartialDependence(data, vt.Model(lambda x: x[:, 0], range=(0, 1)))(epsilon=1.0)
    >>> list(effects), bool(abs(effects["age"](50) - 0.5) < 0.05)
    (['age', 'height'], True)
    """

    curves: Mapping[str, Curve]
    marginals: Marginals | None
    guarantee: Guarantee
    cost: Cost
    surfaces: Mapping[tuple[str, str], Surface] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        self._check_fields("effects")
        if not self.curves and not self.surfaces:
            raise InvalidInput("effects have neither curves nor surfaces; give at least one")
        self._fix(curves=MappingProxyType(dict(self.curves)), surfaces=MappingProxyType(dict(self.surfaces)))

    @overload
    def __getitem__(self, name: str) -> Curve: ...

    @overload
    def __getitem__(self, name: tuple[str, str]) -> Surface: ...

    def __getitem__(self, name: str | tuple[str, str]) -> Curve | Surface:
        if isinstance(name, tuple) and name in self.surfaces:
            return self.surfaces[name]
        if isinstance(name, tuple) or name not in self.curves:
            raise KeyError(f"nothing of {name!r}; there are {', '.join(map(repr, (*self.curves, *self.surfaces)))}")
        return self.curves[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def __repr__(self) -> str:
        counts = [(len(self), "column"), (len(self.surfaces), "pair")]
        what = " and ".join(counted(count, noun) for count, noun in counts if count)
        noise = f", {self.verdict}" if self.verdict is Verdict.MOSTLY_NOISE else ""
        return f"Effects({self._members[0].kind} of {what}, {self.guarantee.brief}, {self.band_claim.brief}{noise})"

    @property
    def _members(self) -> list[Curve | Surface]:
        return [*self.curves.values(), *self.surfaces.values()]

    @property
    def band_claim(self) -> BandClaim:
        """What the bands of all curves and surfaces claim: the weakest claim among them."""
        return weakest(member.band_claim for member in self._members)

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands of all of them claim."""
        return (self.band_claim.sentence(),)

    @property
    def rows_counted(self) -> RowCount | None:
        """How many rows count: what the curves say, or the histograms under them."""
        own = [member.rows_counted for member in self._members if member.rows_counted is not None]
        return own[0] if own else None if self.marginals is None else self.marginals.rows_counted

    def _judge(self) -> Judgement | None:
        """All curves and surfaces that have bands, shown together."""
        if not (banded := self._banded):
            return None
        sizes = [shape_size(getattr(member, member.OF)) for member in banded.values()]
        return judge_sizes(sizes, [root_mean_square(_half_widths(member)) / TWO_SIDED_95 for member in banded.values()])

    @property
    def _banded(self) -> dict[str, Curve | Surface]:
        named: dict[str, Curve | Surface] = dict(self.curves)
        named |= {" and ".join(pair): surface for pair, surface in self.surfaces.items()}
        return {name: member for name, member in named.items() if member.lower is not None}

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """Of each curve (of a surface: ``"age and sex"``), by the bands of all of them together; empty without bands."""
        judged = self._judgement
        return {} if judged is None else dict(zip(self._banded, judged.verdicts, strict=True))

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """Which curves are clear, or that there is too little to tell and what would help."""
        judged = self._judgement
        return () if judged is None else sentences(judged, [*self._banded], self.guarantee, noun="curve", say_clear=True)

    @property
    def half_width(self) -> float | None:
        """The median half-width of the bands: over curves and surfaces, of the median of each; None without bands."""
        widths = [TWO_SIDED_95 * float(np.median(member.std)) for member in self._members if member.std is not None]
        return float(np.median(widths)) if widths else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, each sentence once: every curve carries its own copy."""
        return tuple(dict.fromkeys(note for member in self._members for note in member.notes))

    def frame(self) -> Frame:
        """All curves as one tidy table of columns: ``pandas.DataFrame(effects.frame())``. Surfaces have their own."""
        if not self.curves:
            raise InvalidInput("there are surfaces here and no curves; take the frame of one: effects[pair].frame()")
        frames = [curve.frame() for curve in self.curves.values()]
        return {
            name: np.concatenate([frame[name].astype(object) if name == "x" else frame[name] for frame in frames])
            for name in frames[0]
        }

    def data(self, key: int | str) -> Frame:
        """One curve's numbers, by number or name, as interpret's explanations give them."""
        return (list(self.curves.values())[key] if isinstance(key, int) else self[key]).frame()

    def to_sklearn(self) -> Any:
        """All curves, then all surfaces, as one ``PartialDependenceDisplay`` of scikit-learn."""
        return show.sklearn_display(self._members)

    def plot(self) -> Figure:
        """All curves in one figure. Surfaces have their own: ``effects[pair].plot()``."""
        if not self.curves:
            return next(iter(self.surfaces.values())).plot()
        return show.curves_figure(list(self.curves.values()))


def _half_widths(member: Curve | Surface) -> Floats:
    assert member.lower is not None
    assert member.upper is not None
    return np.asarray((member.upper - member.lower) / 2)
