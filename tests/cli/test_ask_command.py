"""`vitrail ask` as a person or a pipe uses it, on census rows and a small ONNX tree."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from command_line import census, words_of
from vitrail.cli.printing import show
from vitrail.results.band_claim import claim_of
from vitrail.results.row_count import RowCount
from vitrail.vault.rows.sources import open_rows

N_ROWS = 4000
POINT = {"age": 50, "hours-per-week": 45, "sex": "Male"}
ONE = json.dumps(POINT)

LOCAL_CODE = """
import numpy as np

def risk(features):
    return 0.2 + 0.5 * features[:, 0] * features[:, 1]

def changes_shape(features):
    return np.zeros(len(features)) if len(features) < 300 else np.zeros(3)

def rolls_dice(features):
    return np.random.uniform(size=len(features))

def depends_on_others(features):
    return np.clip(features[:, 0] - 1e-7 * features[:, 0].mean(), 0, 1)

def nan_at_the_point(features):
    at_point = np.abs(features[:, :2] - [33 / 73, 44 / 98]).max(axis=1) < 1e-9
    return np.where(at_point, np.nan, features[:, 0])

from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
ages = np.arange(17, 91.0)[:, None]
tree = DecisionTreeClassifier(max_depth=1).fit(np.tile(ages, (1, 4)) / 90, np.where(ages[:, 0] > 40, "old", "young"))
slope = DecisionTreeRegressor(max_depth=3).fit(np.tile(ages, (1, 4)) / 90, -ages[:, 0])
number = 7
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ask")
    people, tree = census(folder, list(POINT), N_ROWS, max_depth=3)
    pyarrow.csv.write_csv(people, folder / "people.csv")
    (folder / "model.pkl").write_bytes(pickle.dumps(tree))
    (folder / "local_code.py").write_text(LOCAL_CODE)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here"))


def words(**changed: object) -> list[object]:
    """A good question, with some of its options changed."""
    options: dict[str, object] = {"schema": "schema.json", "model": "model.onnx", "point": ONE, "epsilon": 0.5}
    options |= {"rows": N_ROWS, "budget": 2, "ledger": "l.db", "target": "income"}
    return words_of("ask", options, changed)


def spent(run) -> int:  # type: ignore[no-untyped-def]
    return int(json.loads(run("budget", "l.db", "--json").out)[0]["spent"]["pico_mu_squared"])


def test_a_pipe_gets_a_table_the_promise_and_the_bill(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words())
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].split("\t") == ["point", "column", "at the point", "contribution", "band from", "band to"]
    cells = {line.split("\t")[1]: line.split("\t") for line in lines[1:4]}
    assert set(cells) == set(POINT)
    assert cells["age"][2] == "50"
    low, value, high = (float(cells["age"][place]) for place in (4, 3, 5))
    assert low <= value <= high
    assert "(epsilon = 0.5, delta = 1e-06)-differential privacy" in ran.out
    assert "The answer cost epsilon 0.5. Spent so far: epsilon 0.5 of 2" in ran.out
    assert "is a new ledger" in ran.err
    assert "\x1b" not in ran.out


