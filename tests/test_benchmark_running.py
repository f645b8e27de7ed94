"""The runner of the benchmarks: which parts run, what is kept, what is written."""

import json

import pytest

from benchmark_scripts import script

running = script("running")


def counted(calls, name, headline):
    def measure(bench):
        calls.append((name, bench))
        return running.Part(headline, [{"value": 1}, {"value": 2}], f"how {name} was measured")

    return measure


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "RESULTS", tmp_path / "results")
    return tmp_path / "results" / "small.json"


def small(calls, **more):
    figures = {
        "first": running.Figure(counted(calls, "first", {"gain": 2.0}), ("gain",)),
        "second": running.Figure(counted(calls, "second", {"loss": 0.5})),
        "third": running.Figure(counted(calls, "third", {}), needs="a_package_that_nobody_has"),
    }
    return running.Benchmark(name="small", script="benchmarks/small.py", figures=figures, quick="less", **more)


def run(benchmark, folder, *words):
    options = running.options_of(benchmark, None).parse_args(["--cache", str(folder / "cache"), *words])
    running.run(benchmark, options, lambda options: "bench")


def test_parts_are_asked_for_by_name_or_by_headline_key():
    benchmark = small([])
    assert running.chosen(benchmark, ["gain"]) == running.chosen(benchmark, ["first"]) == ["first"]
    assert running.chosen(benchmark, ["second", "gain"]) == ["first", "second"]
    assert running.chosen(benchmark, []) == ["first", "second"]
    assert running.chosen(benchmark, ["third"]) == ["third"]
    with pytest.raises(SystemExit, match="there is no part speed; there are first, second, third, gain"):
        running.chosen(benchmark, ["first", "speed"])


def test_a_whole_result_is_written_once_all_parts_are_there(tmp_path, results):
    calls = []
    benchmark = small(calls, facts={"delta": 1e-6})
    run(benchmark, tmp_path)
    assert not results.exists()
    run(benchmark, tmp_path, "--only", "third")
    found = json.loads(results.read_text())
    assert calls == [("first", "bench"), ("second", "bench"), ("third", "bench")]
    assert found["headline"] == {"gain": 2.0, "loss": 0.5}
    assert found["rows"][:3] == [
        {"part": "first", "value": 1},
        {"part": "first", "value": 2},
        {"part": "second", "value": 1},
    ]
    assert list(found["how"]) == [
        *("command", "delta", "python", "numpy", "cores", "machine", "seconds", "first", "second", "third"),
    ]
    assert found["how"]["command"] == "python benchmarks/small.py"


def test_resuming_measures_only_what_is_missing(tmp_path, results):
    calls = []
    run(small(calls), tmp_path, "--only", "second")
    run(small(calls), tmp_path, "--resume")
    assert [name for name, _ in calls] == ["second", "first"]
    run(small(calls), tmp_path)
    assert [name for name, _ in calls] == ["second", "first", "first", "second"]


def test_a_partial_result_says_what_is_not_finished_and_is_collected_without_measuring(tmp_path, results):
    calls, drawn = [], []
    benchmark = small(calls, partial=True, headline="{part}: {key}", draw=lambda rows, folder: drawn.append((rows, folder)))
    run(benchmark, tmp_path, "--only", "second")
    written = results.read_bytes()
    found = json.loads(written)
    assert found["headline"] == {"second: loss": 0.5}
    assert found["how"]["not finished"] == ["first", "third"]
    results.unlink()
    run(benchmark, tmp_path, "--collect")
    assert results.read_bytes() == written
    assert len(calls) == 1
    assert drawn == [(found["rows"], running.PICTURES)] * 2


def test_quick_runs_write_no_result_and_touch_no_finished_part(tmp_path, results):
    calls, drawn = [], []
    benchmark = small(calls, partial=True, draw=lambda rows, folder: drawn.append(folder))
    run(benchmark, tmp_path, "--quick")
    assert not results.exists()
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["small-quick"]
    assert drawn == [tmp_path / "cache" / "small-quick"]


def test_both_layouts_hold_the_same(tmp_path, results):
    run(small([], partial=True), tmp_path)
    rows_on_lines = results.read_text()
    run(small([], partial=True, indented=True), tmp_path, "--collect")
    assert results.read_text() != rows_on_lines
    assert json.loads(results.read_text()) == json.loads(rows_on_lines)
    assert '    {"part": "first", "value": 2},\n' in rows_on_lines


def test_a_part_yields_its_keys_unless_they_compare_with_printed_figures(tmp_path, results):
    for compared in (False, True):
        figures = {"only": running.Figure(counted([], "only", {}), ("gain",), compared=compared)}
        benchmark = running.Benchmark(name="small", script="benchmarks/small.py", figures=figures, quick="less")
        if compared:
            run(benchmark, tmp_path)
            assert results.exists()
        else:
            with pytest.raises(AssertionError, match="only did not yield"):
                run(benchmark, tmp_path)


def test_parts_on_torch_say_where_they_ran(tmp_path, results):
    run(small([], partial=True, torch=True), tmp_path, "--only", "first")
    how = json.loads(results.read_text())["how"]
    assert how["first"]["text"] == "how first was measured"
    assert how["first"]["device"]
    assert "machine" not in how


def test_a_part_measured_with_another_cache_is_not_lost(tmp_path, results):
    benchmark = small([], partial=True)
    run(benchmark, tmp_path, "--only", "first", "second")
    before = results.read_text()
    with pytest.raises(SystemExit, match=r"small\.json has first, which this cache lacks"):
        run(benchmark, tmp_path / "elsewhere", "--only", "second")
    assert results.read_text() == before


def test_parts_of_the_results_file_stay_where_they_are_not_measured_again(tmp_path, results):
    calls = []
    run(small(calls), tmp_path)
    run(small(calls), tmp_path, "--only", "third")
    again = small(calls)
    figures = {**again.figures, "first": running.Figure(counted(calls, "first", {"gain": 3.0}), ("gain",))}
    again = running.Benchmark(name="small", script="benchmarks/small.py", figures=figures, quick="less")
    run(again, tmp_path / "elsewhere", "--only", "first", "--merge")
    found = json.loads(results.read_text())
    assert found["headline"] == {"gain": 3.0, "loss": 0.5}
    assert [row["part"] for row in found["rows"]] == ["first", "first", "second", "second", "third", "third"]
    assert found["how"]["second"] == "how second was measured"
    assert len(calls) == 4
