"""Curves of several columns from one release. Needs neither vault nor ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...accounting import Cost, JsonValue
from ...explanation import Curve
from ...guarantee import Guarantee
from ..marginals_result import Marginals

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Effects(Mapping[str, Curve]):
    """Curves by column, from one release.

    ``effects["age"]`` is a :class:`Curve`; ``effects.plot()`` draws all of them; ``effects.frame()`` is one tidy table.

    Attributes
    ----------
    curves : mapping of str to Curve
        By column, in the order asked for.
    marginals : Marginals
        The released histograms that lie under the curves.
    guarantee : Guarantee
        The promise for all of it, marginals included where they were paid for here.
    cost : Cost
        What was charged for all of it.

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

    def __getitem__(self, name: str) -> Curve:
        if name not in self.curves:
            raise KeyError(f"no curve of {name!r}; there are {', '.join(map(repr, self.curves))}")
        return self.curves[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    def __repr__(self) -> str:
        kind = next(iter(self.curves.values())).kind
        promise = f"epsilon={self.guarantee.epsilon:.4g} at delta={self.guarantee.delta:.3g}"
        return f"Effects({kind} of {len(self)} column{'s' if len(self) > 1 else ''}, {promise})"

    def to_json(self) -> dict[str, JsonValue]:
        """All curves as plain JSON values."""
        return {name: curve.to_json() for name, curve in self.curves.items()}

    def frame(self) -> dict[str, NDArray[np.generic]]:
        """All curves as one tidy table of columns: ``pandas.DataFrame(effects.frame())``."""
        frames = [curve.frame() for curve in self.curves.values()]
        return {
            name: np.concatenate([frame[name].astype(object) if name == "x" else frame[name] for frame in frames])
            for name in frames[0]
        }

    def data(self, key: int | str) -> dict[str, NDArray[np.generic]]:
        """One curve's numbers, by number or name, as interpret's explanations give them."""
        return (list(self.curves.values())[key] if isinstance(key, int) else self[key]).frame()

    def plot(self) -> Figure:
        """All curves in one figure."""
        from ...show.curves import curves_figure

        return curves_figure([curve.shape() for curve in self.curves.values()])
