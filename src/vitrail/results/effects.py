"""Curves of columns, and surfaces of pairs, from one release. Needs neither vault nor ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from ..accounting import Cost, JsonValue
from ..errors import InvalidInput
from ..guarantee import Guarantee
from . import Curve, Surface
from .band_claim import TWO_SIDED_95, BandClaim, weakest
from .marginals import Marginals

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Mapping[str, Curve]):
    """Curves by column, from one release.

    ``effects["age"]`` is a :class:`Curve`; ``effects.plot()`` draws all of them; ``effects.frame()`` is one tidy table.
    ``effects["age", "sex"]`` is a :class:`Surface`, where that pair was asked for.

    Attributes
    ----------
    curves : mapping of str to Curve
        By column, in the order asked for.
    marginals : Marginals
        The released histograms that lie under the curves.
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
    marginals: Marginals
    guarantee: Guarantee
    cost: Cost
    surfaces: Mapping[tuple[str, str], Surface] = field(default_factory=lambda: MappingProxyType({}))

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
        kind = [*(one.kind for one in self.curves.values()), *(one.kind for one in self.surfaces.values())][0]
        counts = ((len(self), "column"), (len(self.surfaces), "pair"))
        what = " and ".join(f"{count} {one}{'s' if count > 1 else ''}" for count, one in counts if count)
        return f"Effects({kind} of {what}, {self.guarantee.brief}, {self.band_claim.brief})"

    @property
    def band_claim(self) -> BandClaim:
        """What the bands of all curves and surfaces claim: the weakest claim among them."""
        curves = [one.band_claim for one in self.curves.values()]
        return weakest([*curves, *(one.band_claim for one in self.surfaces.values())])

    @property
    def half_widths(self) -> Mapping[str, float]:
        """The median half-width of the bands of each curve and, under both names, of each surface."""
        stds = {name: curve.std for name, curve in self.curves.items()}
        stds |= {" x ".join(pair): surface.std for pair, surface in self.surfaces.items()}
        return {name: TWO_SIDED_95 * float(np.median(std)) for name, std in stds.items() if std is not None}

    @property
    def half_width(self) -> float:
        """The median of ``half_widths``."""
        return float(np.median(list(self.half_widths.values())))

    def to_json(self) -> dict[str, JsonValue]:
        """All curves as plain JSON values, and surfaces under both names."""
        found: dict[str, JsonValue] = {name: curve.to_json() for name, curve in self.curves.items()}
        return found | {" x ".join(pair): surface.to_json() for pair, surface in self.surfaces.items()}

    @classmethod
    def from_json(cls, fields: Mapping[str, JsonValue], marginals: Marginals) -> Effects:
        """Read back what ``to_json`` wrote, with the marginals that lie under the curves: they are stored on their own."""
        if not isinstance(fields, Mapping) or not fields or not all(isinstance(one, Mapping) for one in fields.values()):
            raise InvalidInput("what was given are no effects as their to_json writes them: curves by column")
        curves: dict[str, Curve] = {}
        surfaces: dict[tuple[str, str], Surface] = {}
        for name, one in fields.items():
            assert isinstance(one, Mapping)
            if str(one.get("format")).startswith("vitrail-surface/"):
                surface = Surface.from_json(one)
                surfaces[surface.names] = surface
            else:
                curves[name] = Curve.from_json(one)
        first: Curve | Surface = next(iter(curves.values())) if curves else next(iter(surfaces.values()))
        return cls(MappingProxyType(curves), marginals, first.guarantee, first.cost, MappingProxyType(surfaces))

    def frame(self) -> dict[str, NDArray[np.generic]]:
        """All curves as one tidy table of columns: ``pandas.DataFrame(effects.frame())``. Surfaces have their own."""
        if not self.curves:
            raise InvalidInput("there are surfaces here and no curves; take the frame of one: effects[pair].frame()")
        frames = [curve.frame() for curve in self.curves.values()]
        return {
            name: np.concatenate([frame[name].astype(object) if name == "x" else frame[name] for frame in frames])
            for name in frames[0]
        }

    def data(self, key: int | str) -> dict[str, NDArray[np.generic]]:
        """One curve's numbers, by number or name, as interpret's explanations give them."""
        return (list(self.curves.values())[key] if isinstance(key, int) else self[key]).frame()

    def plot(self) -> Figure:
        """All curves in one figure. Surfaces have their own: ``effects[pair].plot()``."""
        from ..show.curves import curves_figure

        if not self.curves:
            return next(iter(self.surfaces.values())).plot()
        return curves_figure([curve.shape() for curve in self.curves.values()])
