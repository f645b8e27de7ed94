"""What bands claim: results say what the table has of them, everywhere; what is not calibrated says 95 % nowhere."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.results.band_claim import CLAIMS, BandClaim, claim_of, weakest
from vitrail.show import figure_svg
from vitrail.solve.shapley.reasons import explain_on_rows

SOURCES = Path(__file__).resolve().parents[1] / "src/vitrail"
# Percentages beside a ranking are drawn numbers, and any of them may happen to be 95; a claim speaks of bands.
SAYS_95 = re.compile(r"95[\s\xa0]*%[^.;:<]{0,12}bands?\b|bands?\b[^.;:<]{0,12}95[\s\xa0]*%|nominal|probability[\s\xa0]+95")

SCHEMA = vt.Schema({"age": vt.Numeric(0, 100), "job": vt.Categorical(["a", "b"]), "rich": vt.Categorical(["no", "yes"])})
POINT = {"age": 70, "job": "b"}
N_ROWS = 600
MODEL = vt.Model(lambda x: 0.1 + 0.6 * x[:, 0] + 0.2 * x[:, 2], range=(0, 1), name="risk")


@pytest.fixture(scope="module")
def data() -> vt.PrivateData:
    generator = np.random.default_rng(4)
    rows = {
        "age": generator.uniform(0, 100, N_ROWS),
        "job": generator.choice(["a", "b"], N_ROWS),
        "rich": generator.choice(["no", "yes"], N_ROWS),
    }
    return vt.PrivateData(rows, SCHEMA, name="staff", n_rows_public=N_ROWS, target="rich", budget=vt.Budget(50_000.0, 1e-6))


LOCAL = {
    "statistics": lambda data: vt.LocalLinear(data, MODEL)(POINT, mu=2.0),
    "centred": lambda data: vt.LocalLinear(data, MODEL, intercept=False)(POINT, mu=2.0),
    "hard labels": lambda data: vt.LocalLinear(data, MODEL, labels="hard")(POINT, mu=2.0),
    "another weight": lambda data: vt.LocalLinear(data, MODEL, weight=vt.weights.exponential(0.3))(POINT, mu=2.0),
    "descent": lambda data: vt.LocalLinear(data, MODEL, method="descent")(POINT, mu=2.0),
    "adaptive": lambda data: vt.LocalLinear(data, MODEL, method="adaptive")(POINT, mu=2.0),
    "cells": lambda data: vt.LocalLinear(data, MODEL).fit(mu=2.0, kind=vt.linear.Cells(columns=("job",)))(POINT),
    "moments": lambda data: vt.LocalLinear(data, MODEL).fit(mu=2.0, kind="moments")(POINT),
    "rows": lambda data: vt.LocalLinear(data, MODEL).fit(mu=2.0, kind=vt.linear.Rows())(POINT),
    "classes": lambda data: next(iter(vt.LocalClasses(data, [MODEL])(POINT, mu=2.0).values())),
}


def assert_not_calibrated(text: str) -> None:
    assert "not calibrated" in text
    assert not SAYS_95.search(text), SAYS_95.search(text)


def assert_says(claim: BandClaim, text: str) -> None:
    """The claim, and not another one."""
    if claim.calibrated:
        assert SAYS_95.search(text)
        assert "not calibrated" not in text
    else:
        assert_not_calibrated(text)


MEASURED = {"statistics": "local statistics", "classes": "local statistics"}
MEASURED |= {method: f"local {method}" for method in ("moments", "cells", "centred", "descent", "adaptive")}
"""Methods of local explanations that the benchmark on bands has measured."""


def pictures_of(e: vt.Attribution) -> list[str]:
    figures = [e.plot.bar(), e.plot.bars([0]), e.plot.waterfall()]
    return [figure_svg(figure).decode() for figure in figures]


def test_the_search_finds_what_it_is_for() -> None:
    for claim in (BandClaim.MEASURED_95, BandClaim.NOISE_LAW_95):
        for said in (claim.column, claim.bands, claim.band, claim.brief, claim.probability):
            assert SAYS_95.search(said), said
    assert SAYS_95.search("Bands cover the noise of the release, nominally 95 %; sampling error is not in them")
    for said in ("0.95rem", ">95 %<", BandClaim.NOT_CALIBRATED.sentence()):
        assert not SAYS_95.search(said)


@pytest.mark.parametrize("method", LOCAL)
def test_local_linear_explanations_say_so_everywhere(method, data) -> None:
    e, claim = LOCAL[method](data), claim_of(MEASURED.get(method, "local linear"))
    assert e.lower is not None
    assert e.band_claim is claim
    for text in (repr(e), str(e), e.summary(), e._repr_html_(), " ".join(e.sentences), *pictures_of(e)):
        assert_says(claim, text)
    assert not SAYS_95.search(" ".join(e.notes))
    again = vt.Attribution.from_json(json.loads(json.dumps(e.to_json())))
    assert again.band_claim is e.band_claim
    assert again[0].band_claim is e.band_claim


@pytest.mark.parametrize("estimate", ["smooth", "plain"])
def test_permutation_importance_says_so_everywhere(estimate, data) -> None:
    ranking = vt.PermutationImportance(data, MODEL, estimate=estimate)(mu=2.0)
    claim = claim_of("permutation importance") if estimate == "smooth" else BandClaim.NOT_CALIBRATED
    assert ranking.band_claim is claim
    page = ranking.to_html()
    for text in (
        repr(ranking),
        ranking._repr_html_(),
        figure_svg(ranking.plot()).decode(),
        page,
        " ".join(ranking.sentences),
    ):
        assert_says(claim, text)
    assert vt.Ranking.from_json(json.loads(json.dumps(ranking.to_json()))).band_claim is ranking.band_claim


@pytest.mark.parametrize("estimate", ["smooth", "plain"])
def test_accumulated_effects_say_so_everywhere(estimate, data) -> None:
    effects = vt.AccumulatedEffects(data, MODEL, estimate=estimate)(mu=2.0)
    claim = claim_of("accumulated effects") if estimate == "smooth" else BandClaim.NOT_CALIBRATED
    assert effects.band_claim is claim
    assert_says(claim, repr(effects))
    assert_says(claim, figure_svg(effects.plot()).decode())
    for curve in effects.values():
        assert curve.band_claim is claim
        for text in (repr(curve), curve._repr_html_(), figure_svg(curve.plot()).decode(), " ".join(curve.sentences)):
            assert_says(claim, text)
        assert vt.Curve.from_json(json.loads(json.dumps(curve.to_json()))).band_claim is curve.band_claim


@pytest.mark.parametrize("on", ["rows", "histograms"])
def test_a_report_says_of_each_part_what_it_claims(on, data, tmp_path) -> None:
    """What leans on histograms alone was not measured."""
    given = vt.marginals(data, mu=2.0) if on == "histograms" else None
    report = vt.GlobalReport(data, MODEL, parts=["pdp", "ale", "importance"], marginals=given)(mu=2.0)
    kinds = {"pdp": "partial dependence", "ale": "accumulated effects", "importance": "permutation importance"}
    claims = {part: BandClaim.NOT_CALIBRATED if given else claim_of(kind) for part, kind in kinds.items()}
    again = vt.Report.load(report.save(tmp_path / "report.json"))
    for found in (report, again):
        assert dict(found.band_claims) == claims
        page, notebook = found.to_html(), found._repr_html_()
        for text in (page, notebook):
            for part in ("pdp", "ale"):
                assert claims[part].sentence(kinds[part]) in text
        assert claims["importance"].sentence() in page  # its card
        assert "± " in page
        assert ("(not calibrated)" in page) is any(not claim.calibrated for claim in claims.values())


def test_the_page_of_accumulated_effects_alone_claims_what_they_do(data) -> None:
    """Histograms on the page keep their own claim, so the part about columns is looked at by itself."""
    page = vt.GlobalReport(data, MODEL, parts=["ale"])(mu=2.0).to_html()
    assert_says(
        claim_of("accumulated effects"), page.split('<h2 id="columns">Column by column</h2>')[1].split("</section>")[0]
    )


def test_quotes_say_what_the_bands_would_claim(data) -> None:
    claim, local = claim_of("local statistics"), vt.LocalLinear(data, MODEL).quote(POINT, mu=2.0)
    assert f"({claim.mark})" in str(local)
    assert local.to_json()["band_claim"] == claim.value
    hard = vt.LocalLinear(data, MODEL, labels="hard")
    assert_not_calibrated(str(hard.quote(POINT, mu=2.0)))
    marks = {kind: re.escape(claim_of(kind).mark) for kind in ("partial dependence", "accumulated effects")}
    for explainer in (vt.PermutationImportance, vt.AccumulatedEffects):
        assert f"({claim_of(explainer.KIND).mark})" in str(explainer(data, MODEL).quote(mu=2.0))
    report = vt.GlobalReport(data, MODEL, parts=["pdp", "ale"]).quote(mu=2.0)
    of_pdp, of_ale = marks.values()
    assert re.search(rf"pdp \+-\S+ \({of_pdp}\), ale \+-\S+ \({of_ale}\)", str(report))
    pairs = vt.PartialDependence(data, MODEL, columns=[("age", "job")]).quote(mu=2.0)
    assert pairs.half_widths[""][1] is BandClaim.NOT_CALIBRATED


def test_what_keeps_its_claim_still_says_it(data) -> None:
    found, claim = vt.Shapley(data, MODEL)(POINT, mu=2.0), BandClaim.MEASURED_95
    assert found.band_claim is claim
    assert SAYS_95.search(repr(found))
    assert claim.sentence() in found._repr_html_()
    assert type(found).from_json(found.to_json()).band_claim is claim


@pytest.mark.usefixtures("planted_noise")  # where columns are not tied, noise alone ties them now and then
@pytest.mark.parametrize(
    ("tied", "claim"), [(True, claim_of("private reasons of any model")), (False, BandClaim.NOT_CALIBRATED)]
)
def test_reasons_claim_what_was_measured_only_on_rows_that_hold_links(tied, claim) -> None:
    """No band shows what private rows leave out that hold nothing of what columns have in common."""
    age, coins = np.repeat([20.0, 80.0], N_ROWS // 2), np.random.default_rng(5).permutation(N_ROWS) % 2
    columns = {"age": age, "job": np.array(["a", "b"])[(age > 50).astype(int) if tied else coins]}
    schema = SCHEMA.without("rich")
    data = vt.PrivateData(columns, schema, name="staff", n_rows_public=N_ROWS, budget=vt.Budget(50_000.0, 1e-6))
    rows = vt.private_rows(data, mu=20.0 if tied else 0.05)
    assert bool(rows.tree) is tied
    found = explain_on_rows([MODEL], schema, schema.read_points(POINT), rows)[0]
    assert found.band_claim is claim
    assert claim.sentence() in found._repr_html_()
    pane = vt.release(data, MODEL, parts=["rows", "reasons"], mu=20.0 if tied else 0.05, key="a pane")
    own = claim_of("private reasons") if tied else BandClaim.NOT_CALIBRATED
    assert pane.local(POINT, bands=True).band_claim is own


def test_who_says_nothing_claims_nothing() -> None:
    """A result made by hand, or by an explainer that the table does not know."""
    made = vt.Curve("x", "mine", np.arange(3.0), np.zeros(3), vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost(), std=np.ones(3))
    assert made.band_claim is BandClaim.NOT_CALIBRATED
    assert claim_of("mine") is BandClaim.NOT_CALIBRATED
    assert weakest([BandClaim.NOISE_LAW_95, BandClaim.NOT_CALIBRATED, BandClaim.MEASURED_95]) is BandClaim.NOT_CALIBRATED
    assert weakest([BandClaim.MEASURED_95, BandClaim.NOISE_LAW_95]).calibrated
    with pytest.raises(InvalidInput, match="band_claim of a curve is str; it must be a BandClaim"):
        replace(made, band_claim="95 %")
    for wrong in ("95 %", None, 3):
        with pytest.raises(InvalidInput, match="'band_claim' must be one of"):
            vt.Curve.from_json({**made.to_json(), "band_claim": wrong})


def test_what_nobody_has_measured_is_in_the_table_as_that() -> None:
    for kind in ("local linear", "partial dependence of pairs", "private reasons of any model"):
        assert CLAIMS[kind] is BandClaim.NOT_CALIBRATED


# --- the class stays closed -------------------------------------------------------------------------------------------

ROOMS = ("show", "cli", "pane", "results", "explain/linear")
WORDS = re.compile(r"95(?:[\s\xa0]|\\u00a0)*(?:%|per ?cent)|nominal(?:ly)?\b", re.IGNORECASE)


def test_no_room_words_the_claim_by_itself() -> None:
    files = [path for room in ROOMS for path in sorted((SOURCES / room).rglob("*")) if path.suffix in (".py", ".html")]
    assert SOURCES / "show" / "templates" / "report.html" in files
    files += [SOURCES / "explain" / f"{name}.py" for name in ("effects", "permutation_importance", "joint_sum")]
    assert len(files) > 50
    found = [str(path.relative_to(SOURCES)) for path in files if WORDS.search(path.read_text(encoding="utf-8"))]
    found.remove("show/other_displays.py")  # "nominal" is interpret's word for a column of levels
    assert found == ["results/band_claim.py"]


def test_the_width_of_a_band_is_written_once() -> None:
    number = re.compile(r"1\.9(?:6|5996\d*)")
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, float) and number.fullmatch(repr(node.value)):
                found.append(str(path.relative_to(SOURCES)))
    assert found == ["results/band_claim.py"]
