"""The price tag before the purchase. It never touches rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from .._tables import html_table
from ..accounting import Cost, JsonValue, dearest, rounded_down, rounded_up
from ..accounting.guarantee import Guarantee
from ..ledger import Part, Statement

Tag = TypeVar("Tag", covariant=True)


@runtime_checkable
class Priced(Protocol[Tag]):
    """An explainer that knows what its epsilon would buy."""

    def quote(self, *, epsilon: float | None, mu: float | None, half_width: float | None, verdict: str | None) -> Tag:
        """Its own price tag."""


@dataclass(frozen=True)
class Quote:
    """What a question would cost and how noisy its answer would be.

    Attributes
    ----------
    cost : Cost
        What would be charged.
    guarantee : Guarantee
        The promise the release would carry: for what is charged, without results paid for before that are used beside it.
    sigma : float or None
        Noise standard deviation of one coordinate of the sum.
    sigma_per_row : float or None
        The same, divided by the declared row count: the noise of a mean.
    fits : bool
        Whether the account can pay for it now.
    remaining_epsilon : float
        The largest single question the account can still pay for (of this part, where there is one).
    adds : Cost
        What it would add to what the account has spent: the cost itself, or, for a question to one of several disjoint parts
        of the rows, what it takes that part beyond the dearest one.
    part : str or None
        The part that is asked, in words.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100)})
    >>> data = vt.PrivateData({"age": np.arange(100.0)}, schema, name="ages", n_rows_public=100, budget=vt.Budget(1, 1e-6))
    >>> quote = data.quote(vt.BoundedSum(lambda block: block.features, 1, 1.0), epsilon=0.5)
    >>> quote.fits, round(quote.sigma, 1)
    (True, 8.1)
    """

    cost: Cost
    guarantee: Guarantee
    sigma: float | None
    sigma_per_row: float | None
    fits: bool
    remaining_epsilon: float
    adds: Cost
    part: str | None = None

    def __str__(self) -> str:
        noise = ""
        if self.sigma is not None:
            noise = (
                f" Noise: {self.sigma:.4g} on the sum, {self.sigma_per_row:.3g} on a mean over the declared rows (one std)."
            )
        if self.part is not None:
            free = "nothing, another part being dearer so far,"
            adding = free if self.adds == Cost() else f"mu {rounded_up(self.adds.mu)}"
            noise += f" It goes to {self.part}, and adds {adding} to what the account has spent."
        verdict = "It fits" if self.fits else "It does not fit"
        mu = f" (mu {rounded_up(self.guarantee.mu)})" if self.guarantee.mu else ""
        return (
            f"epsilon {rounded_up(self.guarantee.epsilon)} at delta {rounded_up(self.guarantee.delta)}{mu}.{noise} "
            f"{verdict}: the largest question the account can still pay for is epsilon "
            f"{rounded_down(self.remaining_epsilon)}."
        )

    @property
    def cells(self) -> tuple[tuple[str, str], ...]:
        """What it would cost, line by line: a word and a text."""
        promise = self.guarantee
        mu = f" (mu {rounded_up(promise.mu)})" if promise.mu else ""
        price = f"ε = {rounded_up(promise.epsilon)} at δ = {rounded_up(promise.delta)}{mu}"
        lines = [("price", price)]
        if self.sigma is not None:
            noise = f"{self.sigma:.4g} on the sum, {self.sigma_per_row:.3g} on a mean over the declared rows"
            lines.append(("noise (one std)", noise))
        if self.part is not None:
            lines += [("asked of", self.part), ("adds to the account", f"mu {rounded_up(self.adds.mu)}")]
        fits = f"{'yes' if self.fits else 'no'}: the largest question is ε = {rounded_down(self.remaining_epsilon)}"
        return (*lines, ("fits", fits))

    def _repr_html_(self) -> str:
        return html_table(("", ""), self.cells)

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        as_they_are = ("sigma", "sigma_per_row", "fits", "remaining_epsilon", "part")
        return {
            "pico_mu_squared": self.cost.pico_mu_squared,
            "guarantee": self.guarantee.to_json(),
            "added_pico_mu_squared": self.adds.pico_mu_squared,
            **{name: getattr(self, name) for name in as_they_are},
        }


def price_tag(
    statement: Statement, cost: Cost, sigma: float | None, n_rows_public: int, *, analyst: str, part: Part | None
) -> Quote:
    """What this cost would promise and add to the account, and whether account and cap can pay for it now."""
    exposed, remaining, adds = statement.spent, statement.remaining_epsilon, cost
    if part is not None:
        line = statement.of_part(part)
        exposed, remaining = line.exposed, line.remaining_epsilon
        adds = statement.spent.left_of(dearest((statement.spent, exposed + cost)))
    fits = exposed + cost <= statement.capacity
    # How much of a cap one part of the rows has used is not in the statement: there the ledger decides alone.
    own = next((line for line in statement.analysts if line.analyst == analyst), None) if part is None else None
    if own is not None and own.capacity is not None and own.remaining_epsilon is not None:
        fits = fits and own.spent + cost <= own.capacity
        remaining = min(remaining, own.remaining_epsilon)
    promise = Guarantee.of_mu(cost.mu, statement.delta, statement.neighbours)
    if cost.block_epsilon:  # of the purse where epsilons add up, and nothing else: recipes have one currency
        promise = Guarantee(cost.block_epsilon, cost.block_delta, 0.0, statement.neighbours)
        remaining = statement.training_remaining[0]
    per_row = None if sigma is None else sigma / n_rows_public
    return Quote(cost, promise, sigma, per_row, fits, remaining, adds, None if part is None else str(part))
