"""How one price becomes a pane: which parts, at which shares, and what each of them may be expected to be worth.

*Shares.* Costs add in mu squared, and the squared error of a noisy sum falls as one over what was paid for it. So a part
with share s of the price has 1/s times the squared error that it would have alone, and over parts of that sort the worst of
these ratios is least for equal shares. Local synopsis and the two kinds of curves are of that sort: 4.25 for the synopsis,
5.5 for accumulated effects, 8 for partial dependence, where a method that answers one question is hardest to beat. *Private
rows* get 3.75. They are used three times: for sharp local explanations, whose error hardly falls any more with the price, as
the histograms under all curves (which then cost nothing more), and as the places where counterfactuals are sought.
*Importance* is read as an order and *counterfactuals* are checked by the public model, so that more noise changes less: 0.75
each. The numbers were chosen with Adult's figures in sight, not on other data.

*What is possible* follows from public numbers as well. ``parts="all"`` leaves out importance where there is no target,
private rows and synopsis where columns are too many for them, rows where n_rows_public * mu of their share is below 100
(tables of two by two cells would be noise), and the synopsis, if there are rows, where its expected gradient noise
(``linear.moments``) exceeds 1, the size of what it measures. What is left out leaves its share to the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..accounting import Cost, JsonValue, epsilon_of, rounded_up
from ..errors import InvalidInput
from ..explain.counterfactual import Counterfactual
from ..explain.linear.local_linear import LocalLinear
from ..explain.private_rows import MOST_COLUMNS
from ..explain.report.global_report import GlobalReport
from ..explain.trying import try_model
from ..guarantee import Guarantee, check_neighbours, question_mu
from ..model import Model
from ..results.marginals import Marginals
from ..schema.reading import did_you_mean
from ..solve.linear.cells import expected_gradient_noise
from ..solve.linear.coordinates import MOST_COORDINATES, Partition
from ..solve.linear.weights import polynomial
from ..solve.rows.cuts import fine_bins
from .histograms import usable_bins
from .manifest import MOST_FEATURES

if TYPE_CHECKING:
    from ..vault import BoundedSum, PrivateData, Quote

WEIGHTS = MappingProxyType({"rows": 3.75, "local": 4.25, "pdp": 8.0, "ale": 5.5, "importance": 0.75, "counterfactual": 0.75})
"""Shares of the price (of mu squared) where all parts are bought; see the module docstring."""
PARTS = tuple(WEIGHTS)
GLOBAL = ("pdp", "ale", "importance")
"""Bought together, as one joint sum."""
EFFECTS = ("pdp", "ale")
ROW_BINS = 100
ROWS_FROM = 100.0
"""Value of n_rows_public * mu from which private rows are worth their share."""
LEAST_UNITS = 1000
"""Of a part's price, in trillionths of mu squared."""


@dataclass(frozen=True)
class PaneQuote:
    """What a pane would cost, and what it would buy. No row was read for it.

    Attributes
    ----------
    price : Quote
        Cost, guarantee, and whether it fits the account.
    shares : mapping of str to float
        Each part's share of the price, of mu squared.
    epsilons : mapping of str to float
        What each part would cost by itself.
    expected : mapping of str to str
        How accurate each part may be expected to be, in words. Estimates from public numbers and stand-in rows.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> nobody = {"age": [], "smoker": []}
    >>> data = vt.PrivateData(nobody, schema, name="patients", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> quote = vt.pane.quote(data, model, epsilon=0.5, parts=["rows", "pdp"], weights={"rows": 1, "pdp": 3})
    >>> dict(quote.shares), quote.fits
    ({'rows': 0.25, 'pdp': 0.75}, True)
    """

    price: Quote
    shares: Mapping[str, float]
    epsilons: Mapping[str, float]
    expected: Mapping[str, str]

    @property
    def fits(self) -> bool:
        """Whether the account can pay for it now."""
        return self.price.fits

    def __str__(self) -> str:
        lines = [
            f"  {part}: {100 * share:.1f} % of the price, epsilon {rounded_up(self.epsilons[part])} by itself; "
            f"{self.expected[part]}"
            for part, share in self.shares.items()
        ]
        return "\n".join([f"A pane of {len(lines)} parts: {self.price}", *lines])

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        parts: dict[str, JsonValue] = {
            part: {"share": share, "epsilon": self.epsilons[part], "expected": self.expected[part]}
            for part, share in self.shares.items()
        }
        return {"price": self.price.to_json(), "parts": parts}


