"""Quotes: what an explainer would cost and how good it would be, and what an accuracy would cost. Free; no row is read.

The recipe is run on a stand-in, so every explainer has a quote by having a recipe, and a quote shows the very
result that would be paid for, from rows that are nobody's. Its price is exact. Its bands are an estimate: good when the
stand-in is drawn from histograms that the analyst has seen, rougher when nothing but the schema is known.

*The stand-in*: rows drawn from the schema, or from histograms this analyst has already bought. It answers a recipe's
questions with sums scaled to the declared row count and noise at its real size, so that what comes out is a result like the
one that would be paid for, from nobody's rows. Its columns are drawn each on its own; a target is what the model says (drawn
with its probabilities, or its outputs), as if the model were right: drawn on its own, no column would matter to a loss.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from .. import _checks
from .._tables import html_table
from ..accounting import JsonValue, rounded_up
from ..accounting.gdp import LARGEST_MU
from ..accounting.releases import Release
from ..errors import InvalidInput, ModelError
from ..model import Model
from ..progress import progress
from ..results.marginals import Marginals
from ..results.verdict import Verdict, usual_verdict
from ..schema import FloatArray, Numeric, Schema
from ..solve.curves.reference import reference_rows
from ..vault import PublicRows, Quote
from .marginals import seen_marginals
from .recipe import N_CORNERS, Ask, Conversation, Side, Terms
from .split import price_of_units

if TYPE_CHECKING:
    from ..results.band_claim import BandClaim


R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

STAND_IN_ROWS = 1000
CLOSE_ENOUGH = 0.02
"""A search for an accuracy stops when the half-width is this much, relatively, below what was asked for."""
MOST_TRIES = 12
PRICE_STEP, CLEAR_ENOUGH = 4.0, 1.15
"""A search for a verdict multiplies the price by the first until it turns, and ends when two prices differ by the second."""
SMALLEST_PRICE = 1e-4
SEED = 22
"""Of the noise of a stand-in: it hides nothing, and a quote is the same again."""
BLOCK_ROWS = 256
MOST_SURROUNDINGS = 8
"""Draws that each end and each level is put into."""
MOST_EDGE_ROWS = 2048


@dataclass(frozen=True)
class Quoted(Generic[R_co]):
    """What an explainer would cost, and the result as it might look. No row was read for it.

    Attributes
    ----------
    price : Quote
        Cost, guarantee, and whether account and cap can pay for it now.
    result : object
        The result that the same recipe gives on rows that are nobody's. Its numbers say nothing about the data; its bands
        say how wide those of the real one would be.
    stands_on : str
        What the stand-in rows were drawn from: ``"the schema"``, or ``"histograms bought before"``.
    half_width : float or None
        The median half-width of the result's bands, in its own units (of one query point: the median over a few draws of the
        noise); None where it has no bands.
    verdict : Verdict or None
        Which to expect: that of the result, or the middle one of a few draws of the noise; None where it has no bands. An
        estimate: on the rows that it stands on, columns do not depend on each other, and the model is right about a target.

    Examples
    --------
    >>> import vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> nobody = {"age": [], "smoker": []}
    >>> data = vt.PrivateData(nobody, schema, name="patients", n_rows_public=9000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.3 * x[:, 0] + 0.4 * x[:, 2], range=(0, 1), name="risk")
    >>> quote = data.quote(vt.PartialDependence(data, model), epsilon=0.5)
    >>> quote.fits, quote.stands_on, 0 < quote.half_width < 0.05, str(quote.verdict)
    (True, 'the schema', True, 'clear')
    """

    price: Quote
    result: R_co
    stands_on: str
    half_width: float | None = None
    verdict: Verdict | None = None

    @property
    def fits(self) -> bool:
        """Whether account and cap can pay for it now."""
        return self.price.fits

    @property
    def half_widths(self) -> Mapping[str, tuple[float, BandClaim | None]]:
        """The median half-width of each part's bands and what they claim, by part; under no name for a single result."""
        claims: Mapping[str, BandClaim] | None = getattr(self.result, "band_claims", None)
        if claims is not None:
            widths: Mapping[str, float] = getattr(self.result, "half_widths", {})
            return {part: (width, claims[part]) for part, width in widths.items()}
        width = self.half_width
        return {} if width is None else {"": (width, getattr(self.result, "band_claim", None))}

    @property
    def widths_text(self) -> str:
        """All half-widths and claims in words."""
        return ", ".join(
            f"{part} +-{float(f'{width:.2g}'):g}".lstrip() + ("" if claim is None else f" ({claim.mark})")
            for part, (width, claim) in self.half_widths.items()
        )

    @property
    def verdict_text(self) -> str:
        """The verdict to expect, and what it was estimated from; empty without bands."""
        return "" if self.verdict is None else f"{self.verdict}, an estimate from rows drawn from {self.stands_on}"

    @property
    def epsilon(self) -> float:
        """What it would cost."""
        return self.price.guarantee.epsilon

    def __str__(self) -> str:
        widths = self.widths_text
        bands = f" Bands of about {widths}: an estimate from rows drawn from {self.stands_on}." if widths else ""
        verdict = f" Verdict to expect: {self.verdict_text}." if self.verdict_text else ""
        return f"{self.price}{bands}{verdict}"

    def _repr_html_(self) -> str:
        bands = (
            [("bands of about", f"{self.widths_text}, from rows drawn from {self.stands_on}")] if self.widths_text else []
        )
        verdict = [("verdict to expect", self.verdict_text)] if self.verdict_text else []
        return html_table(("", ""), [*self.price.cells, *bands, *verdict])

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        claim: BandClaim | None = getattr(self.result, "band_claim", None)
        widths: dict[str, JsonValue] = {part: width for part, (width, _) in self.half_widths.items() if part}
        fields: dict[str, JsonValue] = {"price": self.price.to_json(), "half_width": self.half_width}
        fields |= {"band_claim": None if claim is None else claim.value, "stands_on": self.stands_on}
        fields["verdict"] = None if self.verdict is None else self.verdict.value
        return fields | ({"half_widths": widths} if widths else {})


