"""Bands of what was looked at in a sample: they hold what all rows would have said, and not by the noise alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import vitrail as vt
from error_rates import planted_noise, std_ratio_bounds
from vitrail.results.row_count import RowCount
from vitrail.schema.bins import bins_of
from vitrail.solve.rows.tables import contrast_sigma, contrasts
from vitrail.solve.sampling import cell_stds
from vitrail.vault import CellCounts, rehearse

N, RATE = 8_000, 0.1
SCHEMA = vt.Schema(
    {"age": vt.Numeric(0, 19, integer=True), "smoker": vt.Categorical(["no", "yes"]), "town": vt.Categorical(list("abcd"))}
)


def made_rows(n: int = N) -> dict[str, np.ndarray]:
    """Age and smoking hang together, and one town is rare."""
    draw = np.random.default_rng(7)
    age = np.clip(draw.normal(9, 4, n).round(), 0, 19).astype(int)
    smoker = np.where(draw.random(n) < 0.05 + 0.04 * age, "yes", "no")
    return {"age": age, "smoker": smoker, "town": draw.choice(list("abcd"), n, p=[0.6, 0.3, 0.09, 0.01])}


ROWS = made_rows()
RAW = SCHEMA.read_points(ROWS)


def private() -> vt.PrivateData:
    return vt.PrivateData(ROWS, SCHEMA, name="town", n_rows_public=N, budget=vt.Budget(1e4, 1e-6), ledger="memory")


def test_the_variance_of_a_count_is_noise_and_choice() -> None:
    """Of 300 samples of one column, against its own law; what is added for safety is next to nothing in large cells."""
    cut = bins_of("town", SCHEMA["town"], 4)
    question = CellCounts(lambda block: cut.index(block.column("town"))[:, None], (4,), rate=RATE)
    found = rehearse(question, ROWS, SCHEMA, mu=0.5, n_rows_public=N, draws=300, block_rows=4096)
    true = np.bincount(RAW[:, 2].astype(int), minlength=4)
    sigma = 1 / 0.5 / RATE
    expected = np.sqrt(sigma**2 + true * (1 - RATE) / RATE)
    low, high = std_ratio_bounds(300, of=4)
    assert (found.std(axis=0, ddof=1) > low * expected).all()
    assert (found.std(axis=0, ddof=1) < high * expected).all()
    np.testing.assert_allclose(cell_stds(RATE, true, sigma)[:3], expected[:3], rtol=0.03)
    assert (cell_stds(RATE, true, sigma) >= expected).all()
    # All partitions count the same rows: their mean knows the number of rows no better than one of them.
    several = RowCount.of_partitions([found[0]] * 50, 0.0, N, RATE)
    np.testing.assert_allclose(several.std, np.sqrt(several.counted * (1 - RATE) / RATE), rtol=0.01)


def held(result_of: Callable[[], tuple[np.ndarray, np.ndarray]], draws: int) -> float:
    """How often bands hold the truth; ``result_of`` gives distances and half-widths."""
    inside = []
    for draw in range(draws):
        with planted_noise(draw):
            off, half = result_of()
        inside.append(np.mean(off <= half))
    return float(np.mean(inside))


def test_bands_of_histograms_hold_the_choice_of_a_sample() -> None:
    def found(*, believed: float = RATE) -> tuple[np.ndarray, np.ndarray]:
        made = dataclasses.replace(vt.marginals(private(), mu=4.0, sampling_rate=RATE), sampling_rate=believed)
        columns = [RAW[:, index].astype(int) for index in range(3)]
        true = [np.bincount(values, minlength=len(cut)) for values, cut in zip(columns, made.bins, strict=True)]
        off = [np.abs(made.counts[name] - each) for name, each in zip(made.columns, true, strict=True)]
        rows, mean = made.rows_counted, abs(made.mean("age") - ROWS["age"].mean())
        half = [(made.upper[name] - made.lower[name]) / 2 for name in made.columns]
        off += [[abs(rows.counted - N), mean]]
        return np.concatenate(off), np.concatenate([*half, [rows.half_width, 1.96 * made.mean_sigma("age")]])

    assert 0.93 <= held(found, 60) <= 0.985
    assert held(lambda: found(believed=1.0), 20) < 0.75  # noise alone is not what moves them


def test_errors_of_private_rows_hold_the_choice_of_a_sample() -> None:
    """Means that hang on one column, on two that are linked, and on three; and moves of the same means."""

    def numbers(raw: np.ndarray) -> np.ndarray:
        age, smoker, town = raw.T
        return np.stack([age, smoker, age * smoker, (age > 12) * (smoker == 1), town == 2, (town == 1) * age], axis=1) + 0.0

    truth, moved = numbers(RAW).mean(axis=0), []

    def found(*, believed: float = RATE) -> tuple[np.ndarray, np.ndarray]:
        made = dataclasses.replace(vt.private_rows(private(), mu=20.0, sampling_rate=RATE), sampling_rate=believed)
        per_row = numbers(made.sampled)
        off = np.abs(per_row.mean(axis=0) - truth)
        # Of what is in moves, the choice of stored rows is not; they are drawn evenly, and 4 096.
        moves = np.sqrt(np.square(made.moves(per_row)).sum(axis=0) + 0.25 * per_row.var(axis=0) / len(per_row))
        moved.append(np.mean(off <= 1.96 * moves))
        return off, 1.96 * made.standard_errors(per_row[None])[0]

    assert held(found, 10) >= 0.93
    assert np.mean(moved) >= 0.9
    moved.clear()
    held(lambda: found(believed=1.0), 5)
    assert np.mean(moved) < 0.8


def test_contrasts_of_a_table_have_the_stated_mean_square() -> None:
    """Whatever the rows: a row's contrasts have the same length in every cell."""
    draw = np.random.default_rng(3)
    first, second = contrasts(4)[draw.integers(0, 4, 500)], contrasts(3)[draw.integers(0, 3, 500) ** 2 // 2]
    squares = np.einsum("ra,rb->rab", first, second) ** 2
    np.testing.assert_allclose(squares.sum(axis=0).mean(), 500 / 12)
    np.testing.assert_allclose(contrast_sigma(2.0, 0.2, 500.0, 4, 3), np.sqrt(4 + 4 * 500 / 12))


def test_bands_of_local_lines_hold_the_choice_of_a_sample() -> None:
    model = vt.Model(lambda x: 0.1 + 0.5 * x[:, 0] ** 2 + 0.3 * x[:, 0] * x[:, 2], range=(0, 1), inputs="features")
    points = {"age": [4, 15], "smoker": ["no", "yes"], "town": ["a", "b"]}
    with planted_noise():
        exact = vt.LocalLinear(private(), model)(points, mu=100.0)

    def found() -> tuple[np.ndarray, np.ndarray]:
        made = vt.LocalLinear(private(), model, sampling_rate=0.02)(points, mu=50.0)
        assert made.upper is not None
        return np.abs(made.values - exact.values), made.upper - made.values

    assert held(found, 12) >= 0.95


def test_a_file_says_a_rate_only_where_there_is_one() -> None:
    """Files of before are read as they were, and older readers refuse bands that they would make too narrow."""
    with planted_noise():
        whole, sampled = (vt.marginals(private(), mu=1.0, sampling_rate=rate) for rate in (1.0, RATE))
        rows = vt.private_rows(private(), mu=20.0, sampling_rate=RATE)
    assert "sampling_rate" not in whole.to_json()
    assert sampled.to_json()["sampling_rate"] == RATE
    for made in (whole, sampled, rows):
        assert type(made).from_bytes(made.to_bytes()).sampling_rate == made.sampling_rate
    assert rows.marginals.sampling_rate == RATE
    with pytest.raises(vt.errors.InvalidInput):
        type(sampled).from_json({**sampled.to_json(), "sampling_rate": 0.0})


def test_a_sampled_pane_knows_its_sample_wherever_it_explains() -> None:
    model = vt.Model(lambda x: 0.1 + 0.6 * x[:, 0], range=(0, 1), name="risk", inputs="features")
    with planted_noise():
        pane = vt.release(private(), model, parts=["rows", "reasons"], sampling_rate=RATE, mu=20.0)
        other = vt.release(private(), model, parts=["rows", "reasons"], mu=20.0)
    read = vt.Pane.from_bytes(pane.to_bytes(), model=model)
    person = {"age": 12, "smoker": "yes", "town": "a"}
    sampled, whole = read.local(person, bands=True), other.local(person, bands=True)
    assert any("Looked at about 10 %" in note for note in sampled.notes)
    truth = 0.6 * (12 - ROWS["age"].mean()) / 19
    widths = [float((each.upper - each.lower)[0, each.columns.index("age")]) / 2 for each in (sampled, whole)]
    assert widths[0] > widths[1]
    assert abs(sampled.values[0, sampled.columns.index("age")] - truth) < widths[0]
    assert read.private_rows.rows_counted.std > 3 * other.private_rows.rows_counted.std
    with pytest.raises(vt.errors.InvalidInput, match="the part 'local' looks at all rows"):
        vt.PaneExplainer(private(), model, parts=["rows", "local"], sampling_rate=RATE)
