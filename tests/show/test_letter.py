"""A person's page in words: what comes first, which reasons are told, what they are called; in every language."""

import math
import re
import string
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import vitrail as vt
from page_sentences import all_sentences
from vitrail.accounting import mu_of
from vitrail.errors import InvalidInput
from vitrail.results.counterfactuals import WhatIf
from vitrail.show.catalogue import LANGUAGES, LOCALE, catalogue, decimals_for, read_catalogue
from vitrail.show.letter import WEAK_GUESS, Letter, best_guess, decision_record
from vitrail.show.page_words import ColumnWords, PageWords

SCHEMA = vt.Schema(
    {
        "hours": vt.Numeric(0, 99, integer=True, label="Hours of work", unit="hours"),
        "debts": vt.Numeric(0, 100_000, codes=(-9,), value_labels={-9: "not known"}),
        "job": vt.Categorical(["a", "b"], label="Job", value_labels={"a": "artist", "b": "baker"}),
        "town": vt.Categorical(["Bern", "Genf"]),
        "club": vt.Categorical(["no", "yes"]),
    }
)
POINT = {"hours": 45, "debts": 12_500.0, "job": "b", "town": "Bern", "club": "no"}
LOAN = PageWords(decision="Your loan", above="approved", below="declined", good="above")


def explanation(values: tuple[float, ...] = (-0.12, -0.08, 0.05, -0.04, 0.001), half: float = 0.01) -> vt.Attribution:
    found = np.array([values])
    return vt.Attribution(
        found, np.array([0.5]), tuple(SCHEMA), (POINT,), np.array([0.5 + sum(values)]), vt.Guarantee.of_mu(0.2, 1e-6),
        vt.Cost.of_mu(0.2), "shapley", lower=found - half, upper=found + half,
    )  # fmt: skip


def changes(*rows: dict[str, object]) -> vt.Counterfactuals:
    answers = tuple(WhatIf({**POINT, **row}, 0.1, 0.1, 0.7) for row in rows)
    return vt.Counterfactuals(
        tuple(SCHEMA), (POINT,), (0.31,), (0,), (1,), (answers,), ("",), 3, vt.Guarantee.of_mu(0.2, 1e-6), vt.Cost()
    )


def letter(words: PageWords = LOAN, e: vt.Attribution | None = None, **given: object) -> Letter:
    usual: dict[str, object] = {
        "schema": SCHEMA,
        "model": "bank model",
        "range": (0.0, 1.0),
        "border": 0.5,
        "changes_found": changes({"hours": 50}, {"job": "a", "debts": -9.0}),
        "guarantee": vt.Guarantee.of_mu(0.2, 1e-6),
        "n_rows_public": 15_081,
        "point": POINT,
    }
    return Letter(words=words, explanation=explanation() if e is None else e, **{**usual, **given})  # type: ignore[arg-type]


def test_the_decision_comes_first_in_the_owners_words():
    told = letter()
    assert told.title == "Your loan: declined"
    assert told.lead[0] == "Your result is 31%. From 50% on it is “approved”, below that “declined”."
    assert told.is_good is False
    assert letter(LOAN, border=0.2).title == "Your loan: approved"
    assert letter(replace(LOAN, good="below")).is_good is True
    plain = letter(PageWords())
    assert plain.title == "bank model says 31%"
    assert plain.is_good is None


def test_reasons_against_come_first_and_name_values_sizes_and_doubt():
    told = letter()
    headings = [heading for heading, _ in told.told_parts]
    assert headings == ["What counted against you", "What counted in your favour"]
    first = told.told[0]
    assert first.sentence == "“Hours of work: 45 hours” counted against you."
    assert (first.amount, first.give_or_take, first.certain, first.good) == ("\u221212 points", "1", True, False)
    assert [reason.column for reason in told.told] == ["hours", "debts", "town", "job"]
    assert told.told[-1].sentence == "“Job: baker” counted in your favour."
    assert told.rest == "All other entries together: +0.10 points."
    own = letter(replace(LOAN, columns={"hours": ColumnWords(subject="Your {value} a week", unit="hours")}))
    assert own.told[0].sentence == "Your 45 hours a week counted against you."


def test_without_a_good_side_nothing_is_called_good_or_bad():
    told = letter(PageWords())
    assert [heading for heading, _ in told.told_parts] == ["The reasons that matter most"]
    assert told.told[0].sentence == "“Hours of work: 45 hours” lowered the result."
    assert {reason.good for reason in told.reasons} == {None}
    assert {bar.side for bar in told.bars} == {"up", "down"}


