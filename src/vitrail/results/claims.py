"""Which explainer's bands claim what, and why. An explainer that is not named here claims nothing.

*95 % of the noise*, by construction: the number shown is linear in released sums, so that its noise is Gaussian with a
standard deviation that is computed, not estimated. Histograms, Shapley values of a batch, means over groups, mean sizes of
Shapley values. What clipping took from the sums is not noise, and their notes say so.

*95 %, measured*: partial dependence is pulled towards public reference curves, so its bands rest on a prior; how often they
held on three datasets is in benchmarks/results/global.json.

*Not calibrated*: bands of local linear explanations (all methods, and what a pane says of a person), of permutation
importance and of accumulated effects were fitted or tried on the data they were then measured on, and do not hold on data
nobody tuned on. Bands of interactions, SHAP dependence and pairs of columns are first-order approximations (ratios of noisy
numbers, a prior) that no benchmark has measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .band_claim import BandClaim

CLAIMS: Mapping[str, BandClaim] = MappingProxyType(
    {
        "marginals": BandClaim.NOISE_LAW_95,
        "shapley": BandClaim.NOISE_LAW_95,
        "any curve": BandClaim.NOISE_LAW_95,
        "any ranking": BandClaim.NOISE_LAW_95,
        "SHAP importance": BandClaim.NOISE_LAW_95,
        "partial dependence": BandClaim.MEASURED_95,
        "partial dependence of pairs": BandClaim.NOT_CALIBRATED,
        "accumulated effects": BandClaim.NOT_CALIBRATED,
        "permutation importance": BandClaim.NOT_CALIBRATED,
        "local linear": BandClaim.NOT_CALIBRATED,
        "interactions": BandClaim.NOT_CALIBRATED,
        "SHAP dependence": BandClaim.NOT_CALIBRATED,
    }
)
"""By the kind of explanation, as results name it."""


def claim_of(kind: str) -> BandClaim:
    """What its bands claim.

    Examples
    --------
    >>> claim_of("local linear").value, claim_of("an explainer of tomorrow").value
    ('not calibrated', 'not calibrated')
    """
    return CLAIMS.get(kind, BandClaim.NOT_CALIBRATED)
