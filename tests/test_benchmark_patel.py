"""The pure functions behind the reproduced paper, and the page made from its results."""

import json
import math

import numpy as np
import pytest

from benchmark_scripts import ROOT, script
from vitrail import accounting
from vitrail.solve.linear import weights

cases = script("papers.patel_cases")
streams = script("papers.patel_streams")
published = script("papers.patel_published")
figures = script("papers.patel_figures")
exact = script("exact")
stream = script("local_stream")
setup = script("local_setup")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x = (rng.uniform(size=(700, 6)) < 0.4) / math.sqrt(6)
    return x, np.where(x[:, 0] + 0.3 * rng.normal(size=700) > 0.2, 1.0, -1.0)


def test_wide_statistics_are_those_of_the_shared_product(rows):
    x, f = rows
    weight = weights.stable(1.0)
    ((a, b),) = exact.statistics(x, f, x[:5], [weight])
    np.testing.assert_allclose(cases.wide_grams(x, x[:5], weight), a, atol=1e-13)
    np.testing.assert_allclose(cases.wide_crosses(x, f, x[:5], weight), b, atol=1e-13)


def test_statistics_with_an_intercept_border_those_without(rows):
    x, f = rows
    weight = weights.stable(1.0)
    ((a, b),) = exact.statistics(x, f, x[:5], [weight], affine=True)
    whole, crosses = cases.bordered(x, f, x[:5], weight, cases.wide_grams(x, x[:5], weight))
    np.testing.assert_allclose(whole, a, atol=1e-13)
    np.testing.assert_allclose(crosses, b, atol=1e-13)


def test_a_wide_third_is_read_back_from_the_cache_and_takes_new_labels(rows, tmp_path):
    x, f = rows
    cache = setup.Cache(tmp_path)
    first = cases.wide_third(cache, "few", x, f, x[:4], x[:4], 700)
    again = cases.wide_third(cache, "few", x, -f, x[:4], x[:4], 9000)
    np.testing.assert_array_equal(first.a, again.a)
    np.testing.assert_allclose(first.b, -again.b)
    assert len(list(tmp_path.iterdir())) == 1
    assert (first.rows, again.rows) == (700, 9000)
    assert first.excess(first.best).max() < 1e-12
    assert first.excess(np.zeros_like(first.b)).min() > 1e-4


def test_algorithm_3_is_billed_query_by_query_by_its_own_claim(rows):
    x, f = rows
    weight = weights.stable(1.0)
    ((a, b),) = exact.statistics(x, f, x[:30], [weight])
    third = stream.Third(700, x[:30], x[:30], a, b)
    protocol = published.Algorithm3(third.statistics, 700, math.inf, 1e-6, 1.0, 1e-7, np.random.default_rng(1), 40)
    claimed = []
    for z in third.centres:
        protocol.explain(z)
        claimed.append(protocol.spent_epsilon)
    assert 0 in protocol.steps  # some were handed on
    np.testing.assert_allclose(streams.claimed_curve(protocol), claimed, rtol=1e-12)


def test_the_raised_epsilon_gives_the_printed_number_of_steps(rows):
    x, f = rows
    ((a, b),) = exact.statistics(x, f, x[:3], [weights.stable(1.0)])
    third = stream.Third(400_000, x[:3], x[:3], a, b)
    load = streams.Workload("acs", None, [third], [], 0.01)
    protocol = published.Algorithm3(
        third.statistics, third.rows, math.inf, 1e-7, streams.epsilon_for_least(load), 1e-7, np.random.default_rng(1)
    )
    assert published.steps_of(math.sqrt(6) * protocol.sigma_min, 300) == 95


def test_a_stream_is_billed_for_its_dearest_part():
    squares = np.array([[1e-4, 0.0, 0.0], [0.0, 1e-4, 3e-4], [1e-4, 1e-4, 0.0]])
    expected = [accounting.epsilon_of(math.sqrt(total), streams.DELTA_STREAM) for total in (1e-4, 2e-4, 4e-4)]
    np.testing.assert_allclose(streams.gdp_curve(squares), expected)


def test_histograms_lose_nobody():
    counts = streams.histogram(np.array([0.0, 1e-12, 3e-4, 1.0, 7.0]), streams.LOSS_EDGES)
    assert sum(counts) == 5
    assert (counts[0], counts[-1]) == (2, 2)


def test_only_words_of_the_review_are_among_its_strongest():
    phi, present = np.array([5.0, -4.0, 3.0, 2.0, -1.0]), np.array([False, True, True, False, True])
    assert cases.strongest_present(phi, present, 2) == [1, 2]
    assert cases.strongest_present(phi, present) == [1, 2, 4]
    assert cases.agreement([1, 2, 3], [3, 1, 9]) == 2


def test_the_page_comes_from_the_result_file():
    page = (ROOT / "docs" / "papers" / "patel.md").read_text()
    stored = json.loads((ROOT / "benchmarks" / "results" / "patel.json").read_text())
    for part in {row["part"] for row in stored["rows"]}:
        assert f"<!-- table: patel.{part} -->" in page
        if part not in figures.PICTURES:
            continue
        picture = ROOT / "docs" / "papers" / "figures" / f"patel_{part}.png"
        assert 2_000 < picture.stat().st_size < 80_000


def test_what_is_not_measured_again_stays_as_it_was(tmp_path):
    bench = cases.PatelBench(tmp_path, setup.Cache(tmp_path), setup.Scale(True), sets=("text",))
    assert bench.measures("text")
    assert not bench.measures("acs")
    kept = cases.kept_rows("table3", lambda row: row["data"] == "ACS")
    assert kept
    assert all(row["data"] == "ACS" and "part" not in row for row in kept)
    assert cases.in_parallel([lambda: 1, lambda: 2], 1) == [1, 2]