def test_what_may_be_chance_is_not_told_as_a_reason():
    weak = letter(e=explanation((-0.12, -0.011, 0.012, 0.0, 0.0)))
    assert [reason.column for reason in weak.told] == ["hours"]
    unsure = letter(e=explanation((-0.012, 0.011, 0.011, -0.011, 0.011), half=0.0109))
    assert not any(reason.certain for reason in unsure.reasons)
    assert unsure.explanation is not None
    if not unsure.explanation.too_little:
        assert len(unsure.told) == 2
    noise = letter(e=explanation((0.001, -0.001, 0.001, -0.001, 0.0), half=0.05))
    assert noise.told == noise.told_parts == noise.bars == ()
    assert "too little data" in noise.too_little


@pytest.mark.parametrize("most", [2, 3, 4, 5])
def test_two_to_five_reasons(most: int):
    told = letter(replace(LOAN, most_reasons=most)).told
    assert 2 <= len(told) <= most
    assert any(reason.good for reason in told)


def test_reason_codes_are_those_against_the_largest_first():
    codes = {
        "town": ColumnWords(code="R2", reason="Place of residence"),
        "hours": ColumnWords(code="R7"),
        "job": ColumnWords(code="R9", reason="never told: it counted in favour"),
    }
    assert letter(replace(LOAN, columns=codes)).reason_codes == (
        ("R7", "“Hours of work: 45 hours” counted against you."),
        ("R2", "Place of residence"),
    )
    assert (
        letter(replace(LOAN, columns=codes), border=0.2).reason_codes == ()
    )  # nobody has to be told why they were approved


def test_what_would_have_changed_it_is_a_short_list():
    told = letter()
    assert told.changes_lead == "Any one of these would lead to “approved”, everything else unchanged:"
    assert [[tuple(change) for change in answer] for answer in told.answers] == [
        [("Hours of work", "50 hours", "45 hours")],
        [("debts", "not known", "12,500"), ("Job", "artist", "baker")],
    ]
    assert letter(changes_found=changes()).changes_lead == "No small change was found that leads to another outcome."


def test_the_promise_in_plain_words_is_the_best_guess():
    (first, second, third) = letter().promise
    assert "about 15,081 records" in first
    assert "whether a record is among them" in second
    assert "at most 54.0 times in 100" in second  # Phi(0.1) = 0.53983, rounded up
    assert "not covered" in third
    trained = vt.Guarantee(1.0, 1e-6, 0.2, "add-remove", "training-data")
    assert len(letter(guarantee=trained).promise) == 2


@pytest.mark.parametrize(
    ("promise", "says"),
    [
        (vt.Guarantee.of_mu(0.2, 1e-6, "replace-one"), "which of two records is among them"),
        (vt.Guarantee.of_mu(0.2, 1e-6, "add-remove, all rows of a person"), "whether a person is among them"),
        (vt.Guarantee.of_mu(0.2, 1e-6, "replace-one, up to 3 rows per person"), "which of two people is among them"),
        (vt.Guarantee(1.0, 1e-5, 0.0), "at most 73.2 times"),  # fixed blocks have no mu: e / (1 + e) = 0.73106
        (vt.Guarantee.of_mu(2.0, 1e-6), "That is weak protection."),
        (vt.Guarantee(math.inf, 0.0, 0.0), "at most 100.0 times"),
    ],
)
def test_a_promise_says_whose_it_is_and_when_it_is_weak(promise, says):
    assert says in " ".join(letter(guarantee=promise).promise)


def test_what_is_called_weak_is_epsilon_seven_at_the_usual_delta():
    at = [vt.Guarantee(epsilon, 1e-6, mu_of(epsilon, 1e-6)) for epsilon in (6.85, 6.95)]
    assert [best_guess(promise) > WEAK_GUESS for promise in at] == [False, True]


