"""Gram sums against rational arithmetic: every row's whole contribution, rounding included, obeys its bound."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import vitrail as vt
from error_rates import correlation_bound, std_ratio_bounds
from vitrail.errors import InvalidInput
from vitrail.vault.sums import gram_products
from vitrail.vault.sums.gram_products import UNIT_BITS, WEIGHT_BITS, DirectProducts, SharedProduct

NASTY = [0.0, -0.0, 5e-324, 1e-9, 1.0, -1.0, 1e154, -1e200, 1.7e308, math.nan, math.inf]
nasty_floats = st.one_of(st.sampled_from(NASTY), st.floats(), st.floats(-2, 2))

WEIGHTS = {
    "none": None,
    "gaussian": lambda d: np.exp(-d * d),
    "stable": lambda d: np.where(d <= 0.37, 1.0, 1 / np.maximum(2 * d * (1 + d), 1e-9)),
    "inverse": lambda d: 1 / np.maximum(d, 1e-3),
}


def question_of(fn, size, *, queries=1, centred=False, seed=0, row_norm=1.0, row_weights=None, weight="none", **options):
    """A GramSum with random centres inside ``row_norm``."""
    centres = None
    if centred:
        centres = np.random.default_rng(seed).normal(size=(queries, size))
        centres *= (
            row_norm * np.random.default_rng(seed).uniform(0, 1, (queries, 1)) / np.linalg.norm(centres, axis=1)[:, None]
        )
    return vt.GramSum(
        fn,
        size,
        row_norm=row_norm,
        centres=centres,
        queries=1 if centred else queries,
        row_weights=row_weights,
        weight=WEIGHTS[weight],
        **options,
    )


def exact_totals(question, walked, block_rows, mu=0.5):
    """The sums before they are rounded to the coarse grid, (queries, width), in fine cells."""
    plan = question.plan(mu, walked.facts)
    return plan, plan.products.sums(walked.totals(plan, block_rows))


def squared_norms(plan, totals):
    """Exact squared norm of every query's part in the isometric embedding."""
    first, second = np.triu_indices(plan.question.size)
    gram_cell, cross_cell = Fraction(plan.products.gram_cell), Fraction(plan.products.cross_cell)
    norms = []
    for row in totals:
        gram = sum((1 if i == j else 2) * int(x) ** 2 for i, j, x in zip(first, second, row[: plan.pairs], strict=True))
        cross = sum(int(x) ** 2 for x in row[plan.pairs :])
        norms.append(gram * gram_cell**2 + cross * cross_cell**2)
    return norms


def check_bounds(plan, totals):
    norms = squared_norms(plan, totals)
    assert all(norm <= Fraction(plan.question.l2_bound) ** 2 for norm in norms)
    assert sum(norms) <= Fraction(plan.question.joint_bound) ** 2


CONFIGURATIONS = [
    {"queries": 1},
    {"queries": 1, "cross": True},
    {"queries": 1, "centred": True, "weight": "stable", "cross": True},
    {"queries": 3, "centred": True, "weight": "gaussian"},
    {"queries": 3, "centred": True, "cross": True, "joint_bound": 0.2},
    {"queries": 2, "row_weights": True, "cross": True},
    {"queries": 9, "centred": True, "weight": "gaussian", "cross": True},
    {"queries": 9, "centred": True, "weight": "inverse", "joint_bound": 0.3},
    {"queries": 8, "row_weights": True, "cross": True, "weight": "stable"},
    {"queries": 8, "row_weights": True, "joint_bound": 0.01},
]


def by_configuration(configurations):
    return pytest.mark.parametrize(
        "configuration", configurations, ids=lambda c: "-".join(map(str, itertools.chain(*c.items())))
    )


def build(indexed, u, y, w, configuration, **options):
    _, lookup = indexed
    settings_ = dict(configuration)
    fn = lookup(u, y) if settings_.get("cross") else lookup(u)
    row_weights = lookup(w[:, : settings_["queries"]]) if settings_.pop("row_weights", False) else None
    return question_of(fn, u.shape[1], row_weights=row_weights, **settings_, **options)


