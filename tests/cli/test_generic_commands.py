"""`vitrail curve` and `vitrail ranking` as a person uses them, on census rows, a small ONNX tree and functions in a file."""

import json
import shutil
from pathlib import Path

import pytest

import vitrail as vt
from command_line import census, words_of

N_ROWS = 3000
COLUMNS = ["age", "hours-per-week", "sex"]
CODE = """
import numpy as np

def spread(model, X):
    outputs = model.predict(X)
    found = {}
    for name in X.columns:
        changed = X.assign(**{name: np.roll(X[name].to_numpy(), 1)})
        found[name] = float(np.abs(model.predict(changed) - outputs).mean())
    return found

NOTHING = 3
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generic")
    census(folder, COLUMNS, N_ROWS, max_depth=3)
    (folder / "local_code.py").write_text(CODE)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here"))


def words(command: str, **changed: object) -> list[object]:
    """A good question, with some of its options changed."""
    options: dict[str, object] = {"schema": "schema.json", "model": "model.onnx", "epsilon": 1, "target": "income"}
    return words_of(command, options | {"rows": N_ROWS, "budget": 4, "ledger": "l.db", "groups": 4, "key": "first"}, changed)


def test_partial_dependence_of_scikit_learn_is_drawn_and_kept(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words("curve", column="sex"), "-o", "c.html", "-o", "c.json", "-o", "c.png")
    assert ran.code == 0, ran.err
    assert "The answer cost epsilon 1. Spent so far: epsilon 1 of 4" in ran.out
    assert "Privacy label" in (folder / "c.html").read_text(encoding="utf-8")
    assert (folder / "c.png").stat().st_size > 5000
    curve = vt.Curve.from_json(json.loads((folder / "c.json").read_text()))
    assert curve.name == "sex"
    assert curve.x == ("Female", "Male")
    again = run(*words("curve", column="sex"), "-o", "again.json")
    assert "was stored already and cost nothing" in again.out
    assert json.loads((folder / "again.json").read_text())["y"] == curve.y.tolist()


def test_a_function_of_ones_own_ranks(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words("ranking", explainer="local_code:spread", epsilon=2), "-o", "r.json", "-o", "r.html")
    assert ran.code == 0, ran.err
    ranking = vt.Ranking.from_json(json.loads((folder / "r.json").read_text()))
    assert sorted(ranking.order) == sorted(COLUMNS)


@pytest.mark.parametrize(
    ("command", "changed", "sentence"),
    [
        ("curve", {"column": "agee"}, "'age'"),
        ("curve", {"column": "age", "explainer": "local_code:gone"}, "--explainer 'local_code:gone' cannot be imported"),
        ("curve", {"column": "age", "explainer": "local_code:NOTHING"}, "has to be a function of (model, X)"),
        ("ranking", {"explainer": "spread"}, "--explainer is 'spread'; write module:name"),
        ("ranking", {"explainer": "local_code:spread", "top": 9}, "top_k"),
    ],
)
def test_mistakes_are_said_before_anything_is_charged(
    run, folder: Path, command: str, changed: dict[str, object], sentence: str
) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(command, **changed), "-o", "x.json")
    assert ran.code == 2
    assert sentence in ran.err
    assert not (folder / "l.db").exists()


def test_a_quote_is_free(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words("curve", column="sex"), "--quote")
    assert ran.code == 0, ran.err
    assert "The price of any curve: sex: epsilon 1" in ran.out
    assert not (folder / "l.db").exists()
