"""What is in the band of an importance besides the noise of the sum: the clip, donors, their distribution, the count."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vitrail as vt
from error_rates import planted_noise
from vitrail.explain import permutation_importance
from vitrail.explain.permutation_importance import plan_importance
from vitrail.solve.curves.importance import Donor, combined_scores, loss_of
from vitrail.solve.curves.importance_clip import (
    MEMORIES,
    MOST_TAKEN,
    OWN_SHARE,
    SAID_SHARE,
    ClipPlan,
    chosen_clip,
    loss_sizes,
    remembered,
    worth_reaching,
)
from vitrail.solve.curves.reference import Reference

SCHEMA = vt.Schema(
    {
        "a": vt.Numeric(0, 1),
        "b": vt.Numeric(0, 9, integer=True),
        "c": vt.Categorical(["x", "y", "z"]),
        "unused": vt.Numeric(0, 1),
        "y": vt.Numeric(0, 1, integer=True),
    }
)
FEATURES = SCHEMA.without("y")
N = 2000
RNG = np.random.default_rng(0)
ROWS = {
    "a": RNG.beta(2, 5, N),
    "b": RNG.integers(0, 10, N),
    "c": RNG.choice(["x", "y", "z"], N, p=[0.7, 0.2, 0.1]),
    "unused": RNG.random(N),
}
MODEL = vt.Model(lambda x: 0.1 + 0.4 * x[:, 0] + 0.3 * x[:, 1] ** 2 + 0.1 * x[:, 3], range=(0, 1), name="formula")
ROWS["y"] = (RNG.random(N) < MODEL.predict_points(FEATURES, FEATURES.read_points(ROWS))).astype(int)
LOSS = loss_of("squared", None, MODEL, SCHEMA, "y", None)


def bought(mu):
    data = vt.PrivateData(
        ROWS, SCHEMA, name="rows", target="y", n_rows_public=N, budget=vt.Budget(1e4, 1e-6), ledger="memory"
    )
    with planted_noise():
        return vt.private_rows(data, mu=mu, columns=FEATURES.names)


@pytest.fixture(scope="module")
def rows():
    return {mu: bought(mu) for mu in (0.3, 60.0)}


def planned(rows, noise=1e-3, **more):
    reference = Reference(FEATURES, MODEL, rows.marginals, None, 10**6, rows)
    return plan_importance(reference, FEATURES.names, LOSS, 2, noise=noise, **more)


# --- the clip ---------------------------------------------------------------------------------------------------------

DIFFERENCES = np.random.default_rng(1).standard_t(3, size=(1500, 3)) * [0.3, 0.1, 0.02]
LENGTHS = np.linalg.norm(DIFFERENCES, axis=1)


def test_without_noise_nothing_is_clipped():
    clip, bias = chosen_clip(DIFFERENCES, 0.0, None)
    assert clip == pytest.approx(LENGTHS.max())
    np.testing.assert_allclose(bias, 0, atol=1e-12)


def test_the_more_noise_the_smaller_the_clip():
    clips = [chosen_clip(DIFFERENCES, noise, None)[0] for noise in (0.0, 1e-3, 1e-2, 1.0)]
    assert clips == sorted(clips, reverse=True)
    assert clips[-1] < 0.2 * clips[0]


@pytest.mark.parametrize("clip", [None, 0.05, 100.0])
def test_the_bias_is_what_the_clip_takes_off_the_mean(clip):
    found, bias = chosen_clip(DIFFERENCES, 0.01, clip)
    assert clip is None or found == clip
    clipped = DIFFERENCES * np.minimum(1, found / LENGTHS)[:, None]
    np.testing.assert_allclose(bias, DIFFERENCES.mean(axis=0) - clipped.mean(axis=0), atol=1e-12)


def test_differences_that_are_all_zero_have_a_clip_all_the_same():
    clip, bias = chosen_clip(np.zeros((10, 2)), 0.1, None)
    assert clip > 0
    assert bias.tolist() == [0, 0]


def test_a_column_that_reaches_far_for_few_rows_is_not_clipped_for_it():
    """One public row of a thousand moves the last column: private rows that do are sent whole where noise is small."""
    differences = np.abs(np.random.default_rng(2).normal(0, 0.1, (1000, 4)))
    differences[:, 3] = np.where(np.arange(1000) == 0, 0.05, 0.0)
    reaches = np.array([0.4, 0.4, 0.4, 0.5])
    for noise in (1e-5, 1e-4):
        plan = ClipPlan.of(differences, reaches, noise, 1.0, None)
        # The second clip may be smaller than the one that sizes were made for, by a little.
        assert (reaches / plan.sizes).max() <= 1.5 * plan.clip
        assert reaches[3] / loss_sizes(differences, 1.0)[3] > 2 * plan.clip  # without the reach: cut to half
        np.testing.assert_allclose(np.square(plan.sizes).mean(), 1)


def test_room_for_what_few_rows_reach_is_no_larger_than_its_noise_is_worth():
    """Of two columns that reach equally far, the one that few rows move has less room the more noise there is."""
    differences = np.zeros((1000, 2))
    differences[:, 0], differences[:30, 1] = 0.1, 0.05
    rooms = np.array([worth_reaching(differences, np.ones(2), noise) for noise in (0.0, 1e-3, 1e-2, 1.0)])
    np.testing.assert_allclose(rooms[0], 1)
    assert (np.diff(rooms, axis=0) <= 0).all()
    assert (rooms[1:, 1] < rooms[1:, 0]).all()
    for noise, room in zip((1e-3, 1e-2, 1.0), rooms[1:, 1], strict=True):  # the least noise and loss together
        shares = np.linspace(0, 1, 1001)
        together = (shares * noise) ** 2 + ((1 - shares) * 0.0015) ** 2
        assert abs(shares[np.argmin(together)] - room) < 2e-3


@given(
    st.lists(st.sampled_from([0.0, 1e-320, 1e-200, 1e-12, 1e-3, 1.0, 50.0]), min_size=8, max_size=8),
    st.lists(st.sampled_from([0.0, 1e-320, 1e-12, 0.09, 1.0, 50.0]), min_size=2, max_size=2),
    st.sampled_from([0.0, 1e-9, 0.45, 1e9]),
    st.sampled_from([None, 1e-12, 0.1, 1e6]),
)
def test_reference_rows_that_say_little_have_a_clip_and_sizes_all_the_same(numbers, reaches, noise, clip):
    """Private rows of few rows at a low price may be all alike, or differ in one row, or by next to nothing."""
    differences = np.array([*numbers, *[0.0] * 192]).reshape(-1, 2)
    with np.errstate(all="raise", under="ignore"):
        plan = ClipPlan.of(differences, np.array(reaches), noise, 100.0, clip)
        taken = plan.taken(0.5, 0.1)
    assert 0 < plan.clip < np.inf
    assert ((plan.sizes > 0) & np.isfinite(plan.sizes)).all()
    assert ((taken.losses >= 0) & np.isfinite(taken.losses)).all()
    assert 1 <= taken.factor <= 1 / (1 - MOST_TAKEN) + 1e-9


def test_reference_rows_that_are_all_alike_leave_the_reach_to_go_by():
    plan = ClipPlan.of(np.zeros((1000, 2)), np.array([0.3, 0.0]), 1e-3, 1.0, None)
    assert 0.3 / plan.sizes[0] <= 2 * plan.clip
    np.testing.assert_allclose(plan.taken(1.0, 0.0).losses, plan.losses[-1])


def test_remembered_rows_differ_more_up_to_the_reach_and_never_less():
    reaches = np.array([0.2, 0.2, 0.0])
    for memory in MEMORIES:
        rows = remembered(DIFFERENCES, reaches, memory)
        assert (rows >= np.abs(DIFFERENCES)).all()
        assert (rows <= np.maximum(np.abs(DIFFERENCES), reaches)).all()
    np.testing.assert_array_equal(remembered(DIFFERENCES, reaches, 1.0), np.abs(DIFFERENCES))


def test_what_a_clip_took_is_what_it_takes_off_rows_of_which_as_many_are_clipped():
    plan = ClipPlan.of(DIFFERENCES, np.full(3, 10.0), 1e-3, 1.0, 1.5)
    assert (np.diff(plan.shares) >= 0).all()
    for share, losses, part in zip(plan.shares, plan.losses, plan.parts, strict=True):
        np.testing.assert_allclose(plan.taken(share, 0.0).losses, losses)
        assert plan.taken(share, 0.0).factor == pytest.approx(1 / (1 - min(part, MOST_TAKEN)))
    rows = remembered(DIFFERENCES, np.full(3, 10.0), 3.0) / plan.sizes
    lengths = np.linalg.norm(rows, axis=1)
    kept = rows * np.minimum(1, 1.5 / lengths)[:, None]
    taken, expected = plan.taken(float((lengths > 1.5).mean()), 0.0), (rows.mean(axis=0) - kept.mean(axis=0)) * plan.sizes
    np.testing.assert_allclose(taken.losses, expected)
    assert taken.factor == pytest.approx((rows.mean(axis=0) @ plan.sizes) / (kept.mean(axis=0) @ plan.sizes))
    assert (plan.taken(0.0, 0.02).losses > 0).all()
    nothing = plan.taken(-1.0, 0.0)
    assert (nothing.losses == 0).all()
    assert (nothing.factor, nothing.factor_std) == (1.0, 0.0)


@pytest.mark.parametrize("memory", [1.0, 2.0, 4.0])
def test_what_a_clip_takes_is_put_back_and_bands_know_the_rest(memory):
    """Rows of three columns, many of which are clipped, remembered as much as nobody knows beforehand."""
    draw = np.random.default_rng(7)
    reference, real = (draw.gamma(0.5, 1.0, (4000, 3)) * [0.3, 0.1, 0.02] for _ in range(2))
    plan = ClipPlan.of(reference, np.full(3, 10.0), 1e-3, 1.0, 0.3)
    real = memory * real
    lengths = np.linalg.norm(real / plan.sizes, axis=1)
    sent = (real * np.minimum(1, plan.clip / lengths)[:, None]).mean(axis=0)
    share = float((lengths > plan.clip).mean())
    taken, truth = plan.taken(share, 0.0), real.mean(axis=0)
    assert share > 0.1
    assert sent.sum() < 0.85 * truth.sum()
    off = np.abs(taken.factor * sent - truth)
    assert off.sum() < 0.5 * (truth - sent).sum()
    assert (off < 1.96 * np.hypot(taken.own(sent), taken.common(sent))).all()
    assert (np.argsort(taken.factor * sent) == np.argsort(sent)).all()


# --- beside the noise -------------------------------------------------------------------------------------------------


def test_what_moves_a_score_beside_the_noise_is_above_zero_where_the_model_looks(rows):
    summand = planned(rows[60.0])
    assert (summand.beside[:3] > 0).all()
    assert summand.beside[3] < 1e-12 < summand.beside[:3].min()
    assert summand.count_error == pytest.approx(rows[60.0].rows_counted.std / rows[60.0].rows_counted.denominator)


def spread_at(summand, clipped, noise=0.0):
    """Bands of plain scores where this share of the rows was clipped, with this noise on the share."""
    d, shown = len(summand.names), np.zeros(len(summand.names) + 2)
    noises = shown.copy()
    shown[d + 1], noises[d + 1] = clipped, noise
    return summand.scores(shown, noises, "plain")[1]


def test_a_clip_that_is_too_small_is_in_the_band(rows):
    tight, loose = planned(rows[60.0], clip=1e-3), planned(rows[60.0], clip=100.0)
    assert (spread_at(tight, 0.9)[:3] > 5 * spread_at(loose, 0.9)[:3]).any()
    assert (spread_at(tight, 0.9) >= spread_at(loose, 0.9)).all()


def test_what_a_clip_may_have_cut_off_follows_the_share_of_clipped_rows(rows):
    """None clipped and no noise about it: nothing; noise about it: something; all: what the most memory would cost."""
    summand = planned(rows[60.0], clip=0.05)
    np.testing.assert_allclose(spread_at(summand, 0.0), summand.beside)
    assert (spread_at(summand, 0.0, noise=0.01)[:3] > summand.beside[:3]).all()
    expected = np.hypot(summand.beside, SAID_SHARE * summand.clipped.losses[-1])
    np.testing.assert_allclose(spread_at(summand, 1.0), expected)


def test_what_all_columns_may_have_lost_alike_says_nothing_of_their_order(rows):
    """Combining weighs scores by what is each one's own; the rest is in the bands."""
    summand = planned(rows[60.0], clip=0.02)
    means, stds = np.array([0.03, 0.02, 0.0, 0.0, -0.3, 0.9]) / np.append(summand.sizes, [1, 1]), np.full(6, 1e-4)
    scores, own, common = summand._measured(means, stds)
    combined, doubt = combined_scores(scores, own, summand.told, summand.doubts, remembers=True)
    found, spread = summand.scores(means, stds, "smooth")
    np.testing.assert_allclose(found, combined)
    assert (common[:2] > own[:2]).all()
    assert (spread >= np.hypot(doubt, common) - 1e-12).all()


