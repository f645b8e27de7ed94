"""The live page answers as Python does: today's Python still gives the committed answers, and so does npm test."""

import json

import numpy as np
import pytest

from benchmark_scripts import script
from live.node import npm_test
from vitrail.errors import InvalidInput
from vitrail.live.prepared_search import DIGITS, FORMAT, prepared_search
from vitrail.results.archive import array_of, check_files, parsed_json, unpack
from vitrail.schema import Numeric
from vitrail.solve.counterfactual.search import POOL_CELLS, on_grid, pool_of

pytest.importorskip("sklearn")
make_golden = script("make_golden_counterfactual", "tools")
CASES = json.loads(make_golden.NAMES.read_text())
MOST_BYTES = 1_200_000


def forests(case):
    return [make_golden.Forest(**given) for given in CASES[case]["models"]]


@pytest.mark.parametrize("case", CASES)
def test_python_still_gives_the_committed_answers(case):
    fitted = make_golden.fitted_of(case, forests(case))
    schema = fitted.picture.schema
    for number, told in enumerate(CASES[case]["answers"]):
        if number % 4 and told["kind"] == "found":  # every fourth answer, and all that say there is none
            continue
        frame = schema.frame(np.array([told["point"]]))
        point = {name: values.tolist()[0] for name, values in frame.items()}
        found = make_golden.answers_of(fitted, point, told["wish"])
        again = "run python tools/make_golden_counterfactual.py answers"
        assert found is not None, again
        assert (found["kind"], found["rows"]) == (told["kind"], told["rows"]), again
        for field, within in (("outputs", 1e-9), ("distance", 1e-9), ("plausibility", 1e-7)):
            np.testing.assert_allclose(found[field], told[field], atol=within, rtol=0, err_msg=again)


@pytest.mark.parametrize("case", ["sides", "odd"])
def test_nobodys_answer_depends_on_who_else_is_asked(case):
    alone = [told for told in CASES[case]["answers"] if told["wish"] == {}]
    fitted = make_golden.fitted_of(case, forests(case))
    schema = fitted.picture.schema
    together = fitted(schema.frame(np.array([told["point"] for told in alone])), total_CFs=make_golden.TOTAL)
    for told, answers in zip(alone, together.answers, strict=True):
        assert [schema.read_points(answer.row)[0].tolist() for answer in answers] == told["rows"]


def test_the_cases_are_worth_something():
    answers = {case: told["answers"] for case, told in CASES.items()}
    kinds = {answer["kind"] for told in answers.values() for answer in told}
    assert kinds == {"found", "already", "none"}
    sides = [answer["output"] >= 0.5 for answer in answers["sides"]]
    assert any(sides)
    assert not all(sides)
    assert sum(len(answer["rows"]) > 1 for answer in answers["sides"]) > 10


@pytest.mark.parametrize("case", ["sides", "odd"])
def test_a_prepared_file_holds_the_pools(case):
    fitted = make_golden.fitted_of(case, forests(case))
    schema, content = fitted.picture.schema, prepared_search(fitted)
    facts, files = unpack(content, case)
    check_files(facts["files"], files, case)
    assert facts["format"] == FORMAT
    others = np.split(array_of(files["rows/values.npy"], "values"), np.cumsum(facts["values"])[:-1])
    for number in range(2):
        raw = pool_of(fitted.picture, fitted.classes, number, 0, number).raw
        texts = parsed_json(files[f"rows/class{number}.json"], "rows")
        assert facts["rows"][f"class{number}"] == len(raw) == min(len(raw), 4_000)
        for j, (column, text) in enumerate(zip(schema.values(), texts, strict=True)):
            cells = facts["cells"][j]
            steps = np.arange(cells + 1) / POOL_CELLS if cells else np.empty(0)
            grid = column.low + steps * (column.high - column.low) if cells else steps
            known = np.concatenate([grid, others[j]])
            digits = np.array([DIGITS.index(letter) for letter in text]).reshape(-1, len(raw))
            np.testing.assert_array_equal(known[np.polyval(digits, len(DIGITS))], raw[:, j])


def test_a_grid_keeps_zero_codes_and_whole_numbers():
    schema, rows = make_golden.odd_rows()
    raw = schema.read(rows)
    made = on_grid(schema, raw)
    for j, column in enumerate(schema.values()):
        if not isinstance(column, Numeric) or column.integer:
            np.testing.assert_array_equal(made[:, j], raw[:, j])
        else:
            stays = (raw[:, j] == 0) | np.isin(raw[:, j], column.codes)
            np.testing.assert_array_equal(made[stays, j], raw[stays, j])
            width = column.high - column.low
            assert np.abs(made[:, j] - raw[:, j]).max() <= 0.5001 * width / POOL_CELLS
            cells = (made[~stays, j] - column.low) / width * POOL_CELLS
            np.testing.assert_allclose(cells, np.rint(cells), atol=1e-6)


def test_what_no_browser_can_search_is_refused():
    three = make_golden.fitted_of("three", forests("three"))
    with pytest.raises(InvalidInput, match="several classes"):
        prepared_search(three, ranges=True)


def test_what_a_site_hands_over_is_small():
    assert len(prepared_search(make_golden.fitted_of("sides", forests("sides")))) < 60_000
    assert sum(path.stat().st_size for path in make_golden.GOLDEN.glob("counterfactual*")) < MOST_BYTES


def test_the_live_page_gives_the_same_answers():
    ran = npm_test()
    assert ran.code == 0, ran.printed[-6000:]
    assert all(f"{case}: the answers are those of Python" in ran.printed for case in CASES)
