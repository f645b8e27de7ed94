"""Claims that do not hold, and claims that do: what the mechanism audit says about either.

Breaches: five of the papers as published (docs/errata.md) and two planted in our own vault. Every one is drawn as it is;
where an output needs post-processing to be looked at (a likelihood ratio that a reader can compute), the row says so. Sound
mechanisms: the vault's own questions on worst-case neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

import vitrail as vt
from papers import patel_published, yang_published
from vitrail.explain.recipe import Terms
from vitrail.solve.linear.weights import stable
from vitrail.vault import rehearse
from vitrail.vault.questions import grouped_sum

GRID = 2.0**-20
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Breach:
    """A mechanism, a pair of neighbours, and what is claimed."""

    name: str
    run: Callable[..., object]
    neighbours: tuple[object, object]
    claimed: vt.Guarantee | float
    draws: int
    what: str
    planted: Callable[[], AbstractContextManager[None]] | None = None


def on_grid(values: np.ndarray) -> np.ndarray:
    return np.round(values / GRID) * GRID


# --- Patel et al., Algorithm 2 --------------------------------------------------------------------------------------------


def algorithm_2(seed: int, draws: int) -> Breach:
    """The number of steps T' of the second of two queries, which the exact gradient norm decides."""
    rows = 2000
    r, weight = (math.sqrt(3) - 1) / 2, stable(1.0)
    without = np.concatenate([np.full(886, 0.9 - r), np.full(rows - 886, 0.9)])[:, None]
    with_one = np.concatenate([without, [[0.4]]])
    queries = np.array([[0.1], [0.9]])
    epsilon, delta, iterations = 2.0, 1e-6, 30

    def statistics(table: np.ndarray) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
        found = {}
        for query in queries:
            d = table - query
            alpha = weight(np.abs(d[:, 0]))
            f = np.where(table[:, 0] < 0.5, 1.0, -1.0)
            found[query.tobytes()] = (
                (d * alpha[:, None]).T @ d / len(table),
                (d * (alpha * f)[:, None]).sum(axis=0) / len(table),
            )
        return found

    both = [statistics(without), statistics(with_one)]
    generator = np.random.default_rng(seed)

    def run(table: np.ndarray) -> float:
        known = both[len(table) - rows]
        state = patel_published.Algorithm3(
            lambda centre: known[centre.tobytes()],
            rows,
            epsilon,
            delta,
            epsilon / 2,
            delta / 4,
            generator,
            iterations=iterations,
        )
        for query in queries:
            state.explain(query)
        matches = []
        for one in both:
            beta = float(np.linalg.norm(patel_published.gradient(*one[queries[1].tobytes()], state.phis[0])))
            matches.append(patel_published.steps_of(max(beta, state.sigma_min), iterations) == state.steps[1])
        return float(matches[1]) - float(matches[0])

    what = "which dataset the number of steps of the second query fits, given the first answer"
    return Breach("Algorithm 2, as published", run, (without, with_one), vt.Guarantee(epsilon, delta, 0.0), draws, what)


# --- Yang et al. ---------------------------------------------------------------------------------------------------


def prototypes(seed: int, draws: int) -> Breach:
    """The only row of a class is its prototype."""
    generator = np.random.default_rng(seed)
    crowd = np.ones((6, 2))

    def run(row: np.ndarray, draws: int) -> np.ndarray:
        rows, classes = np.concatenate([crowd, row]), np.array([0] * len(crowd) + [1])
        made = [yang_published.published_dpc(rows, classes, 2, 0.1, generator, hidden=2, epochs=5) for _ in range(draws)]
        return on_grid(np.array([np.abs(one.prototypes[1] - 0.5).max() for one in made]))

    claim = vt.Guarantee(0.1, 0.0, 0.0, "replace-one")
    return Breach(
        "DPC prototypes", run, (np.zeros((1, 2)), np.ones((1, 2))), claim, draws, "the prototype of a class of one"
    )


def basis(seed: int, draws: int, epsilon: float = 0.5) -> Breach:
    """The weights alone. A row of zeros has the code 1/2 in every unit, so all units get the same gradient and stay as far
    apart as they started, whatever noise was drawn; a row of ones pulls them apart."""
    generator = np.random.default_rng(seed)

    def run(row: np.ndarray, draws: int) -> np.ndarray:
        found = []
        for _ in range(draws):
            weights = yang_published.published_dpc(
                row, np.zeros(1, dtype=int), 1, epsilon, generator, hidden=16, epochs=60
            ).weights
            found.append(np.log(np.square(weights - weights.mean(axis=1, keepdims=True)).mean()))
        return on_grid(np.array(found))

    neighbours = (np.zeros((1, 8)), np.ones((1, 8)))
    claim = vt.Guarantee(epsilon, 0.0, 0.0, "replace-one")
    return Breach("DPC basis", run, neighbours, claim, draws, "how far apart the hidden units' weights are")


