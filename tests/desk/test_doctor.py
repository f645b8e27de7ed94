"""The doctor finds what was planted, says it is private, charges nothing and leaves nothing behind."""

import math
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vitrail as vt
from vitrail.desk.declaration import Declaration
from vitrail.errors import InvalidInput

N = 400
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90, integer=True),
        "income": vt.Numeric(0, 100),
        "job": vt.Categorical(["clerk", "nurse", "smith"]),
        "member": vt.Categorical([False, True]),
        "ill": vt.Categorical(["no", "yes"]),
    }
)


def rows() -> dict[str, list[object]]:
    draw = np.random.Generator(np.random.PCG64(5))
    age = draw.integers(18, 91, N)
    return {
        "age": age.tolist(),
        "income": draw.uniform(0, 100, N).tolist(),
        "job": draw.choice(["clerk", "nurse", "smith"], N).tolist(),
        "member": draw.choice([False, True], N).tolist(),
        "ill": np.where(age > 60, "yes", "no").tolist(),
    }


def checkup(given: dict[str, list[object]], model: vt.Model | None = None, *, declared: int = N) -> vt.Checkup:
    settings = {"name": "visits", "target": "ill", "n_rows_public": declared, "ledger": "memory"}
    data = vt.PrivateData({name: [] for name in SCHEMA}, SCHEMA, budget=vt.Budget(1, 1e-6), **settings)
    found = vt.doctor(data, model, rows=given)
    assert data.budget.spent_epsilon == 0
    return found


def told(found: vt.Checkup, where: str) -> str:
    return " ".join(one.text for one in found.findings if one.where == where)


def planted(column: str, value: object, share: float) -> dict[str, list[object]]:
    given = rows()
    given[column][: round(share * N)] = [value] * round(share * N)
    return given


def test_rows_that_fit_are_found_to_fit():
    found = checkup(rows())
    assert found.ok
    assert not found.findings
    assert str(found).startswith("PRIVATE")


@pytest.mark.parametrize(
    ("column", "value", "share", "words"),
    [
        ("income", None, 0.3, "120 rows (30.0 %) hold no value; such a row counts as nothing; declare what stands for it"),
        ("income", float("nan"), 0.3, "120 rows (30.0 %) hold no value"),
        ("income", "", 0.01, "4 rows (1.0 %) hold no value"),
        ("income", "12k", 0.02, "8 rows (2.0 %) hold what is no number, such as '12k'"),
        ("income", -9, 0.05, "declare codes = [-9]"),
        ("income", 250.0, 0.05, "20 rows (5.0 %) hold values above 100 (as far as 250), which are read as 100."),
        ("income", -3.0, 0.05, "20 rows (5.0 %) hold values below 0 (as far as -3), which are read as 0."),
        ("income", -3.0, 0.0025, "1 row (0.2 %) holds a value below 0 (-3), which is read as 0."),
        ("age", 40.5, 0.05, "hold numbers that are not whole, and are rounded"),
        ("age", 40.5, 0.0025, "holds a number that is not whole, and is rounded"),
        ("job", "infirmi\ufffdre", 0.02, "It is not UTF-8; save the file as UTF-8."),
        (
            "job",
            "nurs",
            0.02,
            "8 rows (2.0 %) hold 'nurs', which is not declared; such a row counts as nothing. Did you mean 'nurse'?",
        ),
        ("job", "Nurse", 0.02, "differs from 'nurse' by capital letters only"),
        ("job", " nurse", 0.02, "differs from 'nurse' by a space only"),
        ("job", None, 0.02, "hold no value"),
    ],
)
def test_what_does_not_fit_is_said(column, value, share, words):
    found = checkup(planted(column, value, share))
    assert words in told(found, column)
    assert not found.ok or value in (250.0, -3.0)


def test_many_rows_that_do_not_count_have_to_be_mended():
    found = checkup(planted("income", None, 0.3))
    assert found.findings[0].gravity == "stop"
    assert "30.0 % of the rows count as nothing in every answer" in told(found, "rows")
    assert "280 of them count" in found.summary[0]


