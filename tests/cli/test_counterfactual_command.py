"""`vitrail counterfactual` as a person or a pipe uses it, on census rows and a small ONNX tree."""

import json

import pytest

import vitrail as vt
from command_line import census, words_of

N_ROWS = 6000
POINT = {"age": 30, "hours-per-week": 30, "marital-status": "Never-married", "sex": "Male"}
ONE = json.dumps(POINT)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cf")
    census(folder, list(POINT), N_ROWS, never=("sex",), max_depth=5, min_samples_leaf=30)
    return folder


@pytest.fixture
def folder(made):
    return made


@pytest.fixture
def words(tmp_path):
    def of(*more, **changed):
        options = {"schema": "schema.json", "model": "model.onnx", "point": ONE, "epsilon": 1, "rows": N_ROWS, "budget": 3}
        options |= {"ledger": tmp_path / "l.db", "target": "income"}
        return [*words_of("counterfactual", options, changed), *more]

    return of


@pytest.mark.usefixtures("planted_noise")
def test_a_pipe_gets_changes_the_promise_and_the_bill(run, words):
    code, out, err = run(*words(desired_class=1))
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].split("\t") == ["person", "answer", "column", "now", "what if"]
    changed = [line.split("\t") for line in lines[1 : lines.index("")]]
    assert changed
    assert all(str(POINT[column]) == before != after for _, _, column, before, after in changed)
    assert "sex" not in [line[2] for line in changed]
    assert "(epsilon = 1, delta = 1e-06)-differential privacy" in out
    assert "The answer cost epsilon 1. Spent so far: epsilon 1 of 3" in out


@pytest.mark.usefixtures("planted_noise")
def test_other_people_are_free_and_files_are_written(run, words, tmp_path):
    assert run(*words())[0] == 0
    others = json.dumps([POINT, {**POINT, "age": 55}])
    files = [tmp_path / f"e.{kind}" for kind in ("json", "html", "png")]
    more = [word for file in files for word in ("-o", file)]
    code, out, err = run(*words("--total", 2, "--save", tmp_path / "adult.cf", *more, point=others))
    assert code == 0, err
    assert "was stored already and cost nothing" in out
    found = vt.Counterfactuals.from_json(json.loads(files[0].read_text()))
    assert len(found) == 2
    assert found.validity[:, 0].all()
    page = files[1].read_text()
    assert "Privacy label" in page
    assert "Person 1" in page
    assert "<script" not in page
    assert files[2].read_bytes().startswith(b"\x89PNG")
    loaded = vt.FittedCounterfactual.load(tmp_path / "adult.cf", model=vt.Model("model.onnx"))
    assert loaded(POINT).validity.all()


@pytest.mark.usefixtures("planted_noise")
def test_constraints_are_kept(run, words):
    code, out, err = run(*words("--vary", "age", "--vary", "marital-status", "--permit", "age=35:50", "--json"))
    assert code == 0, err
    found = vt.Counterfactuals.from_json(json.loads(out))
    for answer in found.answers[0]:
        assert answer.row["hours-per-week"] == 30
        assert answer.row["age"] == 30 or 35 <= answer.row["age"] <= 50
    code, out, err = run(*words("--vary", "marital-status", "--permit", "marital-status=Widowed"))
    assert code == 0, err
    assert "Person 0: No permitted change was found" in out


@pytest.mark.usefixtures("planted_noise")
def test_answers_may_be_asked_to_lie_past_the_border(run, words):
    code, out, err = run(*words("--margin", 0.1, "--json", desired_class=1))
    assert code == 0, err
    found = vt.Counterfactuals.from_json(json.loads(out))
    assert found.answers[0]
    assert found.answers[0][0].output >= 0.6
    code, out, err = run(*words("--margin", 2))
    assert code != 0
    assert "margin is 2" in err


@pytest.mark.usefixtures("planted_noise")
def test_a_range_of_outputs_may_be_wanted_and_rules_of_the_schema_file_are_kept(run, words, folder):
    written = json.loads((folder / "schema.json").read_text())
    ruled = written | {"rules": [{"rule": "within", "column": "hours-per-week", "low": 20, "high": 31}]}
    (folder / "ruled.json").write_text(json.dumps(ruled))
    code, out, err = run(*words("--total", 3, "--json", schema="ruled.json", desired="0.3:"))
    assert code == 0, err
    found = vt.Counterfactuals.from_json(json.loads(out))
    assert found.wanted == ("at least 0.3",)
    assert found.answers[0]
    assert all(answer.output >= 0.3 and 20 <= answer.row["hours-per-week"] <= 31 for answer in found.answers[0])


@pytest.mark.parametrize(
    ("more", "changed", "sentence"),
    [
        (("--vary", "agee"), {}, "Did you mean 'age'"),
        (("--vary", "sex"), {}, "declared change='never'"),
        (("--permit", "age"), {}, "write COLUMN=LOW:HIGH"),
        (("--permit", "age=old"), {}, "needs two numbers"),
        (("--permit", "age=91:99"), {}, "nothing is permitted"),
        (("--permit", "sex=Mael"), {}, "holds 'Mael'"),
        (("--permit", "sex=Male"), {}, "declares change='never'"),
        (("--total", "0"), {}, "total_CFs is 0"),
        ((), {"desired_class": "rich"}, "desired_class is 'rich'"),
        ((), {"desired": "rich"}, "--desired is 'rich'; write LOW:HIGH"),
        ((), {"desired": "0.6:7"}, "a number from 0 to 1"),
        ((), {"point": '{"age": 30}'}, "is missing"),
        ((), {"threshold": 2}, "threshold is 2.0, outside"),
        ((), {"epsilon": 5}, "epsilon"),
        (("-o", "e.txt"), {}, "its name must end in"),
    ],
)
def test_mistakes_are_one_sentence_and_cost_nothing(run, words, tmp_path, more, changed, sentence):
    code, out, err = run(*words(*more, **changed))
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err
    if changed.get("epsilon") == 5:  # the ledger refuses that one
        assert json.loads(run("budget", tmp_path / "l.db", "--json")[1])[0]["spent"]["pico_mu_squared"] == 0
    else:
        assert not (tmp_path / "l.db").exists()
