"""`vitrail texts`, `vitrail pictures` and `vitrail ask --view`: texts and pictures without a line of Python."""

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import vitrail as vt
from command_line import words_of
from vitrail.errors import SchemaError

N_ROWS = 1200
CODE = """
def by_words(x):
    return 0.5 + 0.4 * x[:, 1] - 0.4 * x[:, 0]

def by_pixels(x):
    return x[:, [2, 3, 6, 7]].mean(axis=1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    said = [" ".join(word for word in ("awful", "GREAT", "plot") if draw.random() < 0.5) for _ in range(N_ROWS)]
    table = pyarrow.table({"review": said, "stars": draw.integers(1, 6, N_ROWS)})
    pyarrow.csv.write_csv(table, tmp_path / "reviews.csv")
    np.save(tmp_path / "pictures.npy", draw.integers(0, 256, (N_ROWS, 4, 4)).astype(np.uint8))
    bright = np.zeros((4, 4), dtype=np.uint8)
    bright[:2, 2:] = 255
    np.save(tmp_path / "bright.npy", bright)
    np.save(tmp_path / "regions.npy", np.repeat([[0, 1], [2, 3]], 2, axis=0).repeat(2, axis=1))
    (tmp_path / "words.txt").write_text("awful\ngreat\nplot\n")
    (tmp_path / "text.txt").write_text("A great plot!")
    vt.Schema({"stars": vt.Numeric(1, 5, integer=True)}).save(tmp_path / "stars.json")
    (tmp_path / "local_code.py").write_text(CODE)
    return tmp_path


def ask(**changed: object) -> list[object]:
    options: dict[str, object] = {"rows": N_ROWS, "epsilon": 2, "budget": 4, "ledger": "l.db", "inputs": "features"}
    return words_of("ask", options | {"range": None}, changed)


def test_a_text_is_explained_word_by_word(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(
        "texts", "reviews.csv", "--column", "review", "--words", "words.txt", "--schema", "stars.json", "-o", "r.parquet"
    )
    assert ran.code == 0, ran.err
    assert pq.read_table(folder / "r.parquet").column_names == ["awful", "great", "plot", "stars"]
    assert list(vt.Schema.load(folder / "r.schema.json")) == ["awful", "great", "plot", "stars"]
    assert vt.load_view(folder / "r.view.json") == vt.BagOfWords(["awful", "great", "plot"])
    words = ask(
        data="r.parquet", schema="r.schema.json", target="stars", view="r.view.json", model="local_code:by_words",
        point="What a great plot", key="k",
    )  # fmt: skip
    ran = run(*words, "--range", 0, 1, "-o", "e.json", "-o", "e.png", "-o", "e.html")
    assert ran.code == 0, ran.err
    told = json.loads((folder / "e.json").read_text())
    assert told["columns"] == ["awful", "great", "plot"]
    assert told["points"] == [{"awful": 0, "great": 1, "plot": 1}]
    assert (folder / "e.png").stat().st_size > 3000
    again = run(*[word if word != "What a great plot" else "text.txt" for word in words], "--range", 0, 1)
    assert "was stored already and cost nothing" in again.out


@pytest.mark.parametrize("how", [("--patches", 2, 2), ("--regions", "regions.npy"), ()])
def test_a_picture_is_explained_by_its_regions(run, folder: Path, how: tuple[object, ...]) -> None:  # type: ignore[no-untyped-def]
    ran = run("pictures", "pictures.npy", *how, "-o", "p.parquet")
    assert ran.code == 0, ran.err
    words = ask(
        data="p.parquet", schema="p.schema.json", view="p.view.json", model="local_code:by_pixels", point="bright.npy"
    )
    ran = run(*words, "--range", 0, 1, "-o", "e.json", "-o", "e.png")
    assert ran.code == 0, ran.err
    told = json.loads((folder / "e.json").read_text())
    assert len(told["columns"]) == (4 if how else 16)
    assert (folder / "e.png").stat().st_size > 3000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("texts", "reviews.csv", "--column", "revue", "--words", "words.txt", "-o", "r.parquet"), "--column is 'revue'"),
        (
            ("texts", "reviews.csv", "--column", "review", "--words", "nothing.txt", "-o", "r.parquet"),
            "there is no word list",
        ),
        (("texts", "reviews.csv", "--column", "review", "--words", "words.txt", "-o", "r.csv"), "must end in .parquet"),
        (("texts", "bright.npy", "--column", "review", "--words", "words.txt", "-o", "r.parquet"), "is no table"),
        (("texts", "reviews.csv", "--column", "stars", "--words", "words.txt", "-o", "r.parquet"), "holds no texts"),
        (("pictures", "bright.npy", "-o", "p.parquet"), "it must be (pictures, height, width)"),
        (("pictures", "reviews.csv", "-o", "p.parquet"), "is no array"),
        (("pictures", "pictures.npy", "--patches", 2, 2, "--regions", "regions.npy", "-o", "p.parquet"), "one of the two"),
        (("pictures", "pictures.npy", "--schema", "stars.json", "-o", "p.parquet"), "there is no such column"),
    ],
)
def test_mistakes_are_told_in_a_sentence(run, folder: Path, words: tuple[object, ...], sentence: str) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words)
    assert ran.code == 2
    assert sentence in ran.err
    assert not (folder / "r.parquet").exists()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"view": "nothing.json"}, "there is no view"),
        ({"view": "p.schema.json"}, "is no view"),
        ({"point": "pictures.npy"}, "the view is of pictures of shape"),
        ({"method": "shapley"}, "--view goes with the methods"),
    ],
)
def test_a_view_that_does_not_fit_costs_nothing(run, folder: Path, changed: dict[str, object], sentence: str) -> None:  # type: ignore[no-untyped-def]
    assert run("pictures", "pictures.npy", "--patches", 2, 2, "-o", "p.parquet").code == 0
    good = {"schema": "p.schema.json", "view": "p.view.json", "model": "local_code:by_pixels", "point": "bright.npy"}
    ran = run(*ask(data="p.parquet", **(good | changed)), "--range", 0, 1)
    assert ran.code == 2
    assert sentence in ran.err
    assert not (folder / "l.db").exists()


@pytest.mark.parametrize("text", ["{", '{"format": "vitrail-view/1"}', '{"format": "vitrail-view/1", "kind": "sound"}'])
def test_a_damaged_view_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "v.json").write_text(text)
    with pytest.raises(SchemaError, match=r"v\.json"):
        vt.load_view(tmp_path / "v.json")
    with pytest.raises(SchemaError, match="give a BagOfWords"):
        vt.save_view("words", tmp_path / "w.json")
