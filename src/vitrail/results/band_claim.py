"""What a band claims: how often it holds the value that the explainer would have found without noise. All words for it.

A band is two numbers; that it holds 95 % of the time is a claim, and a claim needs either a law or a measurement on data
that nobody tuned on. So every result carries one of three, ``NOT_CALIBRATED`` unless its explainer is named in ``CLAIMS``,
and every picture, page, file and command asks here how to say it. The words "95 %" stand nowhere else in what is shown; a
test looks.

*95 % of the noise*, by construction: the number shown is linear in released sums, so that its noise is Gaussian with a
standard deviation that is computed, not estimated, or the ratio of two such numbers (Fieller's set). What clipping took from
the sums is not noise, and notes say so.
*95 %, measured*: they held at the bars of the protocol (93 % over all columns, 85 % in the worst column of all) wherever
they were measured, also on data that nobody had looked at (docs/bands.md; benchmarks/results/bands.json and the files named
bands_*.json). tests/test_measured_claims.py compares.
*Not calibrated*: what misses a bar somewhere (docs/bands.md says where and by how much): reasons of another model than a
pane's own on private rows, by far where it knows its training rows by heart; local lines on rows sampled from private tables
(``fit(kind="rows")``), where a model does, or columns measure the same. And what no benchmark has measured: pairs of
columns, values as released (``estimate="plain"``), results that lean on histograms and not on private rows, local lines of
another weight, of hard labels or seen through a view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

TWO_SIDED_95 = 1.959963984540054
"""A normal variable is within so many standard deviations of its mean in 95 % of all draws."""


class BandClaim(StrEnum):
    """How often a band holds what it is drawn around. The values are what files say.

    Attributes
    ----------
    calibrated : bool
        Whether it says 95 %.
    column, bands, band, brief : str
        The title of a column of half-widths; what lines and bars are, inside a sentence; one of them; the last words of a
        result in one line.
    mark, probability : str
        In brackets behind a half-width; behind "within so much of the true one".
    order : str
        How sure the order of two scores is, where a ranking says so.

    Examples
    --------
    >>> BandClaim.NOT_CALIBRATED.column, BandClaim.NOISE_LAW_95.column
    ('band, not calibrated', '95 % noise band')
    """

    MEASURED_95 = "95 %, measured"
    """Nominally 95 %, and a benchmark says how often it held."""
    NOISE_LAW_95 = "95 % of the noise"
    """The noise is Gaussian of known width on the very number that is shown; nothing else is claimed."""
    NOT_CALIBRATED = "not calibrated"
    """Drawn from the noise; on data nobody tuned on it holds more rarely, or nobody has looked."""

    def __init__(self, value: str) -> None:
        known = self.calibrated = value != "not calibrated"
        self.column = "95 % noise band" if known else "band, not calibrated"
        self.bands = "95 % noise bands" if known else "noise bands, not calibrated"
        self.band = "95 % noise band" if known else "noise band (not calibrated)"
        self.brief = "95 % noise bands" if known else "bands not calibrated"
        self.mark = "95 %" if known else "not calibrated"
        self.probability = "with probability 95 %" if known else "by the noise alone (not calibrated)"
        self.order = "how sure the order of each pair is" + ("" if known else ", by the noise alone (not calibrated)")

    def sentence(self, what: str = "") -> str:
        """The claim in full; ``what`` the bands are of, where there are several kinds.

        Examples
        --------
        >>> BandClaim.NOISE_LAW_95.sentence().split(",")[0]
        'Bands hold the privacy noise in 95 % of all draws'
        >>> BandClaim.NOT_CALIBRATED.sentence("accumulated effects").split(" and")[0]
        'Bands of accumulated effects show the privacy noise'
        """
        return (f"Bands of {what} " if what else "Bands ") + _SENTENCES[self]


_SENTENCES = {
    BandClaim.MEASURED_95: (
        "are nominal 95 % noise bands, for each number on its own; how often they held is measured in the benchmarks."
    ),
    BandClaim.NOISE_LAW_95: (
        "hold the privacy noise in 95 % of all draws, for each number on its own; nothing else that moves a value is in "
        "them."
    ),
    BandClaim.NOT_CALIBRATED: (
        "show the privacy noise and what else is known to move a value, and are not calibrated on unseen data: the value "
        "without noise can lie outside more often than they suggest."
    ),
}


def weakest(claims: Iterable[BandClaim]) -> BandClaim:
    """What can be said of several together.

    Examples
    --------
    >>> weakest([BandClaim.NOISE_LAW_95, BandClaim.NOT_CALIBRATED]).value
    'not calibrated'
    """
    return max(claims, key=list(BandClaim).index)


CLAIMS: Mapping[str, BandClaim] = MappingProxyType(
    {
        "marginals": BandClaim.NOISE_LAW_95,
        "shapley": BandClaim.MEASURED_95,
        "any curve": BandClaim.NOISE_LAW_95,
        "any ranking": BandClaim.NOISE_LAW_95,
        "SHAP importance": BandClaim.NOISE_LAW_95,
        "partial dependence": BandClaim.MEASURED_95,
        "private reasons": BandClaim.MEASURED_95,
        "private reasons of any model": BandClaim.NOT_CALIBRATED,
        "partial dependence of pairs": BandClaim.NOT_CALIBRATED,
        "accumulated effects": BandClaim.MEASURED_95,
        "permutation importance": BandClaim.MEASURED_95,
        "local statistics": BandClaim.MEASURED_95,
        "local moments": BandClaim.MEASURED_95,
        "local cells": BandClaim.MEASURED_95,
        "local centred": BandClaim.MEASURED_95,
        "local descent": BandClaim.MEASURED_95,
        "local adaptive": BandClaim.MEASURED_95,
        "local enhanced": BandClaim.MEASURED_95,
        "local linear": BandClaim.NOT_CALIBRATED,
        "interactions": BandClaim.MEASURED_95,
        "SHAP dependence": BandClaim.MEASURED_95,
        "groups": BandClaim.NOISE_LAW_95,
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