def quote_asked(
    conversation: Conversation[R],
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    half_width: float | None = None,
    verdict: str | None = None,
) -> Quoted[R]:
    """The quote at a price, or the cheapest with bands so narrow or a verdict so clear; one of them is given."""
    if half_width is None and verdict is None:
        return quote(conversation, conversation.currency.price(epsilon, mu, conversation.data.delta))
    if epsilon is not None or mu is not None or (half_width is not None and verdict is not None):
        raise InvalidInput(
            "give a quote a price (epsilon= or mu=) or an accuracy (half_width=, or verdict='clear'), and one of them only"
        )
    return quote_for_verdict(conversation, verdict) if half_width is None else quote_for(conversation, half_width)


def quote(conversation: Conversation[R], price: float) -> Quoted[R]:
    """The quote of a conversation at a price, in its currency."""
    data = conversation.data
    seen = conversation.seen if conversation.seen is not None else seen_marginals(data)
    terms, units = replace(conversation.terms(price), public_rows=STAND_IN_ROWS), conversation.currency.units(price)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of is said when it is asked for
        answer = stand_in(terms, STAND_IN_ROWS, seen, conversation.models[:1])
        results = [conversation.run(terms, units, answer) for _ in range(conversation.quote_draws)]
    stands_on = "the schema" if seen is None else "histograms bought before"
    known = [width for result in results if (width := getattr(result, "half_width", None)) is not None]
    verdicts = [verdict for result in results for verdict in _verdicts_of(result)]
    width = median(known) if known else None
    return Quoted(data.price_tag(conversation.currency.cost(units)), results[0], stands_on, width, usual_verdict(verdicts))


def _verdicts_of(result: object) -> tuple[Verdict, ...]:
    """Of a result, or of each of several by name, such as the classes of a model."""
    parts = [result] if hasattr(result, "verdict") or not isinstance(result, Mapping) else list(result.values())
    verdicts = (getattr(part, "verdict", None) for part in parts)
    return tuple(verdict for verdict in verdicts if verdict is not None)