def test_yes_and_no_against_booleans_say_what_to_declare():
    given = rows()
    given["member"] = ["yes" if member else "no" for member in given["member"]]
    found = checkup(given)
    assert "declare levels = ['no', 'yes']" in told(found, "member")
    assert found.findings[0].gravity == "stop"


def test_a_value_that_a_column_declares_to_stand_for_missing_is_only_noted():
    schema = vt.Schema({"x": vt.Numeric(0, 1, missing=-1, codes=(-1,), as_nan=True)})
    data = vt.PrivateData({"x": []}, schema, name="x", n_rows_public=10, budget=vt.Budget(1, 1e-6), ledger="memory")
    found = vt.doctor(data, rows={"x": [0.5, None] * 5})
    assert found.ok
    assert "such a value is read as -1" in told(found, "x")


def test_columns_that_are_missing_or_extra_or_identify_are_said():
    given = rows()
    given["jobs"] = given.pop("job")
    found = checkup(given)
    assert "the rows have no such column. Did you mean 'jobs'?" in told(found, "job")
    assert "'jobs'" in told(found, "rows")
    schema = vt.Schema({"customer": vt.Numeric(0, 10**6, integer=True), "x": vt.Numeric(0, 1)})
    data = vt.PrivateData(
        {"customer": [], "x": []}, schema, name="c", n_rows_public=N, budget=vt.Budget(1, 1e-6), ledger="memory"
    )
    found = vt.doctor(data, rows={"customer": (np.arange(N) * 2011).tolist(), "x": [0.5] * (N - 1) + [0.1]})
    assert "as an identifier has" in told(found, "customer")


def test_rows_without_the_declared_columns_are_said_in_one_sentence():
    given = rows()
    found = checkup({f"the {name}": values for name, values in given.items()})
    assert "they have none of the declared columns" in told(found, "rows")
    assert len(found.findings) == 1
    del given["job"]
    for one in (found, checkup(given)):
        assert "no question can be asked about them, because declared columns are missing" in one.summary[0]
        assert "count in every answer" not in str(one)


def test_a_code_does_not_hide_how_far_other_values_reach():
    given = planted("income", -999, 0.05)
    given["income"][-2:] = [-3.0, -4.0]
    assert "values below 0 (as far as -4)" in told(checkup(given), "income")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("é;job\n1;2\n".encode("latin-1"), "is not UTF-8"),
        ("age,job\n1,2\n".encode("utf-16"), "is not UTF-8"),
        (b'"age,job\n1,2\n', "a quote is left open"),
        (b"39,nurse\n50,clerk\n", "has it no header line"),
    ],
)
def test_a_file_that_is_no_table_is_said_in_one_sentence_without_its_words(tmp_path, content, says):
    (tmp_path / "x.csv").write_bytes(content)
    schema = vt.Schema({"age": vt.Numeric(0, 120), "job": vt.Categorical(["nurse", "clerk"])})
    declared = Declaration(
        name="x",
        source=str(tmp_path / "x.csv"),
        schema=schema,
        n_rows_public=2,
        budget=vt.Budget(1, 1e-6),
        ledger=str(tmp_path / "ledger.db"),
    )
    for use in (vt.doctor, Declaration.open):
        with pytest.raises(InvalidInput, match=says) as refused:
            use(declared)
        assert "nurse" not in str(refused.value)


def test_a_wrong_count_is_said_with_its_size():
    assert "off by a factor of 2.00" in told(checkup(rows(), declared=200), "rows")
    assert checkup(rows(), declared=395).ok


def test_a_target_that_is_always_the_same_is_said():
    given = rows()
    given["ill"] = ["no"] * N
    assert "all rows have the same value" in told(checkup(given), "ill")


# --- models ----------------------------------------------------------------------------------------------------------------


def risk(x):
    return 0.1 + 0.8 * x[:, 0]


def test_a_model_that_fits_is_said_to_and_how_long_a_release_takes():
    found = checkup(rows(), vt.Model(risk, range=(0, 1)))
    assert found.ok
    assert found.release_seconds > 0
    assert "Area under the curve: 1.000" in found.summary[1]
    assert "A pane of it takes about" in found.summary[2]


