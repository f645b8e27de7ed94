"""Any ranking: what rankers may say, how sure the order is, what is refused before anything is charged."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import vitrail as vt
from error_rates import count_bounds, std_ratio_bounds
from vitrail.accounting.guarantee import question_mu
from vitrail.errors import InvalidInput
from vitrail.explain.any_ranking import RankingReader
from vitrail.explain.recipe import Terms

NAMES = ("age", "dose", "height", "noise")
SCHEMA = vt.Schema({**{name: vt.Numeric(0, 1) for name in NAMES}, "risk": vt.Numeric(0, 2)})
X = np.random.default_rng(3).random((4000, 4))
ROWS = {**dict(zip(NAMES, X.T, strict=True)), "risk": X @ [1.0, 0.5, 0.2, 0.0]}


def dataset(**options):
    options = {"n_rows_public": 4000, "budget": vt.Budget(1e5, 1e-6), "target": "risk", "name": "risks", **options}
    return vt.PrivateData(ROWS, SCHEMA, **options)


def ranking_of(ranker, *, data=None, mu=90.0, **options):
    """Of so high a price that a tenth of a point is twenty standard deviations of the noise: sqrt(20) / 90 / 10 groups."""
    options = {"groups": 10, "isolation": "none", **options}
    return vt.AnyRanking(data or dataset(), ranker, **options)(mu=mu)


def groups_at(explainer, epsilon):
    """Of the question that would be asked."""
    talk = explainer.conversation()
    return next(talk.recipe(Terms.of(talk.data, question_mu(epsilon, None, talk.data.delta)))).question.groups


def is_private(X, y):
    """Whether a group holds the rows above, and not public ones that the ranker is tried on."""
    return np.allclose(y, X.to_numpy() @ [1.0, 0.5, 0.2, 0.0])


SAID = {
    "ordered items": lambda model, X: ["dose", "age", "noise", "height"],
    "an index": lambda model, X: pd.Index(["dose", "age", "noise", "height"]),
    "an array of texts": lambda model, X: np.array(["dose", "age", "noise", "height"]),
    "scores in the order of items": lambda model, X: [0.5, 7.0, -2.0, 0.1],
    "a dictionary": lambda model, X: {"noise": 0.1, "age": 0.5, "dose": 7, "height": -2},
    "a series": lambda model, X: pd.Series([0.1, 0.5, 7, -2], index=["noise", "age", "dose", "height"]),
    "sklearn's importances": lambda model, X: SimpleNamespace(importances_mean=np.array([0.5, 7.0, -2.0, 0.1])),
}


@pytest.mark.parametrize("name", SAID)
def test_whatever_a_ranker_says_is_a_vote(name):
    ranking = ranking_of(SAID[name])
    assert ranking.order == ("dose", "age", "noise", "height")
    assert np.abs(ranking.scores - [2, 3, 0, 1]).max() < 0.1
    assert ranking.scores.sum() == pytest.approx(6)


def test_scores_that_are_equal_and_items_left_out_share_points():
    assert np.abs(ranking_of(lambda model, X: [1, 0, 0, 0]).scores - [3, 1, 1, 1]).max() < 0.1
    assert np.abs(ranking_of(lambda model, X: ["noise"]).scores - [1, 1, 1, 3]).max() < 0.1
    assert np.abs(ranking_of(lambda model, X: []).scores - 1.5).max() < 0.1


def test_only_the_order_counts():
    assert np.abs(ranking_of(lambda model, X: [1e300, 1e-300, 0, -1e300]).scores - [3, 2, 1, 0]).max() < 0.1


@pytest.mark.usefixtures("planted_noise")
def test_a_real_order_is_found_from_groups():
    ranking = ranking_of(lambda model, X, y: X.corrwith(y), groups=40, mu=20.0)
    assert ranking.order == ("age", "dose", "height", "noise")
    assert (ranking.confidence > 0.99).all()
    assert ranking.guarantee.protects == "explanation-data"


@pytest.mark.usefixtures("planted_noise")
def test_the_first_few_get_less_noise():
    items = [f"item {place}" for place in range(30)]

    def ranker(top_k):
        return vt.AnyRanking(dataset(), lambda model, X: items, items=items, top_k=top_k, groups=20, isolation="none")

    whole, few = ranker(None)(mu=3.0), ranker(3)(mu=3.0)
    assert few.std[0] < whole.std[0] / 15
    assert few.order == tuple(items[:3])
    assert "the next is" in few.notes[-1]
    assert ranker(3).quote(mu=3.0).result.std[0] == pytest.approx(few.std[0])
    assert ranker(None).quote(mu=3.0).result.std[0] == pytest.approx(whole.std[0])


def test_noise_and_confidence_follow_the_noise_law():
    """Two items that truly are half a point apart: how often they stand in the right order is what the law says."""
    calls = []

    def ranker(model, X, y):
        calls.append(is_private(X, y))
        return [2, 3, 1, 0] if calls[-1] and sum(calls) % 20 < 5 else [3, 2, 1, 0]  # age is above dose by half a point

    explainer = vt.AnyRanking(dataset(), ranker, groups=20, isolation="none")
    drawn = [explainer(mu=0.5) for _ in range(150)]
    assert sum(calls) == 150 * 20
    std = math.sqrt(4 * 15 / 3) / 0.5 / 20
    scores = np.array([one.scores for one in drawn])
    assert drawn[0].own_std == pytest.approx(np.full(4, std), rel=1e-3)
    low, high = std_ratio_bounds(150, of=6)
    ratios = scores.std(axis=0, ddof=1) / drawn[0].std
    assert ((low < ratios) & (ratios < high)).all()
    assert drawn[0].std[0] == pytest.approx(std * math.sqrt(3 / 4), rel=1e-3)
    assert low < (scores[:, 0] - scores[:, 1]).std(ddof=1) / (std * math.sqrt(2)) < high
    truly = 0.5 * math.erfc(-0.5 / std / 2)
    fewest, most = count_bounds(150, truly, of=6)
    assert fewest <= (scores[:, 0] > scores[:, 1]).sum() <= most


def test_groups_that_fail_share_all_points_silently(capfd):
    ways = [lambda: [math.nan] * 4, lambda: ["weight"], lambda: 1 / 0, lambda: None, lambda: ["age", "age"], lambda: [[1]]]
    calls = []

    def ranker(model, X, y):
        calls.append(is_private(X, y))
        return ways[len(calls) % len(ways)]() if calls[-1] else [3, 2, 1, 0]

    assert np.abs(ranking_of(ranker, groups=12).scores - 1.5).max() < 0.1
    assert sum(calls) == 12
    assert capfd.readouterr() == ("", "")


def test_retraining_protects_the_training_data():
    def train(frame):
        return np.linalg.lstsq(frame[list(NAMES)].to_numpy(), frame["risk"].to_numpy(), rcond=None)[0]

    ranking = ranking_of(lambda model, X: model, retrain=train)
    assert ranking.order == ("age", "dose", "height", "noise")
    assert ranking.guarantee.protects == "training-data"


def test_a_quote_tells_what_will_happen_and_groups_are_public():
    explainer = vt.AnyRanking(dataset(), SAID["ordered items"], isolation="none")
    quote, ranking = explainer.quote(epsilon=1.0), explainer(epsilon=1.0)
    assert quote.price.cost == ranking.cost
    assert quote.price.guarantee.epsilon == pytest.approx(ranking.guarantee.epsilon)
    assert quote.result.std == pytest.approx(ranking.std)
    assert groups_at(explainer, 1.0) == 160  # voters of 25 rows; a quarter of a rank needs sqrt(20) / (0.25 * 0.2367) = 76
    assert groups_at(explainer, 0.1) == 200  # not 80, of 50 rows each


def test_a_named_question_is_replayed():
    data = dataset()
    first = ranking_of(SAID["ordered items"], data=data, mu=1.0, key="order")
    again = ranking_of(SAID["ordered items"], data=data, mu=1.0, key="order")
    assert np.array_equal(first.scores, again.scores)
    assert data.budget.spent == first.cost
    few = ranking_of(SAID["ordered items"], data=data, mu=1.0, key="order", top_k=1)
    assert data.budget.spent == first.cost + few.cost


REFUSED = {
    "unknown item": ({"ranker": lambda model, X: ["weight"]}, "'weight'"),
    "item twice": ({"ranker": lambda model, X: ["age", "age"]}, "twice"),
    "too few scores": ({"ranker": lambda model, X: [1.0, 2.0]}, "2 scores for 4 items"),
    "score missing": ({"ranker": lambda model, X: {"age": 1.0}}, "no score"),
    "score for an unknown item": ({"ranker": lambda model, X: {"weight": 1.0}}, "'weight'"),
    "NaN": ({"ranker": lambda model, X: [math.nan, 1, 2, 3]}, "NaN"),
    "texts as scores": ({"ranker": lambda model, X: dict.fromkeys(NAMES, "high")}, "no numbers"),
    "a matrix": ({"ranker": lambda model, X: np.ones((4, 4))}, "shape"),
    "nothing": ({"ranker": lambda model, X: None}, "shape"),
    "failing": ({"ranker": lambda model, X: X["no such column"]}, "no such column"),
    "one item": ({"items": ["age"]}, "2 to"),
    "items twice": ({"items": ["age", "age"]}, "twice"),
    "items as a text": ({"items": "age"}, "list"),
    "one group": ({"groups": 1}, "groups of AnyRanking is 1"),
    "half a group": ({"groups": 2.5}, "groups of AnyRanking"),
    "top of all": ({"top_k": 4}, "top_k"),
    "top of none": ({"top_k": 0}, "top_k"),
    "isolation": ({"isolation": "thread"}, "isolation"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_and_nothing_is_charged(name):
    data = dataset()
    options, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        ranking_of(data=data, **{"ranker": SAID["ordered items"], **options})
    assert data.budget.spent.pico_mu_squared == 0


def test_items_may_be_numbers():
    assert RankingReader(("1", "2", "3"))({1: 5.0, 2.0: 7.0, np.int64(3): 6.0}).tolist() == [5, 7, 6]
