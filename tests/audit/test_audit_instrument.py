"""The audit instrument: sound mechanisms pass, planted bugs are caught, bad input is refused.

Audited toys round their outputs to a grid, as the vault does: in double precision ``total + normal()`` is itself a bug,
and one of the tests says so.
"""

import json
from dataclasses import FrozenInstanceError

import matplotlib as mpl
import numpy as np
import pytest

from vitrail.accounting.guarantee import Guarantee
from vitrail.audit import Audit, mechanism
from vitrail.errors import InvalidInput

mpl.use("Agg")

GRID = 2.0**-20


def on_grid(values):
    return np.round(values / GRID) * GRID


def gaussian(seed, sigma=1.0):
    """Sum of a dataset's rows plus noise of ``sigma`` on every coordinate."""
    generator = np.random.default_rng(seed)

    def run(total, draws):
        total = np.asarray(total, dtype=float)
        return on_grid(total + generator.normal(0, sigma, (draws, *total.shape)))

    return run


def epsilon_claim(epsilon, delta=0.0):
    return Guarantee(epsilon, delta, 0.0)


def by_probabilities(seed, labels):
    """A mechanism whose dataset is its own table of output probabilities."""
    generator = np.random.default_rng(seed)
    return lambda probabilities, draws: np.asarray(labels)[generator.choice(len(labels), draws, p=probabilities)]


# Sound mechanisms


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_a_gaussian_mechanism_is_not_refuted_and_measured_tightly(mu):
    audit = mechanism(gaussian(11), (0.0, mu), claimed=mu)
    assert audit.verdict == "not refuted"
    assert 0.9 <= audit.tightness <= 1
    assert audit.mu_lower_two_intervals < audit.mu_lower