def test_noise_of_the_donors_distribution_is_in_the_band(rows, monkeypatch):
    """In squares, what is there besides donors and clip: more, the noisier the private rows are."""
    noisy, exact = (planned(rows[mu], clip=100.0) for mu in (0.3, 60.0))
    monkeypatch.setattr(permutation_importance, "UNCORRECTED", 0.0)
    without, exact_without = (planned(rows[mu], clip=100.0) for mu in (0.3, 60.0))
    moved, hardly = noisy.beside**2 - without.beside**2, exact.beside**2 - exact_without.beside**2
    assert (moved[:3] > 20 * hardly[:3]).all()
    assert (hardly[:3] >= 0).all()
    assert noisy.count_error > 10 * exact.count_error


def test_bands_are_the_squares_of_all_that_together_and_grow_with_the_error_of_the_count(rows):
    summand = planned(rows[60.0])
    means, stds = np.arange(1.0, 7.0), np.linspace(0.1, 0.2, 6)
    scores, spread = summand.scores(means, stds, "plain")
    taken, sent = summand.clipped.taken(means[5], stds[5]), means[:4] * summand.sizes
    np.testing.assert_allclose(scores, taken.factor * sent)
    expected = (taken.factor * stds[:4] * summand.sizes) ** 2 + summand.beside**2 + (summand.count_error * scores) ** 2
    clip = (OWN_SHARE * (taken.factor - 1) * sent) ** 2 + (taken.factor_std * sent) ** 2 + (SAID_SHARE * taken.losses) ** 2
    np.testing.assert_allclose(spread**2, expected + clip)
    for estimate in ("plain", "smooth"):  # twice what private rows tell, and hardly any noise
        likely = 2 * np.append(summand.told / summand.sizes, [0, 0])
        widths = [
            replace(summand, count_error=error).scores(likely, 1e-4 * stds, estimate)[1][:3] for error in (0.0, 0.05, 0.1)
        ]
        assert (np.diff(widths, axis=0) > 0).all()


