"""What curves and rankings would cost and how wide their bands would be, before anything is paid or read.

The price is exact. Widths are an estimate: even histograms stand in for the released ones, reference rows are drawn from
them, the public model answers for those, and the bands are computed as they would be from a release in which private rows
differ from reference rows as much as usual.

How far off: within a factor of four on the data of tests/explain/report/test_effects_quote.py, and more for local effects of
skewed columns: evenly spread capital gains saturate a tree, so that steps of other columns seem to do nothing. With
marginals that were paid for before (``quote(marginals=)``) the estimate is much better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ...accounting import Basis, Cost, JsonValue
from ...guarantee import Guarantee, check_neighbours
from ...model import Model
from ...results.band_claim import TWO_SIDED_95, BandClaim, claim_of
from ...results.marginals import Marginals
from ...show.global_report import PARTS
from ...solve.curves import steps
from ...solve.curves.axes import Axis, Floats
from ..marginals import marginals_bins, marginals_question
from . import partial
from .clipping import SizeHistogram
from .joint import Joint, Part
from .paying import rest_of
from .planning import CLIPS_SHARE, MARGINALS_SHARE, AccumulatedPlan, PartialPlan, Prepared, histograms_wanted

if TYPE_CHECKING:
    from ...vault import PrivateData, Quote

SEED = 22
"""Of the noise in a rehearsed release: it hides nothing, and a quote is the same again."""


@dataclass(frozen=True)
class EffectsQuote:
    """The price of curves and rankings, and what it buys. No row was read for it.

    Attributes
    ----------
    price : Quote
        Cost, guarantee, and whether it fits the account.
    half_widths : mapping of str to mapping of str to float
        By part ("pdp", "ale", "importance") and column: expected (median) half-width of the bands. Curves are in units
        of the model's output, importances in units of the loss. An estimate from public rows.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> nobody = {"age": [], "smoker": []}
    >>> data = vt.PrivateData(nobody, schema, name="patients", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> quote = data.quote(vt.PartialDependence(data, model), epsilon=0.5)
    >>> quote.fits, list(quote.half_widths["pdp"]), 0 < quote.half_width("pdp") < 0.05
    (True, ['age', 'smoker'], True)
    """

    price: Quote
    half_widths: Mapping[str, Mapping[str, float]]

    @property
    def fits(self) -> bool:
        """Whether the account can pay for it now."""
        return self.price.fits

    def half_width(self, part: str) -> float:
        """The median over a part's columns."""
        return median(self.half_widths[part].values())

    def claim(self, part: str) -> BandClaim:
        """What the bands of a part would claim."""
        pairs = any(" x " in name for name in self.half_widths[part])
        return claim_of(PARTS.get(part, part) + (" of pairs" if pairs and part == "pdp" else ""))

    def widths_text(self, sign: str) -> str:
        """Every part's expected half-width, and what its bands would claim."""
        return ", ".join(f"{part} {sign}{self.half_width(part):.2g} ({self.claim(part).mark})" for part in self.half_widths)

    def __str__(self) -> str:
        widths = self.widths_text("+-")
        columns = max(len(found) for found in self.half_widths.values())
        return (
            f"{columns} column{'s' if columns != 1 else ''} together: {replace(self.price, sigma=None)} Bands of about "
            f"{widths}: an estimate from public stand-in rows."
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        widths: dict[str, JsonValue] = {part: dict(found) for part, found in self.half_widths.items()}
        claims: dict[str, JsonValue] = {part: self.claim(part).value for part in self.half_widths}
        return {"price": self.price.to_json(), "half_widths": widths, "band_claims": claims}


def priced(data: PrivateData, total_mu: float, half_widths: Mapping[str, Mapping[str, float]]) -> EffectsQuote:
    """A quote of this price. What is bought with it is several questions, so the noise of a single one is not stated."""
    tag = data.quote(marginals_question(data.schema), mu=total_mu)
    whole = Cost.of_mu(total_mu)
    promise = Guarantee.of_mu(whole.mu, data.delta, check_neighbours(data.neighbours))
    price = replace(tag, cost=whole, guarantee=promise, sigma=None, sigma_per_row=None)
    return EffectsQuote(price, MappingProxyType(dict(half_widths)))


def rehearsed(
    data: PrivateData,
    model: Model,
    total_mu: float,
    marginals: Marginals | None,
    *,
    share: float = MARGINALS_SHARE,
    focus: Sequence[str] = (),
) -> Prepared:
    """What ``planning.prepare`` returns, without paying: the given marginals, or even ones."""
    model.check(data.feature_schema)
    if marginals is not None:
        return Prepared(data, model, marginals, total_mu, Cost(), Basis())
    found, spent = [], Cost()
    for one in histograms_wanted(data, share, focus):
        price = data.quote(one.question(data), mu=one.price * total_mu)
        assert price.sigma is not None
        bins = marginals_bins(data.schema, one.columns, one.bins)
        counts = MappingProxyType({each.name: np.full(len(each), data.n_rows_public / len(each)) for each in bins})
        found.append(Marginals(data.name, bins, counts, price.sigma, data.n_rows_public, price.cost, price.guarantee))
        spent += price.cost
    focused = found[1] if len(found) > 1 else None
    return Prepared(data, model, found[0], rest_of(total_mu, spent), spent, Basis(), focused, rehearsed=True)


def with_rehearsed_clips(
    plan: AccumulatedPlan, prepared: Prepared, total_mu: float, weight: float
) -> tuple[AccumulatedPlan, Prepared]:
    """What ``AccumulatedPlan.clipped`` returns, without paying: clips from the sizes of the reference rows' steps."""
    histogram = SizeHistogram(plan.part.sizes, len(plan.part.steps), prepared.model.width)
    price = prepared.data.quote(histogram.question(None), mu=math.sqrt(CLIPS_SHARE) * total_mu)
    assert price.sigma is not None
    counts = np.zeros((len(plan.part.steps), len(histogram.edges)))
    rests = plan.part.reference_rest(plan.along)
    for place, (one, curve, rest) in enumerate(zip(plan.part.steps, plan.along.curves, rests, strict=True)):
        sizes = np.abs(rest)
        bins = np.minimum(np.searchsorted(histogram.edges, sizes), len(histogram.edges) - 1)
        # Every reference row speaks for every step, in proportion to the rows that the step has.
        shares = np.broadcast_to(one.gathered @ np.maximum(one.counts, 0.0) / len(curve), bins.shape)
        counts[place] = np.bincount(bins.ravel(), shares.ravel(), minlength=len(histogram.edges))
    paid = prepared.paid(price)
    return plan.with_clips(paid, weight, histogram.edges, counts, price.sigma), paid


def noise_of(prepared: Prepared, parts: Sequence[Part], weights: Sequence[float], rate: float) -> list[Floats]:
    """Per part, the standard deviation of the noise on each of its means."""
    joint = Joint(tuple(parts), tuple(weights))
    sigma = prepared.data.quote(joint.question(None, "", rate), mu=prepared.mu).sigma
    assert sigma is not None
    scaled = [np.full(block.size, sigma * block.bound / math.sqrt(share) / prepared.n_rows) for block, share in joint.scaled]
    ends = np.cumsum([len(part.blocks) for part in parts])
    return [np.concatenate(scaled[end - len(part.blocks) : end]) for part, end in zip(parts, ends, strict=True)]


def partial_widths(plan: PartialPlan, prepared: Prepared, stds: Floats, *, plain: bool) -> dict[str, float]:
    """By column (or pair): the median half-width of the curve's band after a rehearsed release."""
    generator = np.random.default_rng(SEED)
    curves = [curve[:, chosen] for curve, chosen in zip(plan.along.curves, plan.places, strict=True)]
    shares = _reweighted(generator, len(plan.along.rows), partial.EXPECTED_SCALE)
    shapes, levels = partial.split_levels([(shares @ curve)[None] for curve in curves])
    level = float(levels.mean())
    means = [shape[0] for shape in plan.part.sent(shapes)]
    if len(curves) > 1:
        means.append(levels[0] - level - plan.part.level_offsets)
    means.append(np.array([level - (prepared.model.lo + prepared.model.width / 2)]))
    return _medians(plan.curves(prepared, np.concatenate(means) + generator.normal(scale=stds), stds, plain=plain))


def accumulated_widths(plan: AccumulatedPlan, prepared: Prepared, stds: Floats, *, plain: bool) -> dict[str, float]:
    """By column: the median half-width of the curve's band after a rehearsed release."""
    generator = np.random.default_rng(SEED)
    shares = _reweighted(generator, len(plan.along.rows), steps.EXPECTED_SCALE)
    means = [
        one.gathered @ np.maximum(one.counts, 0.0) / prepared.n_rows * (shares @ rest)
        for one, rest in zip(plan.part.steps, plan.part.reference_rest(plan.along), strict=True)
    ]
    return _medians(plan.curves(prepared, np.concatenate(means) + generator.normal(scale=stds), stds, plain=plain))


def _reweighted(generator: np.random.Generator, n_rows: int, scale: float) -> Floats:
    """Shares of the reference rows under which mean curves are as far from the reference's as the prior expects."""
    draws = generator.normal(size=n_rows)
    found: Floats = (1 + math.sqrt(scale * n_rows) * (draws - draws.mean())) / n_rows
    return found


def _medians(curves: Mapping[tuple[str, ...], tuple[Axis, Floats, Floats]]) -> dict[str, float]:
    return {" x ".join(names): float(TWO_SIDED_95 * np.median(std)) for names, (_, _, std) in curves.items()}
