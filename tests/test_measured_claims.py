"""A band says "95 %, measured" only where benchmarks/results/bands.json has it, and at the bars of the protocol."""

import json
from pathlib import Path

import pytest

from vitrail.results.band_claim import CLAIMS, BandClaim

HEADLINE = json.loads((Path(__file__).parents[1] / "benchmarks/results/bands.json").read_text())["headline"]
MEASURED_AS = {
    "shapley": "shapley",
    "partial dependence": "pdp",
    "accumulated effects": "ale",
    "permutation importance": "importance",
    "private reasons": "reasons",
    "interactions": "interactions",
    "SHAP dependence": "shap_dependence",
    "local ridge": "local_statistics",
}
OVERALL, WORST = 0.93, 0.85


@pytest.mark.parametrize("kind", [kind for kind, claim in CLAIMS.items() if claim is BandClaim.MEASURED_95])
def test_what_says_measured_was_measured_and_held(kind: str) -> None:
    key = MEASURED_AS[kind]
    assert HEADLINE[f"{key}_overall"] >= OVERALL
    assert HEADLINE[f"{key}_worst"] >= WORST