def test_files_are_written_by_suffix(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(), "-o", "e.json", "-o", "e.png", "--output-file", "e.html")
    assert ran.code == 0, ran.err
    assert "Written: e.json, e.png, e.html" in ran.out
    explanation = vt.Attribution.load(folder / "e.json")
    assert explanation.points == (POINT,)
    assert explanation.guarantee.epsilon == pytest.approx(0.5)
    assert (folder / "e.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "e.html").read_text()
    for text in ("Privacy label", explanation.guarantee.sentence, "The answer cost epsilon 0.5", "hours-per-week"):
        assert text in page
    assert page.count("<img") == 1  # the budget
    assert page.count('class="bar"') == len(POINT)
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert "<script" not in page


def test_asking_again_is_a_replay_that_costs_nothing(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    first = run(*words(), "--json")
    paid = spent(run)
    again = run(*words(), "-o", "again.json")
    assert "was stored already and cost nothing" in again.out
    assert "new ledger" not in again.err
    assert spent(run) == paid > 0
    assert json.loads(first.out)["values"] == json.loads((folder / "again.json").read_text())["values"]
    assert "cost epsilon" in run(*words(data_version="2")).out
    assert spent(run) == 2 * paid


def test_the_same_point_by_any_door_is_the_same_question(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "p.json").write_text(ONE)
    (folder / "p.csv").write_text('age,hours-per-week,sex\n50, 45,"Male"\n')
    pq.write_table(pyarrow.table({name: [value] for name, value in POINT.items()}), folder / "p.parquet")
    assert run(*words()).code == 0
    for door in ("p.json", "p.csv", "p.parquet", f"[{ONE}]", "-"):
        ran = run(*words(point=door), stdin=ONE)
        assert "cost nothing" in ran.out, ran.err


def test_several_points_are_one_batch(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "p.csv").write_text("sex,age,hours-per-week\nMale,50,45\nFemale,23,20\n")
    ran = run(*words(point="p.csv"), "-o", "e.json", "-o", "e.html", "-o", "e.png")
    assert ran.code == 0, ran.err
    explanation = vt.Attribution.load(folder / "e.json")
    assert [point["sex"] for point in explanation.points] == ["Male", "Female"]
    assert len([entry for entry in run("ledger", "entries", "l.db").out.splitlines() if "charged" in entry]) == 1
    page = (folder / "e.html").read_text()
    assert "at point 0" in page
    assert "at point 1" in page


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"point": '{"age": 50, "hours-per-week": 45, "sex": "Mael"}'}, "Did you mean 'Male'?"),
        ({"point": '{"age": NaN, "hours-per-week": 45, "sex": "Male"}'}, "column 'age' is nan"),
        ({"point": '{"age": null, "hours-per-week": 45, "sex": "Male"}'}, "column 'age' is None"),
        ({"point": '{"age": 500, "hours-per-week": 45, "sex": "Male"}'}, "column 'age' is 500"),
        ({"point": '{"age": 50, "hours": 45, "sex": "Male"}'}, "column 'hours' is not in the schema"),
        ({"point": '{"age": 50, "sex": "Male"}'}, "'hours-per-week' of the schema is missing"),
        ({"point": ONE[:-1] + ', "income": ">50K"}'}, "'income', which is the target; leave it out"),
        ({"point": "[]"}, "no points to explain"),
        ({"point": "[1]"}, "every entry must be a dictionary"),
        ({"point": '{"age": '}, "--point cannot be read as JSON"),
        ({"point": "-"}, "standard input cannot be read as JSON"),
        ({"point": "schema.txt"}, "there is no point at 'schema.txt'"),
        ({"point": "local_code.py"}, "points are read from .json, .csv, .parquet"),
        ({"model": "modell.onnx"}, "Did you mean 'model.onnx'?"),
        ({"model": "model.pkl"}, "can run any code when it is opened"),
        ({"model": "model.pkl"}, "skl2onnx.to_onnx"),
        ({"model": "something"}, "give the path of an .onnx file, or module:attribute"),
        ({"model": "nowhere:model"}, "No module named 'nowhere'"),
        ({"model": "local_code:riks"}, "has no attribute 'riks'"),
        ({"model": "local_code:number"}, "the model is int"),
        ({"model": "local_code:risk"}, "give --range LOW HIGH"),
        ({"output": 2}, "output is 2"),
        ({"output": ">50K"}, "choose a class of model.onnx: 0, 1"),
        ({"inputs": "tables"}, "--inputs is 'tables'; choose one of"),
        ({"inputs": "values"}, "expects 4 columns"),
        ({"method": "shaply"}, "Did you mean 'shapley'?"),
        ({"weight": "gauss"}, "--weight is 'gauss'; choose one of 'stable'"),
        ({"weight": "stable:much"}, "must be a number"),
        ({"weight": "stable:-1"}, "must be a positive, finite number"),
        ({"weight": "stable", "method": "shapley"}, "leave it out"),
        ({"epsilon": 0}, "epsilon of a question is 0"),
        ({"epsilon": -1}, "must be positive"),
        ({"epsilon": "nan"}, "epsilon of a question is nan"),
        ({"budget": 0}, "epsilon of a budget"),
        ({"delta": 2}, "strictly between 0 and 1"),
        ({"target": "incme"}, "target is 'incme'"),
        ({"schema": "schema.jsn"}, "Did you mean 'schema.json'?"),
        ({"data": "peple.parquet"}, "Did you mean 'people.parquet'?"),
        ({"neighbours": "replace"}, "choose 'add-remove' or 'replace-one'. Did you mean 'replace-one'?"),
        ({"ledger": "memory"}, "would forget the bill"),
        ({"output_file": "e.pdf"}, "must end in .png, .html or .json"),
        ({"output_file": "nowhere/e.json"}, "there is no folder 'nowhere'"),
    ],
)
def test_mistakes_are_found_before_a_ledger_is_opened(run, folder: Path, changed: dict[str, object], sentence: str) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(**changed))
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert not (folder / "l.db").exists()