def test_what_a_model_does_on_rows_is_said_where_public_rows_do_not_show_it():
    """Each of these is right on the rows that a schema shows, and wrong on rows that it does not."""

    def on_real_rows(wrong):
        return vt.Model(lambda x: np.where(_probed(x), risk(x), wrong(x)), range=(0, 1))

    given = rows()
    given["income"] = [33.125] * 100 + given["income"][100:]
    assert "an output outside of its range (0 to 1)" in told(
        checkup(given, on_real_rows(lambda x: 3 + 0 * x[:, 0])), "model"
    )
    assert "no finite output" in told(checkup(given, on_real_rows(lambda x: np.nan * x[:, 0])), "model")
    same = {**rows(), "age": [33] * N, "income": [20.0] * N, "job": ["nurse"] * N, "member": [True] * N}
    assert "every row gets the same output" in told(checkup(same, vt.Model(risk, range=(0, 1))), "model")


def _probed(x):
    """Whether rows look like public draws: an income is planted that no draw has."""
    return x[:, 1] != 33.125 / 100


def test_a_model_without_a_wrapper_is_refused():
    with pytest.raises(InvalidInput, match=r"vt\.Model"):
        checkup(rows(), risk)


# --- whose it is ---------------------------------------------------------------------------------------------------------


def test_it_charges_nothing_writes_nothing_and_a_file_is_the_owners_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = checkup(planted("job", "nurs", 0.02))
    assert list(tmp_path.iterdir()) == []
    for ending in ("txt", "json", "html"):
        file = tmp_path / f"visits.{ending}"
        found.save(file)
        assert "PRIVATE" in file.read_text()
        assert "nurs" in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(InvalidInput, match="must end in"):
        found.save(tmp_path / "visits.pdf")
    assert "nurs" not in repr(found)  # what a notebook or a log shows by itself tells no value


def test_rows_that_were_given_as_a_frame_are_asked_for_again():
    data = vt.PrivateData(
        {"x": [0.5]},
        vt.Schema({"x": vt.Numeric(0, 1)}),
        name="x",
        n_rows_public=1,
        budget=vt.Budget(1, 1e-6),
        ledger="memory",
    )
    with pytest.raises(InvalidInput, match="give the rows again"):
        vt.doctor(data)
    with pytest.raises(InvalidInput, match=r"census\.toml"):
        vt.doctor(3)


def test_nothing_but_the_command_line_leads_to_it():
    """Import-linter keeps explainers, panes and audits away; a service loads declarations, and nothing that reads rows."""
    sources = Path(vt.__file__).parent
    for room in ("pane", "explain", "audit", "results", "show", "maps", "serve"):
        for file in (sources / room).rglob("*.py"):
            text = file.read_text().replace("desktop", "")
            assert "desk" not in (text.replace("desk.declaration import", "") if room == "serve" else text), file
    look = "import sys, vitrail.serve.web.app, vitrail.serve.operation.running; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()
    assert "vitrail.desk.declaration" in loaded
    assert not [name for name in loaded if name in ("vitrail.desk.doctor", "vitrail.desk.checkup", "vitrail.vault.owner")]


def test_people_of_every_kind_of_name_are_counted():
    schema = vt.Schema({"x": vt.Numeric(0, 1)})
    for names in ([1, 1, 2, None] * 5, [1.0, 1.0, 2.0, math.nan] * 5, ["a", "a", "b", ""] * 5, np.array([7, 7, 8, 9] * 5)):
        data = vt.PrivateData(
            {"x": []}, schema, name="x", n_rows_public=20, budget=vt.Budget(1, 1e-6), ledger="memory", rows_per_person=9
        )
        found = vt.doctor(data, rows={"who": names, "x": [0.5] * 20}, person="who")
        assert "and 10 at most. 1 of them" in told(found, "who")
        assert "2 times the mu" in told(found, "who")
        assert ("5 rows (25.0 %) hold no name" in told(found, "who")) == (not isinstance(names, np.ndarray))
    large = np.array([2**60, 2**60 + 1] * 10)
    exact, rounded = (
        told(vt.doctor(data, rows={"who": names, "x": [0.5] * 20}, person="who"), "who")
        for names in (large, large.astype(float))
    )
    assert "2 people have" in exact
    assert "above 2^53" not in exact
    assert "20 rows (100.0 %) hold numbers above 2^53" in rounded