def test_no_test_guesses_better_than_the_promise_says():
    """Randomised response with a constant is the best that (epsilon, delta) allows; two Gaussians the best of mu."""
    for epsilon, delta in ((0.1, 0.0), (1.0, 1e-5), (3.0, 1e-2)):
        right = delta + (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
        assert best_guess(vt.Guarantee(epsilon, delta, 0.0)) == pytest.approx(right, abs=1e-12)
    for mu in (0.1, 1.0, 3.0):
        grid = np.linspace(-12, 12 + mu, 200_001)
        apart = np.abs(norm.pdf(grid) - norm.pdf(grid - mu)).sum() * (grid[1] - grid[0]) / 2
        assert best_guess(vt.Guarantee.of_mu(mu, 1e-6)) == pytest.approx((1 + apart) / 2, abs=1e-6)


def test_outputs_that_are_no_shares_have_their_unit():
    e = explanation((-120.0, -80.0, 50.0, -40.0, 1.0), half=1.0)
    told = letter(
        PageWords(unit="bikes a day", above="at least 500", below="fewer", good=""), e, range=(0.0, 977.0), border=500.0
    )
    assert told.title == "bank model: fewer"
    assert told.told[0].amount == "\u2212120 bikes a day"


def test_a_decision_system_gets_plain_values():
    record = decision_record(letter())
    assert record["outcome"] == "declined"
    assert record["favourable"] is False
    assert record["reasons"][0]["column"] == "hours"  # type: ignore[index]
    assert record["changes"][0] == [{"label": "Hours of work", "after": "50 hours", "before": "45 hours"}]  # type: ignore[index]


# --- languages -----------------------------------------------------------------------------------------------------------


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_sentence_is_found():
    found = all_sentences()
    assert len(found) > 40
    assert {"Where you stand", "“{label}: {value}” counted against you.", "Reason codes"} <= found


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_a_catalogue_has_every_sentence_with_the_same_values_and_no_other(language: str):
    translated, wanted = read_catalogue(LOCALE / f"{language}.po"), all_sentences()
    assert wanted - translated.keys() == set()
    assert translated.keys() - wanted == set()
    for sentence, other in translated.items():
        assert names_in(other) == names_in(sentence), sentence
    long = [sentence for sentence in wanted if len(sentence) > 20]
    assert all(translated[sentence] != sentence for sentence in long if not sentence.startswith("{model} says"))


def test_pages_are_written_in_their_language():
    german = letter(replace(LOAN, language="de", above="bewilligt", below="abgelehnt", decision="Ihr Kredit"))
    assert german.title == "Ihr Kredit: abgelehnt"
    assert german.lead[0] == "Ihr Ergebnis ist 31\u00a0%. Ab 50\u00a0% lautet es „bewilligt“, darunter „abgelehnt“."
    assert german.told[1].sentence == "„debts: 12.500“ sprach gegen Sie."
    french = letter(replace(LOAN, language="fr"))
    assert "15\u202f081" in french.promise[0]
    for language in LANGUAGES:
        every = letter(replace(LOAN, language=language))
        assert every.told_parts
        assert not re.search(r"[{}]", " ".join([every.title, *every.lead, *every.promise]))


def test_numbers_are_written_as_the_language_does():
    assert catalogue("en").number(1234567.0) == "1,234,567"
    assert catalogue("de").number(-0.125) == "\u22120,125"
    assert catalogue("es").number(0.0001, 2, sign=True) == "0,00"
    assert [decimals_for(value, 2) for value in (3.61, 0.036, 12.3, 8.0)] == [1, 3, 0, 0]
    with pytest.raises(InvalidInput, match="no catalogue for the language 'tlh'"):
        catalogue("tlh")


# --- the owner's words ---------------------------------------------------------------------------------------------------


def test_words_are_read_from_a_table_of_their_own_or_a_declaration(tmp_path):
    text = 'language = "de"\nabove = "ja"\nbelow = "nein"\n[columns.hours]\nlabel = "Stunden"\n'
    (tmp_path / "words.toml").write_text(text)
    (tmp_path / "data.toml").write_text("[page]\n" + text.replace("[columns", "[page.columns"))
    first, second = (PageWords.load(tmp_path / name) for name in ("words.toml", "data.toml"))
    assert first == second == PageWords.from_json(first.to_json())
    assert first.columns["hours"].label == "Stunden"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"langage": "en"}, r"has the key 'langage'.*Did you mean 'language'"),
        ({"language": "tlh"}, "language of .page. is 'tlh'"),
        ({"good": "up"}, "good of .page. is 'up'"),
        ({"most_reasons": 9}, "most_reasons of .page. is 9"),
        ({"threshold": "half"}, "threshold of .page. is 'half'"),
        ({"decision": 3}, "decision of .page. is '3'"),
        ({"columns": []}, "columns of .page. is no table"),
        ({"columns": {"hours": {"labl": "x"}}}, r"page.columns.hours.*'labl'.*Did you mean 'label'"),
        ({"columns": {"hours": {"subject": "Your {hours}"}}}, "the only thing in braces"),
        ({"classes": {"a": 1}}, "classes of .page. is '1'"),
        ("words", "it must be a table"),
    ],
)
def test_wrong_words_are_sentences(given, says):
    with pytest.raises(InvalidInput, match=says):
        PageWords.from_json(given)


def test_words_for_a_column_that_is_not_there_are_refused():
    with pytest.raises(InvalidInput, match=r"column 'hour' is not declared.*Did you mean 'hours'"):
        PageWords(columns={"hour": ColumnWords(label="x")}).check(list(SCHEMA))