@pytest.mark.parametrize(
    ("changed", "more", "sentence"),
    [
        ({"epsilon": 1.99}, [], "costs epsilon 1.99"),
        ({"epsilon": 1.99, "method": "descent"}, [], "costs epsilon 1.99"),
        ({"epsilon": 1.99, "method": "shapley"}, [], "costs epsilon 1.99"),
        ({"budget": 3}, [], "A budget never changes once it is set"),
        ({"model": "local_code:changes_shape"}, ["--range", 0, 1], "returns shape (3,)"),
        ({"model": "local_code:rolls_dice"}, ["--range", 0, 1], "two predictions for the same public row"),
        ({"model": "local_code:nan_at_the_point"}, ["--range", 0, 1], "no finite number at point 0"),
        ({"model": "local_code:risk"}, ["--range", 0, 0.1], "outside its declared range"),
        ({"point": '{"age": 50, "hours-per-week": 45, "sex": "Mael"}'}, [], "Did you mean 'Male'?"),
    ],
)
def test_a_refusal_leaves_the_account_as_it_is(  # type: ignore[no-untyped-def]
    run, changed: dict[str, object], more: list[object], sentence: str
) -> None:
    assert run(*words()).code == 0
    paid = spent(run)
    ran = run(*words(**changed), *more)
    assert ran.code == 2
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert spent(run) == paid


def test_a_budget_that_is_not_given_is_the_account_s_own_or_this_question_s(run) -> None:  # type: ignore[no-untyped-def]
    other = words(budget=None, ledger="new.db", data="people.csv", name="others")
    assert "Spent so far: epsilon 0.5 of 0.5" in run(*other).out
    run(*words())
    assert " of 2; a question of up to" in run(*words(budget=None, epsilon=0.3)).out
    wanted = run(*words(budget=None, epsilon=None), "--half-width", 0.2)
    assert wanted.code == 0, wanted.err
    assert "It fits" in wanted.out
    refused = run(*words(budget=None, epsilon=None, ledger="other.db"), "--half-width", 0.2)
    assert (refused.code, "--budget is missing" in refused.err) == (2, True)


def test_a_function_is_charged_each_time_unless_it_has_a_name(run) -> None:  # type: ignore[no-untyped-def]
    asked = [*words(model="local_code:risk"), "--range", 0, 1]
    for _ in range(2):
        assert "cost epsilon 0.5" in run(*asked).out
    named = [*asked, "--key", "risk of May"]
    assert "cost epsilon 0.5" in run(*named).out
    assert "cost nothing" in run(*named).out


def test_a_class_is_chosen_by_its_name_and_a_range_may_be_negative(run) -> None:  # type: ignore[no-untyped-def]
    outputs = []
    for name in ("old", "young"):
        ran = run(*words(model="local_code:tree", output=name, inputs="features"), "--json")
        assert ran.code == 0, ran.err
        outputs += vt.Attribution.from_json(json.loads(ran.out)).outputs.tolist()
    assert sum(outputs) == pytest.approx(1)
    assert "'old', 'young'" in run(*words(model="local_code:tree", output="odl")).err
    regressor = [*words(model="local_code:slope"), "--range", -90, -10, "--json"]
    assert -90 <= vt.Attribution.from_json(json.loads(run(*regressor).out)).outputs[0] <= -10


