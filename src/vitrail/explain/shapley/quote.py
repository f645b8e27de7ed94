"""The price tag of Shapley values: how wide their bands would be, before anything is paid."""

from __future__ import annotations

from dataclasses import dataclass

from ...accounting import Cost, JsonValue, rounded_down, rounded_up
from ...guarantee import Guarantee
from ...results.band_claim import claim_of


@dataclass(frozen=True)
class ShapleyQuote:
    """What Shapley values would cost and how noisy they would be. No row was read for it.

    Attributes
    ----------
    half_width : float
        Half the width of a value's band, in units of the model's output.
    base_half_width : float
        The same for the base value.
    clip : float
        The clip that was assumed: with ``clip="auto"`` the width of the model's range, and widths are proportional to it.
    cost : Cost
        What would be charged.
    guarantee : Guarantee
        The promise the explanation would carry.
    fits : bool
        Whether the account can pay for it now.
    remaining_epsilon : float
        The largest single question the account can still pay for.
    """

    half_width: float
    base_half_width: float
    clip: float
    cost: Cost
    guarantee: Guarantee
    fits: bool
    remaining_epsilon: float

    def __str__(self) -> str:
        verdict, mark = "It fits" if self.fits else "It does not fit", claim_of("shapley").mark
        return (
            f"epsilon {rounded_up(self.guarantee.epsilon)} at delta {rounded_up(self.guarantee.delta)}: values within "
            f"+-{self.half_width:.3g}, the base value within +-{self.base_half_width:.3g} ({mark}, clip {self.clip:.4g}). "
            f"{verdict}: the largest question the account can still pay for is epsilon "
            f"{rounded_down(self.remaining_epsilon)}."
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as plain JSON values."""
        return {
            "half_width": self.half_width,
            "base_half_width": self.base_half_width,
            "clip": self.clip,
            "pico_mu_squared": self.cost.pico_mu_squared,
            "guarantee": self.guarantee.to_json(),
            "fits": self.fits,
            "remaining_epsilon": self.remaining_epsilon,
        }