class Plan:
    """A pane before it is paid for: its parts, and their shares of any price.

    Parameters
    ----------
    data, model, parts, weights, threshold, loss, loss_bound, key
        As for :func:`vitrail.release`.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> nobody = {"age": [], "smoker": []}
    >>> data = vt.PrivateData(nobody, schema, name="patients", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> plan = vt.pane.Plan(data, vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"), parts=["rows", "effects"])
    >>> data.quote(plan, epsilon=0.5).fits
    True
    """

    def __init__(
        self,
        data: PrivateData,
        model: Model,
        *,
        parts: Literal["all"] | Sequence[str] = "all",
        weights: Mapping[str, float] | None = None,
        threshold: float | None = None,
        loss: str = "squared",
        loss_bound: float | None = None,
        key: str | None = None,
    ) -> None:
        from ..vault import PrivateData  # here, so that a weight table can be read without loading the vault

        if not isinstance(data, PrivateData):
            raise InvalidInput(f"data is {type(data).__name__}; give the vt.PrivateData that holds the rows")
        if not isinstance(model, Model):
            raise InvalidInput(f"model is {type(model).__name__}; wrap it: vt.Model(your_model)")
        if data.feature_schema.n_features > MOST_FEATURES:
            raise InvalidInput(
                f"the schema has {data.feature_schema.n_features} encoded features, and a pane holds at most {MOST_FEATURES}"
            )
        self.data, self.model, self.key = data, model, key
        self.threshold = (model.lo + model.hi) / 2 if threshold is None else threshold
        self._loss, self._loss_bound = loss, loss_bound
        self._asked = None if isinstance(parts, str) and parts == "all" else _checked_parts(parts, data)
        self._weights = _checked_weights(weights, self._asked)
        try_model(model, data.feature_schema)

    # --- shares ------------------------------------------------------------------------------------------------------

    def parts(self, mu: float) -> tuple[str, ...]:
        """What is bought at this price."""
        possible = [name for name in PARTS if self._asked is None or name in self._asked]
        if self._asked is not None:
            return tuple(possible)
        schema = self.data.feature_schema
        if self.data.target is None:
            possible.remove("importance")
        if not 2 <= schema.n_columns <= MOST_COLUMNS:
            possible.remove("rows")
        whole = Partition(schema, ()).whole
        if whole.size > MOST_COORDINATES:
            possible.remove("local")
        if "rows" in possible and self.data.n_rows_public * mu * math.sqrt(self._share("rows", possible)) < ROWS_FROM:
            possible.remove("rows")
        if "rows" in possible and "local" in possible and self.gradient_noise(mu, self._share("local", possible)) > 1:
            possible.remove("local")
        return tuple(possible)

    def _share(self, name: str, parts: Sequence[str]) -> float:
        return self._weights[name] / sum(self._weights[one] for one in parts)

    def shares(self, mu: float) -> dict[str, float]:
        """Each part's share of mu squared."""
        parts = self.parts(mu)
        return {name: self._share(name, parts) for name in parts}

    def prices(self, mu: float) -> dict[str, float]:
        """The mu of each purchase ("global" for curves and importance together): whole units that add up to no more."""
        shares = self.shares(mu)
        bought: dict[str, float] = {}
        for name, share in shares.items():
            bought["global" if name in GLOBAL else name] = bought.get("global" if name in GLOBAL else name, 0.0) + share
        if len(bought) == 1:
            return dict.fromkeys(bought, mu)
        units = math.floor(Fraction(mu) ** 2 * 10**12)
        priced = {name: math.floor(Fraction(share) * units) - 1 for name, share in bought.items()}
        if min(priced.values()) < LEAST_UNITS:
            raise InvalidInput(f"the price of this pane is mu = {rounded_up(mu)}, too small to buy anything; ask for more")
        return {name: math.sqrt(part / 10**12) * (1 - 2e-15) for name, part in priced.items()}

    # --- explainers --------------------------------------------------------------------------------------------------

    def local(self) -> LocalLinear:
        """What buys the synopsis."""
        return LocalLinear(self.data, self.model, key=self.key)

    def report(self, mu: float) -> GlobalReport:
        """What buys curves and importance."""
        shares = {name: share for name, share in self.shares(mu).items() if name in GLOBAL}
        return GlobalReport(
            self.data,
            self.model,
            parts=list(shares),
            weights=shares,
            loss=self._loss,
            loss_bound=self._loss_bound,
            key=self.key,
        )

    def counterfactual(self) -> Counterfactual:
        """What buys the picture of the classes, without rows of its own: the pane's are lent to it."""
        return Counterfactual(self.data, self.model, threshold=self.threshold, rows=False, key=self.key)

    def check(self, mu: float) -> None:
        """Make every explainer once: what is wrong with the options is said before anything is charged."""
        bought = self.prices(mu)
        if "global" in bought:
            self.report(mu)
        if "counterfactual" in bought:
            self.counterfactual()
        if "local" in bought:
            Partition(self.data.feature_schema, ()).whole.check_size()

    # --- quote -------------------------------------------------------------------------------------------------------

    def gradient_noise(self, mu: float, share: float) -> float:
        """Expected root mean square of the noise on a local gradient, in units where outputs lie in [-1, 1]."""
        cells = Partition(self.data.feature_schema, ())
        return expected_gradient_noise(cells, polynomial(), mu * math.sqrt(share), self.data.n_rows_public)

    def quote(self, *, epsilon: float | None = None, mu: float | None = None) -> PaneQuote:
        """What the pane would cost, whether it fits, and about how accurate its parts would be. Free; reads no row."""
        data = self.data
        total = question_mu(epsilon, mu, data.delta)
        self.check(total)
        shares, prices = self.shares(total), self.prices(total)
        expected: dict[str, str] = {}
        if "rows" in shares:
            noise = math.sqrt(5 * data.feature_schema.n_columns) / prices["rows"] / data.n_rows_public
            expected["rows"] = f"noise of about {100 * noise:.2g} % of all rows on a column's bin"
        if "local" in shares:
            noise = self.gradient_noise(total, shares["local"])
            expected["local"] = f"gradient noise of about {noise:.2g}, where outputs span 2"
        if "global" in prices:
            tag = self.report(total).quote(mu=prices["global"], marginals=self._even(prices) if "rows" in shares else None)
            for part in tag.half_widths:
                expected[part] = f"bands of about +-{tag.half_width(part):.2g} ({tag.claim(part).mark})"
        if "counterfactual" in shares:
            noise = self.counterfactual().quote(mu=prices["counterfactual"]).result.counts_sigma / data.n_rows_public
            expected["counterfactual"] = f"noise of about {100 * noise:.2g} % of all rows on a class"
        whole = Cost.of_mu(total)
        statement = data.budget
        promise = Guarantee.of_mu(whole.mu, data.delta, check_neighbours(data.neighbours))
        tag_of_all = replace(
            data.quote(self._any_question(), mu=total), cost=whole, guarantee=promise, sigma=None, sigma_per_row=None
        )
        if data.part is None:
            tag_of_all = replace(tag_of_all, fits=statement.spent + whole <= statement.capacity, adds=whole)
        by_itself = {name: epsilon_of(total * math.sqrt(share), data.delta) for name, share in shares.items()}
        ordered = {name: expected[name] for name in shares}
        return PaneQuote(tag_of_all, MappingProxyType(shares), MappingProxyType(by_itself), MappingProxyType(ordered))

    def __vitrail_quote__(self, *, epsilon: float | None = None, mu: float | None = None) -> PaneQuote:
        """What ``data.quote(vt.pane.Plan(...), epsilon=...)`` shows."""
        return self.quote(epsilon=epsilon, mu=mu)

    def _any_question(self) -> BoundedSum:
        from ..explain.marginals import marginals_question

        return marginals_question(self.data.schema)

    def _even(self, prices: Mapping[str, float]) -> Marginals:
        """Even histograms, for a quote, in the place of those that the rows would bring."""
        data = self.data
        bins = tuple(usable_bins(fine_bins(name, column, ROW_BINS), column) for name, column in data.feature_schema.items())
        counts = {one.name: np.full(len(one), data.n_rows_public / len(one)) for one in bins}
        sigma = math.sqrt(5 * len(bins)) / prices["rows"]
        cost = Cost.of_mu(prices["rows"])
        promise = Guarantee.of_mu(cost.mu, data.delta, check_neighbours(data.neighbours))
        return Marginals(data.name, bins, MappingProxyType(counts), sigma, data.n_rows_public, cost, promise)


