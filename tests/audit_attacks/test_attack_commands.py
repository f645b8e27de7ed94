"""The commands `vitrail audit reconstruction`, `influence`, `extraction`, `attribute`; membership with shadow models."""

import json
import sys

import numpy as np
import pytest

import command_line

CODE = """
import numpy as np
from vitrail.audit.shadow import Networks

train = Networks(hidden=(16,), epochs=60, learning_rate=1e-2, n_classes=2)
ROWS = np.genfromtxt("in.csv", delimiter=",", skip_header=1)[:, :5]
LABELS = np.genfromtxt("in.csv", delimiter=",", skip_header=1)[:, 5].astype(int)
trained = train.fit(ROWS, LABELS, [np.arange(len(ROWS))])
net = trained.modules[0]

def nearest(points):
    order = np.square(points[:, None, :] - ROWS[None]).sum(axis=2).argsort(axis=1)
    return ROWS[order[:, :2]]

def predict(points):
    return 1 / (1 + np.exp(-4 * (points[:, 0] - points[:, 1])))

def across(points):
    return points - np.outer(0.52 * (points[:, 0] - points[:, 1]), [1, -1, 0, 0, 0])

TWO = 2
"""
COLUMNS = "abcde"


def write(path, columns):
    lines = [",".join(columns)]
    lines += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("attacks")
    (made / "attacked_code.py").write_text(CODE)
    generator = np.random.default_rng(0)
    for name in ("in", "out", "own"):
        points = np.round(generator.normal(size=(60, 5)), 6)
        columns = {letter: points[:, place] for place, letter in enumerate(COLUMNS)}
        write(made / f"points_{name}.csv", columns)
        labels = (points[:, 0] + generator.normal(size=60) > 0).astype(int)
        write(made / f"{name}.csv", columns | {"label": labels})
        groups = np.where(points[:, 1] > 1, "few", "many")
        write(made / f"{name}_groups.csv", columns | {"label": np.where(labels == 1, "yes", "no"), "group": groups})
    rows = np.genfromtxt(made / "points_in.csv", delimiter=",", skip_header=1)
    answers = rows - np.outer(0.52 * (rows[:, 0] - rows[:, 1]), [1, -1, 0, 0, 0])
    shown = {letter: [str(value) for value in answers[:, place]] for place, letter in enumerate(COLUMNS)}
    for cells in shown.values():
        cells[3] = ""  # nothing was found for the fourth
    write(made / "answers.csv", shown)
    sex, said = generator.integers(0, 2, 400), generator.uniform(size=400)
    explained = {"first": 0.3 * sex + 0.05 * generator.normal(size=400), "second": said, "said": said}
    write(made / "explained.csv", explained | {"age": generator.integers(20, 60, 400), "sex": np.where(sex, "f", "m")})
    return made


@pytest.fixture
def run(monkeypatch, capsys, folder):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("attacked_code", None)
    return lambda *words: command_line.vitrail(monkeypatch, capsys, "audit", *words)


def test_rows_come_back_from_a_regression_that_shows_them(run, folder):
    words = ("--label", "label", "--group", "group", "--queries", 30)
    ran = run("reconstruction", "in_groups.csv", *words, "-o", "r.html", "-o", "r.json", "-o", "r.png")
    assert ran.code == 0, ran.err
    assert "H-orthogonal" in ran.out
    told = json.loads((folder / "r.json").read_text())
    assert told["training_rows"] == 60
    assert {row["strategy"] for row in told["rows"]} == {"random", "orthogonal", "H-orthogonal", "walk"}
    assert set(told["rows"][0]["by_group"]) == {"few", "many"}
    page = (folder / "r.html").read_text()
    assert "Training rows recovered over queries" in page
    assert "many" in page
    assert (folder / "r.png").stat().st_size > 5000


def test_rows_come_back_from_code_that_shows_them(run):
    ran = run("reconstruction", "points_in.csv", "--explain", "attacked_code:nearest", "--strategy", "walk", "--json")
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)["rows"]
    assert row["strategy"] == "walk"
    assert row["share"] > 0.8


def test_a_member_who_is_shown_is_told_from_others(run, folder):
    ran = run(
        "influence", "points_in.csv", "points_out.csv", "--explain", "attacked_code:nearest", "-o", "i.json", "-o", "i.html"
    )
    assert ran.code == 0, ran.err
    assert "100.0% of 60 members are shown" in ran.out  # everybody is their own nearest
    told = json.loads((folder / "i.json").read_text())
    assert told["accused"]["value"] == 0
    assert told["graph"]["rows"] == 60
    assert "Who leads to whom" in (folder / "i.html").read_text()