# --- combined ---------------------------------------------------------------------------------------------------------


def test_a_column_that_is_remembered_far_more_than_the_others_is_covered():
    """One of eight has ten times what private rows tell, the others twice: tails are heavy enough not to pull it down."""
    told, generator, noise = np.full(8, 1.0), np.random.default_rng(2), np.full(8, 0.7)
    truth = np.array([2.0] * 7 + [10.0])
    inside = []
    for _ in range(200):
        scores, stds = combined_scores(truth + generator.normal(0, noise), noise, told, np.zeros(8), remembers=True)
        inside.append(np.abs(scores - truth) <= 1.96 * stds)
    assert np.mean(inside) >= 0.93
    assert np.mean(inside, axis=0)[-1] >= 0.85


# --- rows that are alike ----------------------------------------------------------------------------------------------

LEVELS = ["x", "y", "z"]
ALIKE = vt.Schema({**{name: vt.Categorical(LEVELS) for name in "abc"}, "y": vt.Numeric(0, 1, integer=True)})


def off_by_standard_errors(seed, n=4000):
    """Of importances from next to exact sums over rows of 27 kinds; the truth is a mean over all donors."""
    draw = np.random.default_rng(seed)
    chances, kinds = draw.random((3, 3, 3)), draw.integers(0, 3, (n, 3))
    target = (draw.random(n) < chances[tuple(kinds.T)]).astype(int)

    def outputs(values):
        return chances[tuple(values.astype(int).T)]

    rows = {name: np.array(LEVELS)[kinds[:, j]] for j, name in enumerate("abc")}
    budget = {"budget": vt.Budget(1e6, 1e-6), "ledger": "memory"}
    data = vt.PrivateData({**rows, "y": target}, ALIKE, name="kinds", target="y", n_rows_public=n, **budget)
    model = vt.Model(outputs, range=(0, 1), inputs="values", name="kinds")
    with planted_noise():
        found = vt.PermutationImportance(data, model)(mu=30.0)
    losses = np.zeros(3)
    for column in range(3):
        for level, share in enumerate(np.bincount(kinds[:, column], minlength=3) / n):
            altered = kinds.copy()
            altered[:, column] = level
            losses[column] += share * ((target - outputs(altered)) ** 2).mean()
    truth = losses - ((target - outputs(kinds)) ** 2).mean()
    places = [found.items.index(name) for name in "abc"]
    return (found.scores[places] - truth) / found.std[places]