@by_configuration(CONFIGURATIONS)
@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    size=st.integers(1, 4),
    l2_bound=st.sampled_from([0.05, 1.0, 2.5, 1e-4, 1e6]),
    row_norm=st.sampled_from([1.0, 0.75, 1.7320508075688772, 1e-20, 1e20]),
    y_bound=st.sampled_from([1.0, 0.3, 17.0]),
)
def test_one_row_never_exceeds_its_bounds(walk, indexed, configuration, data, size, l2_bound, row_norm, y_bound):
    rows, _ = indexed
    scale = row_norm * data.draw(st.sampled_from([1.0, 1.0, 3.0]))
    vectors = st.lists(st.lists(nasty_floats, min_size=size, max_size=size), min_size=3, max_size=5)
    with np.errstate(over="ignore"):
        u = np.array(data.draw(vectors)) * scale
        y = np.array(data.draw(st.lists(nasty_floats, min_size=len(u), max_size=len(u)))) * y_bound
    w = np.array(data.draw(st.lists(st.lists(nasty_floats, min_size=9, max_size=9), min_size=len(u), max_size=len(u))))
    relative = dict(configuration)
    if "joint_bound" in relative:
        relative["joint_bound"] *= l2_bound
    question = build(indexed, u, y, w, relative, l2_bound=l2_bound, row_norm=row_norm, y_bound=y_bound)
    singles = []
    try:
        exact_totals(question, walk(rows([0]), block_rows=3), 3)
    except InvalidInput:  # bounds so far apart that clipped rows would count nothing are refused
        assume(False)
    for i in range(len(u)):
        plan, totals = exact_totals(question, walk(rows([i]), block_rows=3), 3)
        check_bounds(plan, totals)
        if not np.isfinite(u[i]).all() or (question.cross and np.isnan(y[i])):
            assert not totals.any()
        singles.append(totals)
    everyone = sum(singles)
    for block_rows, threads in ((1, 1), (2, 3), (len(u), 1), (len(u) + 2, 1)):
        order = range(len(u)) if threads == 1 else range(len(u))[::-1]
        _, totals = exact_totals(question, walk(rows(order), block_rows=block_rows, threads=threads), block_rows)
        assert np.array_equal(totals, everyone)


def ordinary_rows(m=25, n=3):
    """Rows inside the unit ball, y and weights partly outside their ranges."""
    generator = np.random.default_rng(11)
    u = generator.normal(size=(m, n))
    u /= np.linalg.norm(u, axis=1, keepdims=True) * generator.uniform(1.001, 4, (m, 1))
    return u, generator.uniform(-1.2, 1.2, m), generator.uniform(-0.2, 1.2, (m, 9))


def allowed_weight(question, d2, y, row_weight, extra):
    """The largest weight that what was asked for and the bound on one query allow, to 200 bits."""
    asked = mpf(float(np.clip(row_weight, 0, 1)))
    if question.weight is not None:
        asked *= mpf(float(np.clip(question.weight(np.array([[float(mp.sqrt(d2))]])), 0, 1)[0, 0]))
    norm = mp.sqrt(d2 * (d2 + y * y)) + extra
    return min(asked, mpf(question.l2_bound) / norm) if norm else asked


@by_configuration([c for c in CONFIGURATIONS if c["queries"] < 8 and "joint_bound" not in c])
def test_few_queries_sum_what_rational_arithmetic_says(walk, indexed, configuration):
    """The oracle: w d d^T and w y d of every row with the largest weight allowed; only rounding to cells may differ."""
    rows, _ = indexed
    u, y, w = ordinary_rows()
    question = build(indexed, u, y, w, configuration, l2_bound=0.6)
    plan, totals = exact_totals(question, walk(rows(range(len(u))), block_rows=6), 6)
    assert isinstance(plan.products, DirectProducts)
    first, second = np.triu_indices(3)
    with mp.workprec(200):
        oracle = [[mpf(0)] * plan.query_width for _ in range(question.queries)]
        for i, q in itertools.product(range(len(u)), range(question.queries)):
            centre = np.zeros(3) if question.centres is None else question.centres[q]
            d = [mpf(float(a)) - mpf(float(b)) for a, b in zip(u[i], centre, strict=True)]
            y_i = mpf(float(np.clip(y[i], -1, 1))) if question.cross else mpf(0)
            weight = allowed_weight(question, sum(x * x for x in d), y_i, w[i, q] if question.row_weights else 1.0, 0)
            for place, (a, b) in enumerate(zip(first, second, strict=True)):
                oracle[q][place] += weight * d[a] * d[b]
            for place in range(plan.query_width - plan.pairs):
                oracle[q][plan.pairs + place] += weight * y_i * d[place]
        cells = [plan.products.gram_cell] * plan.pairs + [plan.products.cross_cell] * (plan.query_width - plan.pairs)
        for q in range(question.queries):
            for found, expected, cell in zip(totals[q], oracle[q], cells, strict=True):
                assert abs(mpf(int(found)) * mpf(cell) - expected) < 25 * 3e-6