def test_the_graph_of_a_regression_needs_members_alone(run):
    ran = run("influence", "in_groups.csv", "--label", "label", "--group", "group", "--shown", 3, "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert told["accused"] is None
    assert told["shown_per_query"] == 3
    assert set(told["by_group"]) == {"few", "many"}


@pytest.mark.parametrize("counterfactuals", ["answers.csv", "attacked_code:across"])
def test_a_model_is_copied_from_answers_in_a_file_or_by_code(run, folder, counterfactuals):
    words = ("--predict", "attacked_code:predict", "--counterfactuals", counterfactuals)
    ran = run("extraction", "points_in.csv", "points_out.csv", *words, "-o", "e.json", "-o", "e.html")
    assert ran.code == 0, ran.err
    assert "with explanations" in ran.out
    told = json.loads((folder / "e.json").read_text())
    assert told["agreement"]["value"] > 0.85
    assert told["queries"] == 60
    assert "How good the copy is" in (folder / "e.html").read_text()


def test_gradients_of_a_torch_module_are_used_to_copy_it(run):
    words = ("--module", "attacked_code:net", "--attributions", "gradient", "--json")
    ran = run("extraction", "points_in.csv", "points_out.csv", *words)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["agreement"]["value"] > 0.6


def test_a_column_is_guessed(run, folder):
    words = ("--sensitive", "sex", "--prediction", "said", "--known", "age")
    ran = run("attribute", "explained.csv", *words, "-o", "a.json", "-o", "a.html", "-o", "a.png")
    assert ran.code == 0, ran.err
    assert "give the column away" in ran.out
    assert json.loads((folder / "a.json").read_text())["excess"]["lower"] > 0.3
    assert "give the column away" in (folder / "a.html").read_text()


def test_shadow_models_make_likelihood_ratios(run):
    target = ("--explain", "gradient", "--module", "attacked_code:net", "--label", "label")
    words = ("--shadow", "attacked_code:train", "--shadow-models", 4, "--reference", "own.csv")
    ran = run("membership", "in.csv", "out.csv", *target, *words, "--attack", "likelihood ratio", "--json")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert {row["attack"] for row in told["rows"]} == {"likelihood ratio, offline", "likelihood ratio, online"}
    assert told["how"]["shadow_models"] == 4
    assert told["how"]["reference"] == 60


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reconstruction", "in.csv"), "say what explains"),
        (("reconstruction", "in.csv", "--label", "lable"), "--label is 'lable'"),
        (("reconstruction", "in.csv", "--label", "a"), "holds 60 classes"),
        (("reconstruction", "in.csv", "--label", "label", "--explain", "attacked_code:nearest"), "leave one of them out"),
        (("reconstruction", "in.csv", "--explain", "attacked_code:TWO"), "has to be a function of points"),
        (("reconstruction", "in.csv", "--label", "label", "--strategy", "magic"), "strategies names 'magic'"),
        (("reconstruction", "in_groups.csv", "--label", "label"), "column 'group' holds texts"),
        (("reconstruction", "in.csv", "--explain", "attacked_code:predict"), "returned shape"),
        (("influence", "in.csv", "points_out.csv", "--label", "label"), "only one of them has label"),
        (("influence", "points_out.csv", "--explain", "attacked_code:nearest"), "not among members"),
        (("extraction", "points_in.csv", "points_out.csv", "--counterfactuals", "answers.csv"), "say what is copied"),
        (("extraction", "points_in.csv", "points_out.csv", "--predict", "attacked_code:predict"), "nothing to extract with"),
        (
            (
                "extraction",
                "points_in.csv",
                "in.csv",
                "--predict",
                "attacked_code:predict",
                "--counterfactuals",
                "answers.csv",
            ),
            "only one of them has label",
        ),
        (("attribute", "explained.csv", "--sensitive", "six"), "--sensitive is 'six'"),
        (("attribute", "explained.csv", "--sensitive", "said"), "column 'sex' holds texts"),
        (("attribute", "points_in.csv", "--sensitive", "a"), "Bin numbers"),
        (("membership", "in.csv", "out.csv", "--label", "label", "--shadow", "attacked_code:train"), "--shadow needs"),
        (("membership", "in.csv", "out.csv", "--reference", "own.csv"), "give --shadow too"),
        (("attribute", "explained.csv", "--sensitive", "sex", "-o", "a.pane"), "must end in .png, .html or .json"),
    ],
)
def test_mistakes_are_told_in_a_sentence(run, words, sentence):
    ran = run(*words)
    assert ran.code == 2
    assert sentence in ran.err


def test_columns_are_matched_by_their_names(run, folder):
    lines = [line.split(",") for line in (folder / "points_out.csv").read_text().splitlines()]
    (folder / "turned.csv").write_text("\n".join(",".join(reversed(line)) for line in lines) + "\n")
    straight, turned = (
        json.loads(run("membership", "points_in.csv", name, "--explain", "attacked_code:predict", "--json").out)
        for name in ("points_out.csv", "turned.csv")
    )
    assert straight["rows"] == turned["rows"]
