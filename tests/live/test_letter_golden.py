"""The browser's letter is held to the same texts as Python's: what Python says of them is what the golden file says."""

import json

from benchmark_scripts import script
from vitrail.show.catalogue import LANGUAGES

made = script("make_golden_letters", "tools")


def test_the_golden_letters_are_what_python_says():
    assert made.GOLDEN.read_text(encoding="utf-8") == made.golden(), "run python tools/make_golden_letters.py"


def test_the_golden_letters_are_in_every_language_and_of_every_kind():
    read = json.loads(made.GOLDEN.read_text(encoding="utf-8"))
    assert set(read["catalogues"]) == set(LANGUAGES)
    texts = [example["texts"] for example in read["letters"]]
    assert all(set(one) == set(LANGUAGES) for one in texts)
    assert {one["en"]["isGood"] for one in texts} == {True, False, None}
    assert any(one["en"]["tooLittle"] for one in texts)
    assert any(not reason[3] for one in texts for _, told in one["en"]["parts"] for reason in told), "none may be chance"
    assert all(one["en"]["title"] for one in texts)
    assert all(one["de"]["lead"] != one["en"]["lead"] for one in texts if one["en"]["lead"])


def test_a_letter_in_other_words_has_other_texts():
    letter = next(letter for _, letter in made.letters() if letter.words == made.LOAN)
    assert made.texts_of(letter)["title"] == "Your loan: declined"
