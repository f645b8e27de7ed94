"""The choice among runs, inside the vault: what a neighbour does to its odds, and that a row is judged by its own bits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from vitrail.errors import InvalidInput
from vitrail.vault import MapChoice, MapTraining, TrainedMaps, choose_run, map_scores, noise_for, run_epsilon
from vitrail.vault.training.choice import choice_weights, count_right
from vitrail.vault.training.map_gradients import exact_responses
from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors


def run(n_maps=1, noise=5.0, steps=3, epsilon=1.0, n_classes=2, **changes):
    return MapTraining(
        n_classes=n_classes,
        n_maps=n_maps,
        noise_multiplier=noise,
        sampling_rate=1.0,
        steps=steps,
        epsilon=epsilon,
        delta=1e-5,
        expected_rows=50,
        **changes,
    )


def maps_of(n_maps, n_classes, width, seed=0):
    rng = np.random.default_rng(seed)
    return TrainedMaps(rng.normal(size=(n_maps, n_classes, width)), rng.normal(size=(n_maps, n_classes)))


# --- the odds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("neighbours", "moves"), [("add-remove", (0, 1)), ("replace-one", (-1, 0, 1))])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_neighbour_moves_the_odds_by_epsilon(neighbours, moves, epsilon):
    """Every way in which one held-out row can move three counts, for counts near and far: never more, and nearly that."""
    worst = 0.0
    for counts in ([5, 5, 5], [9, 0, 4], [0, 40, 3], [1, 0, 0]):
        before = choice_weights(counts, epsilon, neighbours)
        for step in itertools.product(moves, repeat=3):
            after = choice_weights([c + s for c, s in zip(counts, step, strict=True)], epsilon, neighbours)
            for old, new in zip(before, after, strict=True):
                if old > 2**200 and new > 2**200:  # of 256 bits; far below them a whole number has few digits
                    ratio = Fraction(new, sum(after)) / Fraction(old, sum(before))
                    worst = max(worst, abs(math.log(ratio)))
    assert worst <= epsilon * (1 + 1e-12)
    assert worst > 0.98 * epsilon


def test_the_best_count_wins_as_often_as_it_should():
    """Odds of 1 : e for counts 0 and 1 at epsilon 1, and of 1 : sqrt(e) where a row may be exchanged."""
    small, large = choice_weights([0, 1], 1.0, "add-remove")
    assert large / small == pytest.approx(math.e)
    small, large = choice_weights([0, 1], 1.0, "replace-one")
    assert large / small == pytest.approx(math.exp(0.5))


# --- a row alone -------------------------------------------------------------------------------------------------------


def responses(rows, found):
    """(rows, maps, classes), by the arithmetic that rows are trained and judged with."""
    width = rows.shape[1]
    made = training_vectors(rows, np.zeros(len(rows), np.int64), 2, PublicMatrices.of(None, None, width), None)
    return exact_responses(made.at(slice(None)), np.concatenate([found.maps, found.biases[:, :, None]], axis=2))


@pytest.mark.parametrize(("n_maps", "n_classes", "width"), [(1, 2, 3), (3, 2, 103), (5, 7, 61), (4, 10, 784)])
def test_a_row_is_judged_by_its_own_bits(n_maps, n_classes, width):
    """The same row at other places of the block, with other rows beside it, and its products summed in another order.

    What is summed is exact, so no order shows; rows that are not rounded, or to a bit too many, do not pass this.
    """
    rng = np.random.default_rng(1)
    found = maps_of(n_maps, n_classes, width)
    rows = rng.normal(size=(9, width)).astype(np.float32) * np.exp(rng.normal(0, 4, (9, 1))).astype(np.float32)
    seen = []
    for size in (9, 10, 64, 333, 1024, 1027):
        block = rng.normal(size=(size, width))
        places = rng.choice(size, len(rows), replace=False)
        block[places] = rows
        seen.append(responses(block, found)[places])
    for other in seen[1:]:
        assert np.array_equal(seen[0], other)
    for full in (block, np.where(block > -9, 1 - 2.0**-30, block)):  # the second as large as numbers of so many bits get
        for _ in range(4):
            order = rng.permutation(width)
            turned = TrainedMaps(found.maps[:, :, order], found.biases)
            assert np.array_equal(responses(full[:, order], turned), responses(full, found))
    told = map_scores(rows.astype(np.float64), found.maps, found.biases, 1.0).responses
    np.testing.assert_allclose(seen[0], told, rtol=1e-3, atol=1e-3 * np.abs(told).max())


def test_counts_of_parts_add_up_to_the_count_of_all():
    """However rows are dealt out among blocks; with scaled rows, an odd row out, and a label that is none."""
    rng = np.random.default_rng(2)
    found, plan = maps_of(3, 4, 11), run(n_maps=3, n_classes=4, row_length=2.0, beta=0.7)
    rows, labels = rng.normal(size=(2500, 11)).astype(np.float32), rng.integers(4, size=2500)
    rows[0], labels[1] = 0, 99
    whole = count_right(plan, found, rows, labels)
    said = map_scores(
        2.0 * rows.astype(np.float64) / np.maximum(1e-30, np.linalg.norm(rows.astype(np.float64), axis=1))[:, None],
        found.maps,
        found.biases,
        0.7,
    ).scores.argmax(axis=1)
    assert abs(whole - np.count_nonzero(said == labels)) <= 1  # rows on the edge: their vectors are rounded to 14 bits
    order = rng.permutation(2500)
    pieces = np.split(order, [1, 700, 701, 2300])
    assert sum(count_right(plan, found, rows[some], labels[some]) for some in pieces) == whole


def test_maps_that_ran_away_get_nothing_right():
    broken = TrainedMaps(np.full((1, 2, 3), np.nan), np.zeros((1, 2)))
    assert count_right(run(), broken, np.ones((5, 3), np.float32), np.zeros(5, np.int64)) == 0


# --- the plan ----------------------------------------------------------------------------------------------------------


def test_runs_are_priced_as_one_block():
    noise = noise_for(1.0, 1e-5, 1.0, 3 * 20)
    choice = MapChoice(tuple(run(m, noise, steps=20) for m in (1, 2, 3)), 1.0, 1e-5)
    choice.check_fits(7, "add-remove")
    assert run_epsilon(noise, 1.0, choice.event.steps, 1e-5) == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(InvalidInput, match="these 3 runs cost"):
        choice.check_fits(7, "replace-one")
    four = MapChoice((*choice.runs, run(4, noise, steps=20)), 1.0, 1e-5)
    with pytest.raises(InvalidInput, match="these 4 runs cost"):
        four.check_fits(7, "add-remove")


def test_runs_with_different_prices_are_refused():
    for other in (run(steps=4), run(noise=4.0), run(n_classes=3)):
        with pytest.raises(InvalidInput, match="same noise"):
            MapChoice((run(), other), 1.0, 1e-5)
    with pytest.raises(InvalidInput, match="two runs or more"):
        MapChoice((run(),), 1.0, 1e-5)


@pytest.mark.parametrize("n_rows", [0, 1, 40])
def test_few_rows_are_chosen_by_like_any_others(n_rows):
    choice = MapChoice((run(1), run(2)), 1.0, 1e-5)
    rows, labels = np.ones((n_rows, 3), np.float32), np.zeros(n_rows, np.int64)
    assert choose_run(choice, rows, labels) in (0, 1)


def test_a_row_trains_or_judges_and_never_both(monkeypatch):
    """Rows carry numbers; whichever a run is trained on, the others and only they are judged, one in five by its coin."""
    names = choose_run.__globals__
    seen = {"train_maps": [], "count_right": []}

    def watch(name, place):
        real = names[name]
        monkeypatch.setitem(
            names, name, lambda *given, **how: seen[name].append(given[place][:, 0].astype(int)) or real(*given, **how)
        )

    watch("train_maps", 1)
    watch("count_right", 2)
    rows = np.arange(10_000, dtype=np.float32)[:, None]
    for _ in range(2):
        choose_run(MapChoice((run(1), run(2)), 1.0, 1e-5), rows, np.zeros(10_000, np.int64))
    for trained_on, judged in zip(seen["train_maps"], seen["count_right"], strict=True):
        assert sorted([*trained_on, *judged]) == list(range(10_000))
        assert abs(len(judged) - 2000) < 6.5 * math.sqrt(10_000 * 0.2 * 0.8)  # false alarms: below 1e-9
    assert np.array_equal(seen["count_right"][0], seen["count_right"][1])  # both runs of a choice
    assert not np.array_equal(seen["count_right"][0], seen["count_right"][2])  # other coins at the next
