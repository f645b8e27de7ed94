"""What a pane says of its bands: each result its own claim, on pages, in files, and after a round trip.

The pane's rows hold nothing of what columns have in common, so that a person's reasons are not calibrated.
"""

import json
import re
from dataclasses import replace

import pytest
from pane_setup import PERSON, opened

import vitrail as vt
from vitrail.results.band_claim import BandClaim, claim_of

SAYS_95 = re.compile(r"(?<![\d.])95[\s\xa0]*%")


def test_moments_claim_what_was_measured(made):
    found = vt.Pane.from_bytes(made.content, model=made.model).local(PERSON, method="moments", bands=True)
    assert found.band_claim is claim_of("local moments")
    assert found.band_claim.brief in repr(found)


@pytest.mark.parametrize("method", ["shapley", "linear"])
def test_local_bands_are_not_calibrated(made, method):
    pane = vt.Pane.from_bytes(made.content, model=made.model)
    found = pane.local(PERSON, method=method, bands=True)
    assert found.lower is not None
    assert found.band_claim is BandClaim.NOT_CALIBRATED
    counted = "" if found.rows_counted is None else found.rows_counted.sentence  # its noise has a law
    for text in (repr(found), str(found), found._repr_html_()):
        assert "not calibrated" in text
        assert not SAYS_95.search(text.replace(counted, ""))


def test_a_persons_page_and_file_say_so(made, tmp_path):
    person = vt.Pane.from_bytes(made.content, model=made.model).explain(PERSON)
    page = person.to_html()
    why, numbers = (page.split(f'id="{part}"')[1].split("</section>")[0] for part in ("why", "numbers"))
    assert "a rough guide, which is not calibrated" in why
    assert BandClaim.NOT_CALIBRATED.sentence() in numbers
    assert not SAYS_95.search(why + numbers)
    stored = json.loads(person.write_json(tmp_path / "person.json").read_text())
    assert stored["explanation"]["band_claim"] == "not calibrated"
    assert {standing["band_claim"] for standing in stored["standings"]} == {person.standings[0].curve.band_claim.value}


def test_a_page_says_of_curves_what_they_claim(made):
    person = vt.Pane.from_bytes(made.content, model=made.model).explain(PERSON)
    ale = vt.Pane.from_bytes(made.content).report.ale
    for claim in BandClaim:
        standing = [
            type(one)(one.column, one.value, replace(ale[one.column], band_claim=claim), one.output, one.half_width)
            for one in person.standings
        ]
        page = replace(person, standings=tuple(standing)).to_html()
        assert claim.sentence() in page
        assert f"({claim.mark})" in page
        said = page.replace(BandClaim.NOISE_LAW_95.value, "")  # of the row count in the label: a law
        assert bool(SAYS_95.search(said)) is claim.calibrated


CLAIMS = {
    "pdp": claim_of("partial dependence"),
    "ale": claim_of("accumulated effects"),
    "importance": claim_of("permutation importance"),
}


def marks(accuracy):
    return re.findall(r"\((not calibrated|95 %)\)", accuracy)


def test_the_claims_are_in_the_file(made):
    again = vt.Pane.from_bytes(made.content)
    assert dict(again.report.band_claims) == CLAIMS
    assert marks(again.accuracy()["global report"]) == [claim.mark for claim in CLAIMS.values()]


def test_a_quote_says_what_its_bands_would_claim(made):
    data = opened()
    accuracy = data.quote(vt.pane.PaneExplainer(data, made.model), epsilon=1.0).result.accuracy()["global report"]
    assert marks(accuracy) == [claim.mark for claim in CLAIMS.values()]
