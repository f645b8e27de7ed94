"""`vitrail report` as a person or a pipe uses it, on census rows and a small ONNX tree."""

import json
import shutil
from pathlib import Path

import pytest

import vitrail as vt
from command_line import census, words_of
from vitrail.results.band_claim import claim_of

N_ROWS = 3000
COLUMNS = ["age", "hours-per-week", "sex"]
LOCAL_CODE = """
import numpy as np

def depends_on_others(features):
    return np.clip(features[:, 0] - 1e-7 * features[:, 0].mean(), 0, 1)

def rolls_dice(features):
    return np.random.uniform(size=len(features))

def nan_for_the_old(features):
    return np.where(features[:, 0] > 0.9, np.nan, features[:, 0])
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    census(folder, COLUMNS, N_ROWS, max_depth=3)
    (folder / "local_code.py").write_text(LOCAL_CODE)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here"))


def words(**changed: object) -> list[object]:
    """A good question, with some of its options changed."""
    options: dict[str, object] = {"schema": "schema.json", "model": "model.onnx", "epsilon": 0.5, "target": "income"}
    return words_of("report", options | {"rows": N_ROWS, "budget": 2, "ledger": "l.db"}, changed)


def test_a_page_and_a_file_from_one_price_and_again_for_nothing(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(), "-o", "r.html", "-o", "r.json")
    assert ran.code == 0, ran.err
    assert "The answer cost epsilon 0.5. Spent so far: epsilon 0.5 of 2" in ran.out
    assert "Written: r.html, r.json" in ran.out
    assert "is a new ledger" in ran.err
    page = (folder / "r.html").read_text(encoding="utf-8")
    for heading in ("Privacy label", "What matters most", "Column by column", "Who is in the data", "The bill"):
        assert heading in page
    found = vt.Report.load(folder / "r.json")
    assert found.parts == ("pdp", "ale", "importance")
    assert set(found.pdp) == set(COLUMNS)
    again = run(*words(), "-o", "again.json")
    assert "was stored already and cost nothing. Spent so far: epsilon 0.5 of 2" in again.out
    assert (folder / "again.json").read_text() == (folder / "r.json").read_text()


def test_a_pipe_gets_a_table_and_the_promise(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words())
    assert ran.code == 0, ran.err
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert lines[0][:2] == ["column", "importance"]
    assert {line[0] for line in lines[1:4]} == set(COLUMNS)
    scores = [float(line[1]) for line in lines[1:4]]
    assert scores == sorted(scores, reverse=True)
    assert "(epsilon = 0.5, delta = 1e-06)-differential privacy" in ran.out


def test_columns_and_parts_are_chosen(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(column="age"), "--column", "sex", "--parts", "pdp", "--json")
    assert ran.code == 0, ran.err
    found = vt.Report.from_json(json.loads(ran.out))
    assert (found.parts, list(found.pdp)) == (("pdp",), ["age", "sex"])


def test_a_quote_is_free_and_opens_no_ledger(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(), "--quote")
    assert ran.code == 0, ran.err
    assert "The price of pdp, ale, importance of 3 columns: epsilon 0.5 at delta" in ran.out
    assert "importance ±" in ran.out
    assert "It fits" in ran.out
    assert not (folder / "l.db").exists()
    read = json.loads(run(*words(epsilon=5), "--quote", "--json").out)
    assert read["price"]["fits"] is False
    assert set(read["half_widths"]) == {"pdp", "ale", "importance"}


def test_a_quote_knows_what_was_spent(run) -> None:  # type: ignore[no-untyped-def]
    assert run(*words(epsilon=1.8), "-o", "r.json").code == 0
    assert "It does not fit" in run(*words(epsilon=1.5), "--quote").out


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "local_code:depends_on_others", "range": None, "key": "k"}, "--range"),
        ({"column": "aeg"}, "aeg"),
        ({"parts": "lime"}, "parts names 'lime', which is none of pdp, ale, importance, shap"),
        ({"parts": "importance", "target": None, "loss": "log"}, "loss is 'log' and this dataset declares no target"),
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"sampling_rate": 0}, "sampling_rate is 0"),
        ({"ledger": "memory"}, "would forget the bill"),
        ({"data": "poeple.parquet"}, "there is no data"),
        ({"output_file": "r.pdf"}, "must end in .html or .json"),
        ({"output_file": "nowhere/r.html"}, "there is no folder"),
        ({"epsilon": -1}, "epsilon"),
    ],
)
def test_mistakes_are_sentences_and_cost_nothing(run, folder: Path, changed, said) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(**changed))
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert not (folder / "l.db").exists()


@pytest.mark.parametrize("name", ["rolls_dice", "nan_for_the_old"])
def test_a_model_that_fails_late_is_found_before_the_histograms_are_paid(run, folder: Path, name: str) -> None:  # type: ignore[no-untyped-def]
    given = words(model=f"local_code:{name}")
    ran = run(*given, "--range", 0, 1)
    assert ran.code == 2, ran.out
    assert not (folder / "l.db").exists()


def test_what_the_library_warns_of_is_one_note(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(model="local_code:depends_on_others", parts="pdp"), "--range", 0, 1)
    assert ran.code == 0
    assert ran.err.count("a row's prediction changes") == 1
    assert ".py" not in ran.err


def test_too_dear_a_report_is_refused_whole(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(epsilon=3))
    assert ran.code == 2
    assert "This question costs epsilon 3" in ran.err
    assert "Nothing was charged" in ran.err
    assert json.loads(run("budget", "l.db", "--json").out)[0]["spent"]["pico_mu_squared"] == 0


def test_bands_of_importance_and_accumulated_effects_say_what_they_claim(run):
    claims = {"ale": claim_of("accumulated effects"), "importance": claim_of("permutation importance")}
    quoted = run(*words(), "--quote")
    for part, claim in claims.items():
        assert quoted.out.split(f"{part} ± ")[1].split(")")[0].endswith(f"({claim.mark}")
    printed, claim = run(*words()), claims["importance"]
    assert printed.code == 0, printed.err
    assert claim.column in printed.out
    assert claim.sentence("permutation importance")[:80] in " ".join(printed.out.split())
    assert json.loads(run(*words(), "--json").out)["importance"]["band_claim"] == claim.value