def test_rows_that_are_alike_meet_the_same_donors_and_bands_know(monkeypatch):
    """Donors are chosen by a hash of the row. That four thousand rows are of 27 kinds made bands hold half of the time.

    Columns of so few levels need none, so donors are drawn here as for columns of many.
    """
    monkeypatch.setattr(Donor, "exact", lambda donor, repeats: False)
    off = np.concatenate([off_by_standard_errors(seed) for seed in range(8)])
    assert (np.abs(off) < 1.96).mean() > 0.9
    assert 0.4 < np.sqrt((off**2).mean()) < 1.1  # and are no wider than they need
    monkeypatch.setattr(Reference, "alike", 0.0)
    off = np.concatenate([off_by_standard_errors(seed) for seed in range(8)])
    assert (np.abs(off) < 1.96).mean() < 0.7


def test_columns_of_few_levels_meet_all_of_them_and_alike_rows_need_no_room_in_bands(monkeypatch):
    monkeypatch.setattr(Reference, "alike", 0.0)
    off = np.concatenate([off_by_standard_errors(seed) for seed in range(8)])
    assert (np.abs(off) < 1.96).mean() > 0.9


def test_how_many_rows_are_alike_is_told_by_private_rows():
    kinds = np.random.default_rng(0).integers(0, 3, (4000, 3))
    rows = {**{name: np.array(LEVELS)[kinds[:, j]] for j, name in enumerate("abc")}, "y": kinds[:, 0] % 2}
    budget = {"budget": vt.Budget(1e6, 1e-6), "ledger": "memory"}
    data = vt.PrivateData(rows, ALIKE, name="kinds", target="y", n_rows_public=4000, **budget)
    with planted_noise():
        private = vt.private_rows(data, mu=30.0)
    features = ALIKE.without("y")
    model = vt.Model(lambda x: x[:, 0], range=(0, 1), name="first")
    for known in (private, None):
        reference = Reference(features, model, private.marginals, None, 10**6, known)
        assert reference.alike == pytest.approx(4000 / 27, rel=0.1)