def test_pictures_of_many_points_show_the_first(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    (folder / "p.json").write_text(json.dumps([{**POINT, "age": 20 + place} for place in range(30)]))
    ran = run(*words(point="p.json"), "-o", "e.png", "-o", "e.json")
    assert ran.code == 0, ran.err
    assert "the first 24 of 30 points" in ran.err
    assert len(vt.Attribution.load(folder / "e.json")) == 30


def test_what_the_library_warns_of_is_a_note(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(model="local_code:depends_on_others"), "--range", 0, 1)
    assert ran.code == 0
    assert "Note: depends_on_others: a row's prediction changes" in ran.err
    assert ".py" not in ran.err


@pytest.mark.parametrize("method", ["statistics", "shapley"])
def test_a_quote_is_what_is_charged(run, folder: Path, method: str) -> None:  # type: ignore[no-untyped-def]
    quoted = json.loads(run(*words(method=method, data="no.parquet"), "--quote", "--json").out)
    assert not (folder / "l.db").exists()
    assert quoted["price"]["fits"] is True
    assert quoted["half_width"] > 0
    cheaper = json.loads(run(*words(method=method, epsilon=0.1), "--quote", "--json").out)
    assert cheaper["half_width"] > quoted["half_width"]
    assert run(*words(method=method)).code == 0
    assert spent(run) == quoted["price"]["pico_mu_squared"]


def test_a_quote_says_the_verdict_to_expect_and_what_a_clear_one_costs(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(), "--quote")
    assert "Verdict to expect: " in ran.out
    assert "an estimate from rows drawn from the schema" in ran.out
    clear = json.loads(run(*words(epsilon=None), "--verdict", "clear", "--json").out)
    assert clear["verdict"] == "clear"
    refused = run(*words(), "--verdict", "clear")
    assert refused.code == 2
    assert "or --verdict" in refused.err


def noisy() -> vt.Attribution:
    values, promise = np.array([[0.01, -0.03, 0.02]]), vt.Guarantee.of_mu(0.1, 1e-6)
    return vt.Attribution(
        values, np.array([0.3]), tuple(POINT), (POINT,), 0.3 + values.sum(axis=1), promise, vt.Cost.of_mu(0.1), "statistics",
        lower=values - 0.1, upper=values + 0.1, rows_counted=RowCount(2971.0, 38.0, 1500),
    )  # fmt: skip


def test_a_pipe_reads_on_standard_error_that_it_is_noise(capsys: pytest.CaptureFixture[str]) -> None:
    show(noisy(), "risk", "The bill.")
    ran = capsys.readouterr()
    assert [line.split(":")[1] for line in ran.err.splitlines()] == [
        " Rows that count",
        " There is too little data to tell at this price",
    ]
    assert all(line.startswith("Care: ") for line in ran.err.splitlines())
    assert [line.split("\t")[1] for line in ran.out.splitlines()[1:4]] == list(POINT)


def test_a_terminal_says_first_that_it_is_noise_and_draws_no_bars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "400")
    show(noisy(), "risk", "The bill.")
    out = capsys.readouterr().out
    assert out.index("contradict each other") < out.index("too little data to tell") < out.index("risk says")
    assert "raises" not in out
    assert "█" not in out
    assert out.index("age = 50") < out.index("hours-per-week = 45") < out.index("sex = Male")


def test_a_quote_knows_the_account_and_leaves_it_alone(run) -> None:  # type: ignore[no-untyped-def]
    run(*words(epsilon=1.9))
    paid = spent(run)
    refused = run(*words(epsilon=1), "--quote")
    assert refused.code == 0
    assert "It does not fit" in refused.out
    assert "It fits" in run(*words(epsilon=0.1, method="synopsis"), "--quote").out
    assert run(*words(budget=5), "--quote").code == 2
    assert run(*words(account="others"), "--quote").code == 0
    assert spent(run) == paid
    assert run("budget", "l.db").out.count("Account ") == 1


@pytest.mark.parametrize("method", ["descent", "synopsis", "private-rows", "shapley"])
def test_every_method_answers_and_replays(run, method: str) -> None:  # type: ignore[no-untyped-def]
    first = run(*words(method=method), "--json")
    assert first.code == 0, first.err
    explanation = vt.Attribution.from_json(json.loads(first.out))
    assert explanation.method.startswith(method)
    assert explanation.lower is not None
    paid = spent(run)
    assert "cost nothing" in run(*words(method=method)).out
    assert spent(run) == paid > 0
    if method in ("synopsis", "private-rows"):  # paid once: another point is free
        assert "cost nothing" in run(*words(method=method, point=ONE.replace("50", "30"))).out