def quote_for_verdict(conversation: Conversation[R], verdict: str | None) -> Quoted[R]:
    """The cheapest quote whose verdict is expected to be at least ``verdict``: price steps of 4, then halved in between."""
    wanted = Verdict(_checks.choice("verdict", verdict, (Verdict.CLEAR, Verdict.WEAK)))
    low, high, price, best = SMALLEST_PRICE, LARGEST_MU, 0.3, None
    with progress("looking for the price", MOST_TRIES) as advance:
        for _ in range(MOST_TRIES):
            tried = quote(conversation, price)
            advance(1)
            if tried.verdict is None:
                raise InvalidInput("this explainer has no bands, so no verdict can be asked of it; give a price instead")
            if tried.verdict.at_least(wanted):
                high, best = price, tried
            else:
                low = price
            if best is None:
                price = min(price * PRICE_STEP, LARGEST_MU)
            elif low == SMALLEST_PRICE:
                price = max(price / PRICE_STEP, SMALLEST_PRICE)
            else:
                price = math.sqrt(low * high)
            if low >= LARGEST_MU or high <= SMALLEST_PRICE or high / low < CLEAR_ENOUGH:
                break
    if best is None:
        dearest = conversation.currency.epsilon(min(low, LARGEST_MU), conversation.data.delta)
        raise InvalidInput(
            f"no price up to epsilon {rounded_up(dearest)} makes the verdict {wanted} on rows drawn from the schema or from "
            "histograms: what would be shown there is nothing, or too many columns or points are asked at once"
        )
    return best


def quote_for(conversation: Conversation[R], half_width: float) -> Quoted[R]:
    """The cheapest quote whose median band half-width is at most ``half_width``, by bisection over quotes.

    Half-widths fall about as one over the price, so the search steps on a logarithmic scale from the last two prices.
    """
    _checks.positive("half_width", half_width)
    low, high = SMALLEST_PRICE, LARGEST_MU
    price, best = 0.3, None
    with progress("looking for the price", MOST_TRIES) as advance:
        for _ in range(MOST_TRIES):
            tried = quote(conversation, price)
            advance(1)
            width = tried.half_width
            if width is None:
                raise InvalidInput("this explainer has no bands, so no accuracy can be asked of it; give a price instead")
            if width <= half_width:
                high, best = price, tried
                if width >= (1 - CLOSE_ENOUGH) * half_width or low / high > 1 - CLOSE_ENOUGH:
                    break
            else:
                low = price
                if high / low < 1 + CLOSE_ENOUGH:
                    break
            guess = price * width / (half_width * (1 - CLOSE_ENOUGH / 2))
            price = guess if low * 1.001 < guess < high * 0.999 else math.sqrt(low * high)
    if best is None:
        widest = conversation.currency.epsilon(min(low, LARGEST_MU), conversation.data.delta)
        raise InvalidInput(
            f"no price up to epsilon {rounded_up(widest)} makes the bands as narrow as {half_width:g}; they rest on more "
            "than noise. Ask for wider ones, or for fewer columns or points at once"
        )
    return best


def stand_in(terms: Terms, n_rows: int, marginals: Marginals | None = None, models: Sequence[Model] = ()) -> Side:
    """What the vault might answer if it held so many draws over the schema, or from released histograms by column.

    With a model, a target is what the first one says.
    """
    raw = reference_rows(terms.schema, marginals, n_rows, SEED, by_magnitude=True)
    for model in models[:1] if terms.target is not None else ():
        _put_targets(raw, terms, model)
    rows = PublicRows(
        terms.schema.frame(raw),
        terms.schema,
        n_rows,
        terms.target,
        terms.neighbours,
        min(BLOCK_ROWS, n_rows),
        watches=False,
    )
    noise = np.random.default_rng(SEED)

    def answer(ask: Ask, units: int, step: int) -> Release:
        mu = price_of_units(ask.question, units)
        return rows.scaled(ask.question, mu=mu, delta=terms.delta, n_rows=terms.n_rows_public, noise=noise)

    return answer