def quote(
    data: PrivateData,
    model: Model,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    parts: Literal["all"] | Sequence[str] = "all",
    weights: Mapping[str, float] | None = None,
) -> PaneQuote:
    """What :func:`vitrail.release` would cost with these arguments, and what it would buy. Free; reads no row."""
    return Plan(data, model, parts=parts, weights=weights).quote(epsilon=epsilon, mu=mu)


def _checked_parts(parts: object, data: PrivateData) -> tuple[str, ...]:
    known = (*PARTS, "effects")
    if isinstance(parts, str) or not isinstance(parts, Sequence) or not parts:
        raise InvalidInput(f"parts is {parts!r}; give 'all', or a list of {', '.join(map(repr, known))}")
    for name in parts:
        if name not in known:
            raise InvalidInput(
                f"parts names {name!r}; there are {', '.join(map(repr, known))}.{did_you_mean(str(name), known)}"
            )
    chosen = {one for name in parts for one in (EFFECTS if name == "effects" else (name,))}
    if "importance" in chosen and data.target is None:
        raise InvalidInput(
            "permutation importance needs a target: give PrivateData target=, or leave 'importance' out of parts"
        )
    columns = data.feature_schema.n_columns
    if "rows" in chosen and not 2 <= columns <= MOST_COLUMNS:
        raise InvalidInput(f"parts names 'rows', and private rows have 2 to {MOST_COLUMNS} columns, not {columns}")
    return tuple(name for name in PARTS if name in chosen)


def _checked_weights(weights: Mapping[str, float] | None, asked: tuple[str, ...] | None) -> dict[str, float]:
    if weights is None:
        return dict(WEIGHTS)
    if not isinstance(weights, Mapping):
        raise InvalidInput(f"weights is {type(weights).__name__}; give a mapping of parts to numbers: {{'local': 2}}")
    for name, weight in weights.items():
        if name not in PARTS:
            raise InvalidInput(f"weights names {name!r}; there are {', '.join(map(repr, PARTS))}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 1e-6 <= weight <= 1e6:
            raise InvalidInput(f"the weight of {name!r} is {weight!r}; it must be a positive number")
        if asked is not None and name not in asked:
            raise InvalidInput(f"weights names {name!r}, which is not among the parts: {', '.join(map(repr, asked))}")
    return {**WEIGHTS, **{name: float(weight) for name, weight in weights.items()}}
