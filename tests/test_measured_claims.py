"""A band says "95 %, measured" only where a benchmark has measured it, and at the bars of the protocol."""

import json
from pathlib import Path

import pytest

from vitrail.results.band_claim import CLAIMS, BandClaim

RESULTS = Path(__file__).parents[1] / "benchmarks/results"
MEASURED_AS = {
    "shapley": ("bands.json", "shapley_overall", "shapley_worst"),
    "partial dependence": ("bands.json", "pdp_overall", "pdp_worst"),
    "accumulated effects": ("bands.json", "ale_overall", "ale_worst"),
    "permutation importance": ("bands.json", "importance_overall", "importance_worst"),
    "interactions": ("bands.json", "interactions_overall", "interactions_worst"),
    "SHAP dependence": ("bands.json", "shap_dependence_overall", "shap_dependence_worst"),
    "local statistics": ("bands.json", "local_statistics_overall", "local_statistics_worst"),
    "local moments": ("bands.json", "local_moments_overall", "local_moments_worst"),
    "private reasons": ("bands.json", "reasons_overall", "reasons_worst"),
}
OVERALL, WORST = 0.93, 0.85


@pytest.mark.parametrize("kind", [kind for kind, claim in CLAIMS.items() if claim is BandClaim.MEASURED_95])
def test_what_says_measured_was_measured_and_held(kind: str) -> None:
    file, overall, worst = MEASURED_AS[kind]
    headline = json.loads((RESULTS / file).read_text())["headline"]
    assert headline[overall] >= OVERALL
    assert headline[worst] >= WORST
    elsewhere = json.loads((RESULTS / "bands_elsewhere.json").read_text())["headline"]
    for key, bar in ((overall, OVERALL), (worst, WORST)):  # None: all of it called itself mostly noise
        assert elsewhere.get(key) is None or elsewhere[key] >= bar