def test_sound_mechanisms_raise_no_false_alarms():
    alarms = 0
    for seed in range(200):
        mu, width = (0.3, 1.0, 3.0)[seed % 3], (1, 1, 4)[seed // 3 % 3]
        shift = np.full(width, mu / np.sqrt(width)) if width > 1 else mu
        alarms += mechanism(gaussian(1000 + seed), (0 * shift, shift), claimed=mu, draws=2000).refuted
    assert alarms <= 2  # 0.2 expected at most; three or more would have a chance of one in a thousand


def test_the_stated_confidence_is_kept_where_it_can_be_counted():
    audits = [mechanism(gaussian(5000 + seed), (0.0, 1.0), claimed=1.0, draws=1000, confidence=0.8) for seed in range(150)]
    assert sum(audit.refuted for audit in audits) <= 45  # 30 expected at most, standard deviation 5


def test_a_direction_among_many_coordinates_is_found():
    shift = np.random.default_rng(3).normal(size=20)
    shift /= np.linalg.norm(shift)
    audit = mechanism(gaussian(12), (0 * shift, shift), claimed=1.0, draws=100_000)
    assert not audit.refuted
    assert audit.tightness > 0.93


def test_correlated_noise_is_whitened():
    generator = np.random.default_rng(13)

    def run(total, draws):
        shared, own = generator.normal(size=(draws, 1)), generator.normal(size=(draws, 2))
        return on_grid(total + 10 * shared + own)

    # Along (1, -1) the noise has standard deviation sqrt 2 and the shift is 2: mu = sqrt 2.
    audit = mechanism(run, (np.zeros(2), np.array([1.0, -1.0])), claimed=np.sqrt(2).item(), draws=100_000)
    assert not audit.refuted
    assert audit.tightness > 0.95
    assert "discriminant" in audit.event.statistic


# Planted bugs


def test_halved_noise_is_caught():
    assert mechanism(gaussian(21, sigma=0.5), (0.0, 1.0), claimed=1.0).refuted


def test_noise_halved_on_one_dataset_only_is_caught_through_the_spread():
    generator = np.random.default_rng(22)
    audit = mechanism(lambda sigma, draws: on_grid(generator.normal(0, sigma, draws)), (1.0, 0.5), claimed=0.5)
    assert audit.refuted


def test_a_forgotten_clip_is_caught():
    clip = 1.0
    row = np.array([3.0, 0.0, 0.0])  # norm 3 C
    assert mechanism(gaussian(23, sigma=clip / 0.5), (np.zeros(3), row), claimed=0.5).refuted


def test_an_exact_count_alongside_is_caught():
    noisy = gaussian(24)

    def run(rows, draws):
        return np.column_stack([noisy(float(len(rows)), draws), np.full(draws, len(rows))])

    audit = mechanism(run, (range(10), range(11)), claimed=1.0, draws=20_000)
    assert audit.refuted
    assert audit.mu_lower > 5


def test_one_draw_for_two_coordinates_is_caught():
    generator = np.random.default_rng(25)

    def run(total, draws):  # the difference of the coordinates has no noise, and no coordinate shows it
        return on_grid(generator.normal(0, 10, (draws, 1))) + np.array([total, 0.0])

    audit = mechanism(run, (0.0, 0.5), claimed=0.1, draws=20_000)
    assert audit.mu_lower > 5
    assert "discriminant" in audit.event.statistic


@pytest.mark.parametrize("width", [1, 3])
def test_noise_shared_between_the_two_datasets_is_refused(width):
    generator = np.random.default_rng(20)
    memory = {}

    def run(total, draws):
        fresh = generator.normal(size=(draws, width))
        noise = memory.setdefault(draws, fresh) if draws > 100 else fresh  # small probes see nothing wrong
        return on_grid(total + noise)

    with pytest.raises(InvalidInput, match="depend on each other"):
        mechanism(run, (0.0, 1.0), claimed=1.0, draws=4000)


def test_a_seed_inside_run_is_refused_before_the_long_work():
    asked = []

    def run(total, draws):
        asked.append(draws)
        return on_grid(total + np.random.default_rng(0).normal(size=draws))

    with pytest.raises(InvalidInput, match="fixed seed"):
        mechanism(run, (0.0, 1.0), claimed=1.0)
    assert max(asked) < 100


def test_draws_that_follow_one_another_are_refused():
    generator = np.random.default_rng(26)
    with pytest.raises(InvalidInput, match="the draw before"):
        mechanism(
            lambda total, draws: on_grid(total + np.repeat(generator.normal(size=draws // 2), 2)),
            (0.0, 1.0),
            claimed=1.0,
            draws=4000,
        )


def test_a_sensitivity_off_by_root_two_is_caught():
    audit = mechanism(gaussian(27), (0.0, np.sqrt(2)), claimed=1.0)
    assert audit.refuted
    assert 1.35 < audit.mu_lower <= np.sqrt(2)


def test_a_tenth_too_much_is_caught():
    assert mechanism(gaussian(28), (0.0, 1.1), claimed=1.0).refuted


def test_one_unnoised_coordinate_of_fifty_is_caught():
    noisy = gaussian(29)

    def run(total, draws):
        outputs = noisy(np.zeros(50), draws)
        outputs[:, 37] = total
        return outputs

    audit = mechanism(run, (0.25, 0.375), claimed=0.5, draws=4000)
    assert audit.refuted
    assert "coordinate 37" in audit.event.statistic


def test_a_rare_exact_value_is_caught():
    generator = np.random.default_rng(30)

    def run(leaks, draws):
        outputs = on_grid(generator.normal(size=draws))
        return np.where(generator.random(draws) < 0.01 * leaks, 0.1234, outputs)

    audit = mechanism(run, (0, 1), claimed=0.5)
    assert audit.refuted
    assert "likelihood ratio" in audit.event.statistic


def test_an_exact_sum_under_integer_noise_is_caught():
    generator = np.random.default_rng(31)
    audit = mechanism(
        lambda total, draws: total + np.round(generator.normal(0, 100, draws)), (0.3, 0.7), claimed=0.01, draws=20_000
    )
    assert audit.mu_lower > 5
    assert "low bits" in audit.event.statistic


def test_floating_point_noise_is_caught_and_the_summary_says_what_to_do():
    generator = np.random.default_rng(32)
    run = lambda total, draws: total + generator.normal(0, 1, draws)  # noqa: E731
    audit = mechanism(run, (0.0, 1.0), claimed=1.0)
    assert audit.refuted
    assert "round" in audit.summary()
    assert not mechanism(run, (0.0, 1.0), claimed=1.0, statistic=on_grid).refuted


def test_a_missing_output_is_an_output():
    noisy, generator = gaussian(33), np.random.default_rng(34)

    def run(fails, draws):
        outputs = noisy(0.0, draws)
        outputs[: draws // 2 if fails else 0] = np.nan
        return generator.permutation(outputs)

    assert mechanism(run, (0, 1), claimed=0.5, draws=4000).refuted


# Categories and claims of an epsilon


def test_a_category_possible_on_one_dataset_only_is_caught():
    run = by_probabilities(41, ["red", "green", "blue"])
    pair = [0.49, 0.5, 0.01], [0.5, 0.5, 0.0]
    assert mechanism(run, pair, claimed=1.0).refuted
    audit = mechanism(run, pair, claimed=epsilon_claim(2.0, 1e-6))
    assert audit.refuted
    assert audit.event.likelier_on == "first"
    assert audit.event.false_alarms == 0


@pytest.mark.parametrize("as_type", [np.asarray, lambda found: found.astype(object), lambda found: found.astype(str)])
def test_randomised_response(as_type):
    epsilon = 1.0
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    draw = by_probabilities(42, [0, 1])
    run = lambda probabilities, draws: as_type(draw(probabilities, draws))  # noqa: E731
    pair = ([truth, 1 - truth], [1 - truth, truth])
    audit = mechanism(run, pair, claimed=epsilon_claim(epsilon), draws=100_000)
    assert not audit.refuted
    assert audit.tightness > 0.95
    assert audit.claimed_mu == 0
    assert mechanism(run, pair, claimed=epsilon_claim(0.9), draws=100_000).refuted


def test_the_exponential_mechanism_on_exact_probabilities():
    epsilon = 1.0
    # The pair of score vectors at distance 1 (sensitivity 1) that spends all of epsilon on the last candidate.
    scores = np.array([0.0, 0.0, 0.0, 0.0]), np.array([-1.0, -1.0, -1.0, 1.0])
    pair = tuple(np.exp(epsilon * s / 2) / np.exp(epsilon * s / 2).sum() for s in scores)
    exact = np.abs(np.log(pair[1] / pair[0])).max()
    run = by_probabilities(43, ["a", "b", "c", "d"])
    audit = mechanism(run, pair, claimed=epsilon_claim(epsilon))
    assert not audit.refuted
    assert 0.93 * exact < audit.epsilon_lower <= exact


@pytest.mark.parametrize(("claim", "refuted"), [(1.0, False), (0.9, True)])
def test_the_laplace_mechanism(claim, refuted):
    generator = np.random.default_rng(44)
    audit = mechanism(
        lambda count, draws: on_grid(count + generator.laplace(0, 1, draws)), (0.0, 1.0), claimed=epsilon_claim(claim)
    )
    assert audit.refuted is refuted
    assert 0.95 < audit.epsilon_lower <= 1.0


def test_selected_sets_are_compared_as_whole_rows():
    generator = np.random.default_rng(45)

    def run(same, draws):  # either coordinate alone is a fair coin on both datasets
        coins = generator.integers(0, 2, draws)
        return np.column_stack([coins, coins if same else 1 - coins])

    audit = mechanism(run, (True, False), claimed=0.5, draws=4000)
    assert audit.mu_lower > 4


def test_rows_of_mixed_types():
    generator = np.random.default_rng(46)

    def run(total):
        return ("low" if generator.random() < 0.5 else "high", round(total + generator.normal(), 3))

    assert mechanism(run, (0.0, 3.0), claimed=1.0, draws=2000).refuted
    assert not mechanism(run, (0.0, 0.3), claimed=1.0, draws=2000).refuted


def test_the_whole_guarantee_of_a_mu_is_tested_as_a_mu():
    audit = mechanism(gaussian(47), (0.0, 1.0), claimed=Guarantee.of_mu(1.0, 1e-3))
    assert audit.tests_mu
    assert audit.delta == 1e-3
    assert not audit.refuted
    assert 0 < audit.epsilon_lower <= audit.claimed.epsilon


# The face


def test_single_outputs_are_drawn_one_by_one():
    calls = []

    def run(total, rng=np.random.default_rng(48)):  # noqa: B008
        calls.append(total)
        return round(total + rng.normal(), 3)

    audit = mechanism(run, (0.0, 1.0), claimed=1.0, draws=1000)
    assert not audit.refuted
    assert 2000 <= len(calls) <= 2100


def test_a_given_statistic_replaces_the_outputs():
    shift = np.zeros(30)
    shift[4] = 0.3
    audit = mechanism(gaussian(49), (0 * shift, shift), claimed=0.3, statistic=lambda outputs: outputs[:, 4])
    assert audit.event.statistic == "output"
    assert audit.tightness > 0.85


def test_nothing_differs():
    audit = mechanism(lambda _, draws: np.full(draws, "same"), (0, 1), claimed=0.1, draws=1000)
    assert audit.mu_lower == 0
    assert not audit.refuted
    json.dumps(audit.to_json())
    audit.plot()


def test_an_audit_is_a_frozen_record_that_speaks_json():
    audit = mechanism(gaussian(50), (0.0, 1.0), claimed=1.0, draws=10_000)
    assert isinstance(audit, Audit)
    with pytest.raises(FrozenInstanceError):
        audit.mu_lower = 0.0
    told = json.loads(json.dumps(audit.to_json()))
    assert told["verdict"] == "not refuted"
    assert told["mu_event"]["hits"] == audit.event.hits > audit.event.false_alarms
    assert told["mu_event"]["trials"] == audit.event.trials == 5000
    assert str(audit) == audit.summary() == told["summary"]
    assert "99.9 %" in str(audit)


@pytest.mark.parametrize("claim", [1.0, epsilon_claim(3.0, 1e-6)])
def test_the_plot_shows_the_measured_curve_at_or_above_the_claim(claim):
    ax = mechanism(gaussian(51), (0.0, 1.0), claimed=claim, draws=20_000).plot().axes[0]
    claimed, measured = (line.get_xydata() for line in ax.lines)
    assert (np.diff(claimed[:, 1]) <= 1e-12).all()
    order = np.argsort(measured[:, 0], kind="stable")
    assert (measured[order, 1] >= np.interp(measured[order, 0], *claimed.T) - 0.03).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"claimed": 0.0}, "claimed is 0.0"),
        ({"claimed": "strong"}, "claimed is 'strong'"),
        ({"claimed": True}, "claimed is True"),
        ({"claimed": float("nan")}, "claimed is nan"),
        ({"claimed": Guarantee(float("inf"), 1e-6, 0.0)}, "epsilon of the claim is inf"),
        ({"claimed": epsilon_claim(1.0, 1e-6), "delta": 1e-5}, "its own delta"),
        ({"delta": 1.5}, "delta is 1.5"),
        ({"draws": 999}, "from 1000"),
        ({"draws": 1e4}, "whole number"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": 0.001}, "confidence is 0.001"),
        ({"neighbours": (1.0,)}, "pair of datasets"),
        ({"run": None}, "run is NoneType"),
        ({"run": lambda total, draws: np.zeros(draws - 1)}, "7 outputs for 8 draws"),
        ({"run": lambda total, draws: 3.0}, "one single value"),
        ({"run": lambda total, draws: np.full(draws, np.nan)}, "NaN and nothing else"),
        ({"run": lambda total, draws: np.zeros((draws, 0))}, "without coordinates"),
        ({"run": lambda total, draws: np.zeros(draws, dtype=complex)}, "complex"),
        ({"run": lambda total, draws: np.zeros((draws, 1 + int(total)))}, "pad the shorter"),
        ({"run": lambda total, draws: [(0,)] * (draws - 1) + [(0, 1)]}, "different widths"),
        ({"statistic": lambda outputs: outputs.mean()}, "statistic returned one single value"),
    ],
)
def test_bad_input_is_refused_before_the_long_work(changes, message):
    asked = []
    good = gaussian(52)
    given = {"run": good, "neighbours": (0.0, 1.0), "claimed": 1.0, "draws": 50_000, **changes}
    run = given.pop("run")

    def watched(total, draws):
        asked.append(draws)
        return run(total, draws)

    with pytest.raises(InvalidInput, match=message):
        mechanism(watched if run is not None else None, given.pop("neighbours"), given.pop("claimed"), **given)
    assert max(asked, default=0) < 100
