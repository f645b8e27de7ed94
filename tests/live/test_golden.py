"""The live page finds Python's numbers: today's Python still finds the committed ones, and so does npm test."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmark_scripts import ROOT, script
from vitrail.errors import InvalidInput, ModelError
from vitrail.live.prepared import FORMAT, prepared
from vitrail.results.archive import array_of, check_files, unpack
from vitrail.solve.shapley.on_rows import balanced_orders

pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
make_golden = script("make_golden", "tools")
WEB, GOLDEN = ROOT / "web", make_golden.GOLDEN
SAME = 1e-9
MOST_BYTES = 1_500_000
OURS = ("golden.pane", "features.onnx", "columns.onnx", "features.prepared", "columns.prepared")
OURS += ("numbers.json", "outputs.bin", "people.json")
OURS += ("odd.pane", "odd.onnx", "odd.prepared", "odd_numbers.json", "odd_people.json")


@pytest.fixture(scope="module")
def golden():
    return make_golden.read(GOLDEN)


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Everything in nested lists and objects, with where it stands."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, f"{path}/{key}")
    else:
        yield path, value


@pytest.mark.parametrize("file", ["numbers.json", "odd_numbers.json"])
def test_python_still_finds_the_committed_numbers(golden, file):
    numbers = make_golden.numbers_of(*golden) if file == "numbers.json" else make_golden.odd_numbers(GOLDEN)
    found = dict(leaves(json.loads(json.dumps(numbers))))
    committed = dict(leaves(json.loads((GOLDEN / file).read_text())))
    assert found.keys() == committed.keys()
    for path, number in committed.items():
        if isinstance(number, float):
            assert found[path] == pytest.approx(number, abs=SAME, rel=0), f"{path}: run python tools/make_golden.py"
        else:
            assert found[path] == number, f"{path}: run python tools/make_golden.py"


def test_recorded_outputs_are_those_of_the_model(golden):
    pane, models, people = golden
    raw = pane.schema.read_points(people)
    recorded = np.fromfile(GOLDEN / "outputs.bin", dtype="<f4")
    again = make_golden.chain_outputs(pane, models["features"], raw, make_golden.RECORDED)
    np.testing.assert_allclose(again, recorded, atol=1e-6, rtol=0)


def test_what_is_prepared_is_as_committed(golden):
    pane, models, _ = golden
    for name, model in models.items():
        (facts, files), (wanted, members) = (
            unpack(content, name) for content in (prepared(pane, model), (GOLDEN / f"{name}.prepared").read_bytes())
        )
        check_files(facts["files"], files, name)
        assert facts["format"] == wanted["format"] == FORMAT
        kept = ("players", "tables", "model", "words", "background")
        assert {field: facts[field] for field in kept} == {field: wanted[field] for field in kept}
        assert files.keys() == members.keys()
        for file, content in files.items():
            np.testing.assert_allclose(array_of(content, file), array_of(members[file], file), atol=1e-12, rtol=0)


def test_a_prepared_file_is_small_and_has_what_a_browser_cannot_fit(golden):
    pane, models, _ = golden
    content = prepared(pane, models["features"], background=256)
    facts, files = unpack(content, "the file")
    assert len(content) < 40_000
    orders = array_of(files["reasons/orders.npy"], "orders")
    assert np.array_equal(orders, balanced_orders(256, len(pane.schema), seed=0))
    rows = pane.private_rows
    assert np.array_equal(array_of(files["rows/shares.npy"], "shares"), np.concatenate(list(rows.shares.values())))
    first = rows._network.table(*facts["tables"][0]["pair"])
    assert np.array_equal(array_of(files["rows/tables.npy"], "tables")[: first.size], first.ravel())
    assert facts["model"]["own"]
    assert not unpack(prepared(pane, models["columns"]), "the file")[0]["model"]["own"]


def test_what_no_page_can_be_made_of_is_refused(golden):
    pane, models, _ = golden
    with pytest.raises(ModelError, match="a browser runs ONNX models"):
        prepared(pane, make_golden.formula_model())
    with pytest.raises(InvalidInput, match="background"):
        prepared(pane, models["features"], background=10**6)


def test_golden_files_are_small():
    assert sum((GOLDEN / name).stat().st_size for name in OURS) < MOST_BYTES


def test_the_live_page_finds_the_same_numbers(tmp_path: Path):
    npm = shutil.which("npm")
    if npm is None or not (WEB / "node_modules").is_dir():
        pytest.skip("THE LIVE PAGE IS NOT TESTED: node or web/node_modules is missing; run 'npm ci' in web/")
    largest = tmp_path / "largest.json"
    ran = subprocess.run(
        [npm, "test"],
        cwd=WEB,
        env={**os.environ, "GOLDEN_MAX_DIFF": str(largest)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    apart = json.loads(largest.read_text())
    print(f"golden_max_diff: {apart}")
    assert 0 <= apart["golden_max_diff"] <= SAME
    assert 0 <= apart["golden_max_diff_end_to_end"] <= 1e-5
