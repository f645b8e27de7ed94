"""`vitrail groups` as a person or a pipe uses it, on census rows and a small ONNX tree."""

import json
import shutil
from pathlib import Path

import pytest

import vitrail as vt
from command_line import census, words_of

N_ROWS = 3000
COLUMNS = ["age", "hours-per-week", "sex"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    census(folder, COLUMNS, N_ROWS, max_depth=3)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "here"))


def words(**changed: object) -> list[object]:
    """A good question, with some of its options changed."""
    options: dict[str, object] = {"schema": "schema.json", "model": "model.onnx", "epsilon": 0.5, "target": "income"}
    return words_of("groups", options | {"rows": N_ROWS, "budget": 2, "ledger": "l.db", "by": "sex"}, changed)


def test_a_page_a_picture_and_a_file_from_one_price_and_again_for_nothing(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(), "-o", "g.html", "-o", "g.json", "-o", "g.png")
    assert ran.code == 0, ran.err
    assert "The answer cost epsilon 0.5. Spent so far: epsilon 0.5 of 2" in ran.out
    page = (folder / "g.html").read_text(encoding="utf-8")
    for heading in ("Privacy label", "group by group", "Between groups", "Calibration", "The bill"):
        assert heading in page
    found = vt.GroupTable.load(folder / "g.json")
    assert found.groups == ("Female", "Male")
    assert found.outcome_name == "income is >50K"
    assert (folder / "g.png").stat().st_size > 10_000
    again = run(*words(), "-o", "again.json")
    assert "was stored already and cost nothing. Spent so far: epsilon 0.5 of 2" in again.out
    assert (folder / "again.json").read_text() == (folder / "g.json").read_text()


def test_a_pipe_gets_tables_and_the_promise(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words())
    assert ran.code == 0, ran.err
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert lines[0][:3] == ["group", "rows", "selection rate"]
    assert [line[0] for line in lines[1:3]] == ["Female", "Male"]
    assert any(line[0] == "demographic parity ratio" for line in lines)
    assert "(epsilon = 0.5, delta = 1e-06)-differential privacy" in ran.out


def test_two_columns_are_crossed_and_numbers_cut(run) -> None:  # type: ignore[no-untyped-def]
    ran = run(
        *words(epsilon=2), "--by", "age", "--edges", "age=30,60", "--threshold", "0.3", "--positive", "<=50K", "--json"
    )
    assert ran.code == 0, ran.err
    found = vt.GroupTable.from_json(json.loads(ran.out))
    assert found.groups[:3] == ("Female, 17 to 29", "Female, 30 to 59", "Female, 60 to 90")
    assert (found.threshold, found.outcome_name) == (0.3, "income is <=50K")


def test_a_quote_is_free(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(), "--quote")
    assert ran.code == 0, ran.err
    assert "The price of groups by sex: epsilon 0.5" in ran.out
    assert not (folder / "l.db").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"by": "gender"}, "by names 'gender'"),
        ({"by": "income"}, "the target"),
        ({"by": "age"}, "edges={'age'"),
        ({"by": "age", "edges": "age=thirty"}, "as in age=30,60"),
        ({"threshold": 2}, "threshold is 2"),
        ({"positive": "rich"}, "positive is 'rich'"),
        ({"epsilon": 0.0001}, "ask for epsilon"),
    ],
)
def test_mistakes_are_said_and_cost_nothing(run, folder: Path, changed: dict[str, object], message: str) -> None:  # type: ignore[no-untyped-def]
    ran = run(*words(**changed))
    assert ran.code == 2
    assert message in ran.err
    assert not (folder / "l.db").exists()