@by_configuration([c for c in CONFIGURATIONS if c["queries"] >= 8])
def test_many_queries_sum_what_rational_arithmetic_says(walk, indexed, configuration):
    """The oracle: u, y rounded to nearest, w lowered and rounded down, everything else in integers."""
    rows, _ = indexed
    u, y, w = ordinary_rows()
    question = build(indexed, u, y, w, configuration, l2_bound=0.6)
    plan, totals = exact_totals(question, walk(rows(range(len(u))), block_rows=6), 6)
    product = plan.products
    assert isinstance(product, SharedProduct)
    unit = Fraction(product.u_scale) / 2**UNIT_BITS
    y_unit = Fraction(product.y_scale) / 2**UNIT_BITS
    z = np.zeros((1, 3)) if question.centres is None else question.centres
    z = [[round(Fraction(float(x)) / unit) for x in row] for row in z]
    first, second = np.triu_indices(3)
    oracle, slack = np.zeros(totals.shape, dtype=object), np.zeros(totals.shape, dtype=object)
    for i in range(len(u)):
        cells = [round(Fraction(float(x)) / unit) for x in u[i]]
        y_cell = round(Fraction(float(np.clip(y[i], -1, 1))) / y_unit) if question.cross else 0
        d = [[a - b for a, b in zip(cells, z[min(q, len(z) - 1)], strict=True)] for q in range(question.queries)]
        squares = np.array([[float(sum(x * x for x in row)) for row in (d if question.centres is not None else d[:1])]])
        given_weights = w[i : i + 1, : question.queries] if question.row_weights else np.zeros((1, 0))
        y_cells = np.array([float(y_cell)]) if question.cross else None
        found = product._integer_weights(squares, y_cells, given_weights, None)[0]
        for q in range(question.queries):
            weight = int(found[q])
            check_integer_weight(question, product, d[q], y_cell, w[i, q] if question.row_weights else 1.0, weight)
            oracle[q, : plan.pairs] += [weight * d[q][a] * d[q][b] for a, b in zip(first, second, strict=True)]
            if question.cross:
                oracle[q, plan.pairs :] += [weight * y_cell * entry for entry in d[q]]
            slack[q] += weight * 2 ** (UNIT_BITS - 1)  # the products were rounded once more
    assert (np.abs(totals - oracle) <= slack).all()
    assert (totals != oracle).any()


def check_integer_weight(question, product, d, y_cell, row_weight, weight):
    """At most what was asked for and what the bound allows; without a joint clip, not a unit less."""
    with mp.workprec(200):
        unit = mpf(2) ** -UNIT_BITS
        d2 = sum(mpf(x) ** 2 for x in d) * (mpf(product.u_scale) * unit) ** 2
        y = mpf(y_cell) * mpf(product.y_scale) * unit
        allowed = allowed_weight(question, d2, y, row_weight, mpf(product.rounding)) * 2**WEIGHT_BITS
        assert weight <= mp.floor(allowed * (1 + mpf(2) ** -50))
        if question.joint_bound >= math.sqrt(question.queries) * question.l2_bound * (1 - 1e-9):
            assert weight >= mp.floor(allowed * (1 - mpf(2) ** -38)) - 1


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@by_configuration(CONFIGURATIONS)
def test_what_is_released_moves_by_at_most_the_charged_sensitivity(walk, indexed, configuration, neighbours):
    """After rounding to the coarse grid, for every left-out or exchanged row, in the isometric embedding."""
    rows, _ = indexed
    generator = np.random.default_rng(3)
    u = generator.normal(size=(7, 2)) * 3
    y, w = generator.normal(size=7) * 3, generator.uniform(0, 1, (7, 9))
    question = build(indexed, u, y, w, configuration, l2_bound=0.4)
    first, second = np.triu_indices(2)

    def cells(order):
        walked = walk(rows(order), block_rows=4, neighbours=neighbours)
        plan = question.plan(0.5, walked.facts)
        return plan, plan.exact_cells(walked, 4).reshape(question.queries, -1)

    plan, everyone = cells(range(7))
    assert Fraction(plan.sensitivity) / Fraction(plan.sigma) <= Fraction(1, 2)
    for left_out in range(7):
        others = [i for i in range(7) if i != left_out]
        _, neighbour = cells(others if neighbours == "add-remove" else [*others, (left_out + 3) % 7])
        moved = everyone - neighbour
        gram = moved[:, : plan.pairs].astype(object)
        squared = (gram**2 * np.where(first == second, 1, 2)).sum() + (moved[:, plan.pairs :].astype(object) ** 2).sum()
        assert squared * Fraction(plan.step) ** 2 <= Fraction(plan.sensitivity) ** 2