def test_a_weight_with_its_number(run) -> None:  # type: ignore[no-untyped-def]
    run(*words(weight="exponential:0.5"))
    assert "cost nothing" in run(*words(weight="exponential:0.5")).out
    assert "cost epsilon" in run(*words(weight="exponential:0.4")).out


def test_rows_in_a_csv_file_are_the_rows_in_the_parquet_file(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    schema = vt.Schema.load(folder / "schema.json")
    read = np.concatenate([*open_rows(folder / "people.csv", schema).chunks(64)])
    assert np.array_equal(read, schema.read(pq.read_table(folder / "people.parquet")), equal_nan=True)
    ran = run(*words(data="people.csv"))
    assert ran.code == 0, ran.err
    assert "cost epsilon 0.5" in ran.out


def test_no_line_of_a_private_csv_raises_or_touches_another(folder: Path) -> None:
    schema = vt.Schema.load(folder / "schema.json")
    good = ["50,45,Male,>50K", "23,20,Female,<=50K"]
    bad = ['"50,45,Male', "1,2", "", "a,b,c,d,e,f", "\0\0", "x" * 200_000, "é\ufffd,,,"]
    for line in bad:
        (folder / "odd.csv").write_text("\n".join(["age,hours-per-week,sex,income", good[0], line, good[1]]) + "\n")
        read = np.concatenate([*open_rows(folder / "odd.csv", schema).chunks(64)])
        assert read[[0, -1]].tolist() == [[50, 45, 1, 1], [23, 20, 0, 0]]
        assert np.isnan(read[1:-1]).all()


def test_help_says_what_runs_code(run) -> None:  # type: ignore[no-untyped-def]
    shown = " ".join(run("ask", "--help").out.split())
    assert "importing it RUNS that code" in shown
    assert "Pickles need" in shown


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_colours_and_bars(folder: Path) -> None:
    import pty

    outside, inside = pty.openpty()
    program = [sys.executable, "-c", "from vitrail.cli import main; main()", *map(str, words())]
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    settings.pop("NO_COLOR", None)
    with subprocess.Popen(program, cwd=folder, stdout=inside, stderr=subprocess.PIPE, env=settings) as running:
        os.close(inside)
        shown = b""
        try:
            while part := os.read(outside, 65536):
                shown += part
        except OSError:  # what Linux says at the end
            pass
        assert running.wait() == 0
    os.close(outside)
    text = shown.decode()
    assert "\x1b[" in text
    assert "█" in text
    plain = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
    for piece in ("model.onnx says", "age = 50", "Promise (epsilon = 0.5", "Bill The answer cost epsilon 0.5"):
        assert piece in plain


# --- what bands claim ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "kind"), [("statistics", "local statistics"), ("synopsis", "local moments")])
def test_local_linear_bands_say_what_they_claim(run, method, kind):
    claim = claim_of(kind)
    answered = run(*words(method=method, key="why"), "-o", "why.html", "-o", "why.json")
    assert answered.code == 0, answered.err
    page = Path("why.html").read_text()
    assert claim.bands in page
    assert f">{claim.column}</th>" in page
    assert claim.sentence() in " ".join(page.split())
    assert json.loads(Path("why.json").read_text())["band_claim"] == claim.value
    assert vt.Attribution.load("why.json").band_claim is claim
    printed = run(*words(method=method, key="why"))
    assert claim.sentence().split(";")[0] in " ".join(printed.out.split())


def test_a_quote_says_what_its_bands_would_claim(run):
    said, claim = run(*words(method="statistics"), "--quote"), claim_of("local statistics")
    assert said.code == 0, said.err
    assert re.search(rf"Bands of about: ± \S+ \({claim.mark}\)", said.out)
    assert json.loads(run(*words(method="statistics"), "--quote", "--json").out)["band_claim"] == claim.value
    assert re.search(r"Bands of about: ± \S+ \(95 %\)", run(*words(method="shapley"), "--quote").out)