def _put_targets(raw: FloatArray, terms: Terms, model: Model) -> None:
    """Put targets as the model has them into rows; they stay where it fails, or gives no level's probability."""
    assert terms.target is not None
    number = list(terms.schema).index(terms.target)
    column, drawn = terms.schema[terms.target], raw[:, number].copy()
    try:
        outputs = model.predict_points(terms.feature_schema, np.delete(raw, number, axis=1))
    except Exception:  # what is wrong with it is said where the recipe asks it
        return
    chance = np.random.default_rng(SEED).random(len(raw)) < (outputs - model.lo) / model.width
    if isinstance(column, Numeric):
        binary = column.integer and (column.low, column.high) == (0, 1)
        targets = chance.astype(np.float64) if binary else np.clip(outputs, column.low, column.high)
        targets = np.round(targets) if column.integer else targets
    elif model.output in column.levels or len(column.levels) == 2:
        level = column.levels.index(model.output) if model.output in column.levels else 1
        others = np.where(drawn == level, (level + 1) % len(column.levels), drawn)
        targets = np.where(chance, float(level), others)
    else:
        return
    raw[:, number] = np.where(np.isfinite(outputs), targets, drawn)


def public_outputs(model: Model, schema: Schema, raw: FloatArray, what: str, where_is: Callable[[int], str]) -> FloatArray:
    """The outputs of a model on public rows (``what``), or an error that says where it fails."""
    try:
        outputs = model.predict_points(schema, raw)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{model.name} fails on {what}: {type(error).__name__}: {error}") from error
    if not (finite := np.isfinite(outputs)).all():
        where = where_is(int(np.argmin(finite)))
        raise ModelError(f"{model.name} returns no finite number {where}; it must inside the schema")
    return outputs


def try_model(model: Model, schema: Schema) -> None:
    """Raise ``ModelError`` if the model fails on public rows inside the schema. Free; to be called before the first charge.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> try_model(vt.Model(lambda x: x[:, 0], range=(0, 1), name="risk"), schema)
    >>> gap = vt.Model(lambda x: np.where((x[:, 0] == 0) & (x[:, 2] == 1), np.nan, 0.5), range=(0, 1), name="gap")
    >>> try_model(gap, schema)
    Traceback (most recent call last):
        ...
    vitrail.errors.ModelError: gap returns no finite number on a public row with 'age' at 0; it must inside the schema
    """
    model.check(schema)
    rows, names = edge_rows(schema)
    what = "public rows with a column at an end of its range, at a code or at a level"
    public_outputs(model, schema, rows, what, lambda row: f"on a public row with {names[row]}")


def edge_rows(schema: Schema) -> tuple[FloatArray, list[str]]:
    """Public draws with one column set to an end, a code or a level, and in words to which.

    Examples
    --------
    >>> import vitrail as vt
    >>> rows, names = edge_rows(vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])}))
    >>> rows.shape, names[0], names[-1]
    ((32, 2), "'age' at 0", "'smoker' at 'yes'")
    """
    edges: list[tuple[int, float, str]] = []
    for number, (name, column) in enumerate(schema.items()):
        if isinstance(column, Numeric):
            edges += [(number, end, f"{name!r} at {end:g}") for end in (column.low, column.high, *column.codes)]
        else:
            edges += [(number, float(index), f"{name!r} at {level!r}") for index, level in enumerate(column.levels)]
    edges = edges[:: -(-len(edges) // MOST_EDGE_ROWS)]
    surroundings = min(MOST_SURROUNDINGS, MOST_EDGE_ROWS // len(edges))
    rows = np.tile(schema.probe_rows(N_CORNERS + surroundings)[N_CORNERS:], (len(edges), 1))
    repeated = [edge for edge in edges for _ in range(surroundings)]
    rows[np.arange(len(rows)), [number for number, _, _ in repeated]] = [value for _, value, _ in repeated]
    return rows, [words for _, _, words in repeated]