def test_noise_has_one_standard_deviation_in_the_isometric_embedding(walk, indexed):
    rows, lookup = indexed
    question = vt.GramSum(lookup(np.zeros((1, 2)), np.zeros(1)), 2, 1.0, cross=True)
    walked = walk(rows([]))
    plan = question.plan(1.0, walked.facts)
    drawn = plan.answers(walked, 8, 40_000)
    expected = plan.sigma * np.array([1, math.sqrt(0.5), 1, 1, 1])
    assert drawn.shape == (40_000, 5)
    low, high = std_ratio_bounds(40_000, of=15)
    ratios = drawn.std(axis=0, ddof=1) / expected
    assert low < ratios.min() <= ratios.max() < high
    correlation = np.corrcoef(drawn.T) - np.eye(5)
    assert np.abs(correlation).max() < correlation_bound(40_000, of=15)


@by_configuration([c for c in CONFIGURATIONS if c["queries"] >= 8])
def test_rows_that_are_worked_on_in_pieces_give_the_same_integers(walk, indexed, configuration, monkeypatch):
    rows, _ = indexed
    generator = np.random.default_rng(5)
    u, y, w = generator.normal(size=(300, 3)) / 3, generator.uniform(-1, 1, 300), generator.uniform(-0.2, 1.2, (300, 9))
    u[7], y[200] = np.nan, np.nan
    question = build(indexed, u, y, w, configuration, l2_bound=0.6)
    whole = exact_totals(question, walk(rows(range(300)), block_rows=300), 300)[1]
    monkeypatch.setattr(gram_products, "CELLS_AT_ONCE", 64)
    assert len(gram_products._pieces(300, question.queries)) == 5
    pieces = exact_totals(question, walk(rows(range(300)), block_rows=300), 300)[1]
    assert pieces.tolist() == whole.tolist()
    assert any(pieces.ravel().tolist())


def test_many_blocks_settle_into_exact_python_integers(walk, indexed):
    """More than 512 blocks of the largest sums: past what an int64 could have added up in floats."""
    rows, lookup = indexed
    question = vt.GramSum(lookup(np.ones((1, 1))), 1, 1.0, row_norm=1.0)
    _, totals = exact_totals(question, walk(rows(np.zeros(1100)), block_rows=1), 1)
    _, single = exact_totals(question, walk(rows([0])), 8)
    assert totals[0, 0] == 1100 * single[0, 0]
    assert single[0, 0] > 0


def test_a_weight_that_looks_at_other_rows_is_refused_before_anything_is_charged(private, indexed):
    rows, lookup = indexed
    data = private(rows(range(20)))
    fn = lookup(np.ones((1, 1)))
    impure = (
        lambda d: d / d.max(),
        lambda d: np.argsort(np.argsort(d, axis=0), axis=0) / len(d),
        lambda d: np.ones_like(d) * np.random.default_rng().random(d.shape),
        lambda d: np.ones(d.shape[0]),
        lambda d: d - 0.5,
        lambda d: np.sqrt(0.5 - d),
        lambda d: 1 // 0,
    )
    for weight in impure:
        with np.errstate(invalid="ignore"), pytest.raises(vt.errors.InvalidInput):
            data.ask(vt.GramSum(fn, 1, 1.0, weight=weight), mu=1.0)
    assert data.budget.spent.pico_mu_squared == 0


def test_a_weight_that_fails_on_some_private_distance_costs_that_row_alone(walk, indexed):
    rows, lookup = indexed
    u = np.array([[0.1], [0.5], [0.7]])

    def brittle(d):
        if (np.abs(d - 0.5) < 1e-3).any():
            raise KeyError("a private distance")
        return np.ones_like(d)

    whole = vt.GramSum(lookup(u), 1, 1.0)
    touchy = vt.GramSum(lookup(u), 1, 1.0, weight=brittle)
    _, expected = exact_totals(whole, walk(rows([0, 2, 0])), 8)
    _, found = exact_totals(touchy, walk(rows([0, 1, 2, 1, 0])), 8)
    assert np.array_equal(found, expected)