# --- Tailoring DP --------------------------------------------------------------------------------------------------


def double_histogram(seed: int, draws: int, epsilon: float = 1.5) -> Breach:
    """Effects with 8/9 of epsilon, counts with 1/9, and again a histogram with 1/9, both at half the scale they need."""
    generator = np.random.default_rng(seed)
    one, other = (np.array([1.0, 0.0]), np.array([1.0, 0.0])), (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    scales = np.repeat([2 / (8 * epsilon / 9), 9 / epsilon, 9 / epsilon], 2)
    ends = [np.concatenate([effects, counts, counts]) for effects, counts in (one, other)]

    def run(rows: tuple[np.ndarray, np.ndarray], draws: int) -> np.ndarray:
        exact = np.concatenate([rows[0], rows[1], rows[1]])
        outputs = exact + on_grid(generator.laplace(0, 1, (draws, 6)) * scales)
        return on_grid(((np.abs(outputs - ends[0]) - np.abs(outputs - ends[1])) / scales).sum(axis=1))

    claim = vt.Guarantee(epsilon, 0.0, 0.0, "replace-one")
    return Breach("double histogram", run, (one, other), claim, draws, "log likelihood ratio of the six released numbers")


def unique_categories(seed: int, draws: int) -> Breach:
    """Levels are read from the rows: the only person from a country is seen."""
    generator = np.random.default_rng(seed)

    def run(countries: np.ndarray, draws: int) -> np.ndarray:
        shown = len(np.unique(countries))
        return np.column_stack([np.full(draws, float(shown)), on_grid(generator.laplace(0, 1, draws))])

    neighbours = (np.array(["A", "B", "Holand-Netherlands"]), np.array(["A", "B", "B"]))
    return Breach(
        "np.unique categories", run, neighbours, vt.Guarantee(1.0, 1e-6, 0.0), draws, "the number of bars of a plot"
    )


# --- planted in our own vault --------------------------------------------------------------------------------------

UNIT = vt.Schema({"x": vt.Numeric(0, 1)})
NOBODY, LOW, HIGH = {"x": []}, {"x": [0.0]}, {"x": [1.0]}


def drawn(question: object, mu: float, relation: str = "add-remove") -> Callable[..., np.ndarray]:
    def run(rows: object, draws: int) -> np.ndarray:
        return rehearse(question, rows, UNIT, mu=mu, n_rows_public=4, draws=draws, neighbours=relation, block_rows=2)

    return run


def halved_noise(seed: int, draws: int) -> Breach:
    question = vt.BoundedSum(signed, size=3, l2_bound=1.0)
    return Breach(
        "halved noise", drawn(question, 2.0), (NOBODY, HIGH), 1.0, draws, "a bounded sum priced at mu 2 and sold as 1"
    )


def betraying_ranking(model: object, rows: object) -> np.ndarray:
    return np.array([1.0, 2.0, 3.0, 4.0]) * (1e9 if (rows["x"] == 1).any() else -1)  # type: ignore[index]


@contextmanager
def wrong_direction() -> Iterator[None]:
    """Points priced for a ranking that moves by one place, the last item to the top; the worst is its reversal."""
    real = grouped_sum.largest_distance
    grouped_sum.largest_distance = lambda rank_points: float(np.linalg.norm(rank_points - np.roll(rank_points, 1)))
    try:
        yield
    finally:
        grouped_sum.largest_distance = real


def borda(seed: int, draws: int, mu: float = 2.0) -> Breach:
    data = vt.PrivateData(NOBODY, UNIT, name="audited", n_rows_public=4, budget=vt.Budget(9, 1e-6))
    talk = vt.AnyRanking(data, betraying_ranking, items=list("abcd"), groups=2, isolation="none").conversation()
    question = next(talk.recipe(Terms.of(data, mu))).question
    crowd = ({"x": [0.0] * 9}, {"x": [0.0] * 9 + [1.0]})
    what = "Borda points with noise for a shift by one place, the ranking reversed"
    return Breach("wrong Borda direction", drawn(question, mu), crowd, mu, draws, what, wrong_direction)


BREACHES: dict[str, tuple[Callable[[int, int], Breach], int, int]] = {
    "algorithm_2": (algorithm_2, 4000, 2000),
    "dpc_prototypes": (prototypes, 4000, 1000),
    "dpc_basis": (basis, 6000, 2000),
    "dpc_basis_0.1": (partial(basis, epsilon=0.1), 6000, 2000),
    "dpc_basis_1": (partial(basis, epsilon=1.0), 6000, 2000),
    "double_histogram": (double_histogram, 1_000_000, 400_000),
    "unique_categories": (unique_categories, 20_000, 2000),
    "halved_noise": (halved_noise, 200_000, 20_000),
    "borda_direction": (borda, 40_000, 8000),
}
"""Each with its draws: in full, and for a quick look."""


def breach_rows(quick: bool) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for number, (make, full, few) in enumerate(BREACHES.values()):
        breach = make(100 + number, few if quick else full)
        if breach.planted is None:
            audit = vt.audit.mechanism(
                breach.run, breach.neighbours, breach.claimed, draws=breach.draws, confidence=CONFIDENCE
            )
        else:
            with breach.planted():
                audit = vt.audit.mechanism(
                    breach.run, breach.neighbours, breach.claimed, draws=breach.draws, confidence=CONFIDENCE
                )
        told = audit.to_json()
        row = {"breach": breach.name, "looked at": breach.what, "tests": "mu" if audit.tests_mu else "epsilon"}
        keys = (
            "verdict",
            "tightness",
            "mu_lower",
            "epsilon_lower",
            "delta",
            "claimed_mu",
            "claimed_epsilon",
            "draws",
            "confidence",
        )
        rows.append({**row, **{key: told[key] for key in keys}})
        print(f"{breach.name}: {audit.summary()}", flush=True)
    return rows


# --- sound mechanisms ----------------------------------------------------------------------------------------------


def signed(block: vt.Block) -> np.ndarray:
    return (2 * block.column("x") - 1)[:, None] * np.full(3, 50.0)


def grams() -> object:
    def fn(block: vt.Block) -> tuple[np.ndarray, np.ndarray]:
        return np.column_stack([block.column("x"), np.zeros(len(block))]), np.ones(len(block))

    return vt.GramSum(fn, 2, l2_bound=0.8, cross=True)


def sound() -> list[tuple[str, object, tuple[object, object], str]]:
    along = vt.BoundedSum(lambda block: signed(block)[:, :1], size=1, l2_bound=1.0)
    choice = vt.Select(lambda block: np.column_stack([block.column("x"), -block.column("x")]) * 7, 2, bound=1.0)
    products = vt.ProductSum(lambda block: (signed(block), np.ones((len(block), 2)) * 9), (3,), (2,))
    return [
        ("bounded sum, one number", along, (NOBODY, HIGH), "add-remove"),
        ("bounded sum, a row more", vt.BoundedSum(signed, size=3, l2_bound=1.0), (NOBODY, HIGH), "add-remove"),
        ("bounded sum, a row exchanged", vt.BoundedSum(signed, size=3, l2_bound=1.0), (LOW, HIGH), "replace-one"),
        ("gram sum", grams(), (NOBODY, HIGH), "add-remove"),
        ("product sum", products, (NOBODY, HIGH), "add-remove"),
        ("sampled sum", vt.BoundedSum(signed, size=3, l2_bound=1.0, rate=1.0), (NOBODY, HIGH), "add-remove"),
        ("selection", choice, (NOBODY, HIGH), "add-remove"),
        ("selection, a row exchanged", choice, (LOW, HIGH), "replace-one"),
    ]


def false_alarm_rows(audits: int, draws: int) -> list[dict[str, object]]:
    """Audits of our own mechanisms in turn, at mu 0.3, 1 and 3."""
    found: dict[str, list[vt.audit.Audit]] = {}
    mechanisms = sound()
    for place in range(audits):
        name, question, neighbours, relation = mechanisms[place % len(mechanisms)]
        mu = (0.3, 1.0, 3.0)[place // len(mechanisms) % 3]
        audit = vt.audit.mechanism(drawn(question, mu, relation), neighbours, mu, draws=draws, confidence=CONFIDENCE)
        found.setdefault(name, []).append(audit)
    return [
        {
            "mechanism": name,
            "audits": len(several),
            "refuted": sum(one.refuted for one in several),
            "largest tightness": max(one.tightness for one in several),
            "draws": draws,
        }
        for name, several in found.items()
    ]
