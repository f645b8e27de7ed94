"""Texts as bags of words: what is a word, what a row is, how long it can be, and explanations that speak in words."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vitrail as vt
from vitrail.errors import InvalidInput, SchemaError
from vitrail.schema import View
from vitrail.schema.words import words_in
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import stable

PRAISE = ("friendly", "clean", "quiet")
BLAME = ("rude", "dirty", "loud")
OTHER = ("room", "staff", "breakfast", "town")
WORDS = vt.BagOfWords([*PRAISE, *BLAME, *OTHER])


def remarks(count: int, seed: int = 0) -> list[str]:
    """Short remarks about hotels, invented here."""
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        subject, place = generator.choice(OTHER, 2)
        first, second = generator.choice([*PRAISE, *BLAME], 2)
        made.append(f"The {subject} was {first}; we found the {place} {second.upper()}!")
    return made


def opinion(features: np.ndarray) -> np.ndarray:
    return 0.5 + 0.25 * (features[:, 0] + features[:, 1] - features[:, 3] - features[:, 4])


def data_of(words: vt.BagOfWords, texts: object, count: int = 20_000) -> vt.PrivateData:
    return vt.PrivateData(words.rows(texts), words.schema(), name="remarks", n_rows_public=count, budget=vt.Budget(50, 1e-6))


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don\u2019t STOP", ["don't", "stop"]),
        ("well-made, 2nd_try", ["well", "made", "2nd", "try"]),
        ("'quoted' rock 'n' roll", ["quoted", "rock", "n", "roll"]),
        ("Stra\u00dfe", ["strasse"]),
        ("cafe\u0301 = caf\u00e9", ["caf\u00e9", "caf\u00e9"]),
        ("", []),
        ("?!", []),
    ],
)
def test_words_are_what_the_module_says(text: str, words: list[str]) -> None:
    assert words_in(text) == words


@pytest.mark.parametrize("vocabulary", [[], "great", ["a b"], ["great", "GREAT"], [""], [3], ["?"]])
def test_a_vocabulary_is_distinct_words(vocabulary: object) -> None:
    with pytest.raises(SchemaError, match="vocabulary"):
        vt.BagOfWords(vocabulary)


@pytest.mark.parametrize("most_words", [0, -1, 2.5, True, "3"])
def test_most_words_is_a_count(most_words: object) -> None:
    with pytest.raises(InvalidInput, match="most_words"):
        vt.BagOfWords(["a"], most_words=most_words)


def test_the_commonest_words_of_public_texts() -> None:
    texts = ["the film", "the good film", "the bad, bad, bad film", "good"]
    assert vt.BagOfWords.of_public_texts(texts, 3).vocabulary == ("good", "the", "film")
    assert vt.BagOfWords.of_public_texts(pd.Series(texts), 9, leave_out=["The"]).vocabulary == ("bad", "good", "film")
    # One text in several rows counts as often as it stands there.
    assert vt.BagOfWords.of_public_texts(pa.chunked_array([["b", "b", "a"]]), 1).vocabulary == ("b",)


# --- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hold",
    [
        list,
        tuple,
        np.array,
        pd.Series,
        lambda texts: pa.chunked_array([texts]),
        lambda texts: pd.Series(texts, dtype="category"),
    ],
)
def test_rows_are_the_same_from_every_kind_of_column(hold: object) -> None:
    texts = ["Clean and quiet.", "RUDE staff", "", "Clean and quiet."]
    rows = WORDS.rows(hold(texts))
    assert {word: column.tolist() for word, column in rows.items() if column.any()} == {
        "clean": [1, 0, 0, 1],
        "quiet": [1, 0, 0, 1],
        "rude": [0, 1, 0, 0],
        "staff": [0, 1, 0, 0],
    }
    assert tuple(rows) == WORDS.schema().names


def test_what_is_no_text_is_missing_and_says_nothing() -> None:
    raw = WORDS.schema().read(WORDS.rows(["clean", None, float("nan"), 7]))
    assert WORDS.schema().features(raw)[1].tolist() == [True, False, False, False]
    with pytest.raises(SchemaError, match="texts are numbers"):
        WORDS.rows(np.arange(3))


def test_a_target_can_stand_beside_the_words() -> None:
    schema = vt.Schema({**WORDS.schema(), "stars": vt.Numeric(1, 5)})
    rows = {**WORDS.rows(remarks(50)), "stars": np.full(50, 3)}
    data = vt.PrivateData(rows, schema, name="starred", n_rows_public=50, target="stars", budget=vt.Budget(9, 1e-6))
    e = vt.LocalLinear(data, vt.Model(opinion, range=(0, 1)), view=WORDS)(WORDS.rows("clean"), epsilon=1.0)
    assert e.columns == WORDS.vocabulary


# --- the bound -------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    n_words=st.integers(1, 40),
    most=st.one_of(st.none(), st.integers(1, 45)),
    rows=st.integers(2, 9),
    seed=st.integers(0, 99),
)
def test_rows_are_never_longer_than_the_bound_and_distances_never_larger(
    n_words: int, most: int | None, rows: int, seed: int
) -> None:
    words = vt.BagOfWords([f"word{place}" for place in range(n_words)], most_words=most)
    problem = LocalProblem(words.view_schema(), vt.Model(lambda x: x[:, 0], range=(0, 1)), stable(), view=words)
    generator = np.random.default_rng(seed)
    raw = (generator.random((rows, n_words)) < generator.random()).astype(float)
    raw[0] = 1.0  # the longest row there is
    x = problem.encode(raw)
    assert np.linalg.norm(x, axis=1).max() <= 1 + 1e-12
    away = np.linalg.norm(x[:, None] - x[None], axis=2)
    assert away.max() <= problem.largest_distance + 1e-12
    assert problem.largest_distance <= math.sqrt(2)
    shown = words.look(raw)
    assert shown.sum(axis=1).max() <= (most or n_words)
    for row in range(rows):  # on its own, a row shows the same bits
        assert np.array_equal(words.look(raw[row : row + 1])[0], shown[row])
        kept = np.flatnonzero(raw[row])[: most or n_words]
        assert np.flatnonzero(shown[row]).tolist() == kept.tolist()


# --- explanations ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("planted_noise")
@pytest.mark.parametrize("method", ["statistics", "descent"])
def test_an_explanation_finds_the_words_that_count(method: str) -> None:
    words = vt.BagOfWords(WORDS.vocabulary, most_words=5)
    assert isinstance(words, View)
    data, model = data_of(words, remarks(20_000)), vt.Model(opinion, range=(0, 1), name="opinion")
    how = vt.linear.Descent(iterations=25) if method == "descent" else vt.linear.Statistics()
    text = "Friendly staff, but the room was DIRTY."
    e = vt.LocalLinear(data, model, method=how, view=words)(words.rows(text), epsilon=4.0)
    found = dict(zip(e.columns, e.values[0], strict=True))
    assert found["friendly"] > 0 > found["dirty"]
    assert abs(found["friendly"]) > 3 * abs(found["breakfast"])
    assert any("Up to 5 words" in note for note in e.notes)
    if method == "statistics":
        shown = e.plot.text(text)
        colors = {word.text: word.value for word in shown.words if word.colored}
        assert colors["Friendly"] > 0 > colors["DIRTY."]
        absent = {word.text: word.value > 0 for word in shown.absent}  # noise may let words through that do not count
        assert (absent["clean"], absent["rude"]) == (False, True)
        assert "The absence of:" in shown.to_html()
        assert "rude" in [text.get_text() for text in shown.figure().texts]
        assert e.plot.text(text, absent=0).absent == ()


def test_hyphens_do_not_hide_words_from_the_picture() -> None:
    e = vt.Attribution(
        values=np.array([[0.2, -0.1]]),
        base_values=np.zeros(1),
        columns=("clean", "don't"),
        points=({"clean": 1, "don't": 1},),
        outputs=np.zeros(1),
        guarantee=vt.Guarantee.of_mu(0.2, 1e-6),
        cost=vt.Cost.of_mu(0.2),
        method="statistics",
    )
    words = e.plot.text("A squeaky-clean place, but don\u2019t go.").words
    assert [(word.text, word.value) for word in words if word.value is not None] == [("clean", 0.2), ("don\u2019t", -0.1)]
    assert " ".join(word.text for word in words) == "A squeaky- clean place, but don\u2019t go."


def test_two_views_are_two_questions_and_one_view_is_asked_once() -> None:
    texts, model = remarks(2000), vt.Model(opinion, range=(0, 1))
    spent = []
    data = data_of(WORDS, texts, 2000)
    for most in (None, 3, 3, 4):
        words = vt.BagOfWords(WORDS.vocabulary, most_words=most)
        vt.LocalLinear(data, model, view=words, key="opinion")(words.rows("clean"), epsilon=0.5)
        spent.append(data.budget.spent_epsilon)
    assert spent[0] < spent[1] == spent[2] < spent[3]


def test_a_view_that_does_not_fit_is_refused_before_anything_is_charged() -> None:
    data, model = data_of(WORDS, remarks(100)), vt.Model(opinion, range=(0, 1))
    with pytest.raises(SchemaError, match="make rows and schema with the same view"):
        vt.LocalLinear(data, model, view=vt.BagOfWords(["other"]))
    with pytest.raises(InvalidInput, match="view is Schema"):
        vt.LocalLinear(data, model, view=WORDS.schema())
    explain = vt.LocalLinear(data, model, view=WORDS)
    for method in ("adaptive", "enhanced", "history"):
        with pytest.raises(InvalidInput, match="takes no view"):
            vt.LocalLinear(data, model, method=method, view=WORDS)
    with pytest.raises(InvalidInput, match="fit takes no view"):
        explain.fit(epsilon=1.0)
    with pytest.raises(SchemaError):
        explain({"clean": 3}, epsilon=1.0)
    assert data.budget.spent_epsilon == 0
    assert explain.quote(WORDS.rows("clean"), epsilon=1.0).half_width > 0
