"""Facts of persons' pages and the texts that Python makes of them, in every language: web/golden/letters.json.

tests/live/test_letter_golden.py fails where the file is not what this writes, and letter.test.ts of web where the browser
says anything else of the same facts. `python tools/make_golden_letters.py` writes it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import vitrail as vt
from vitrail.live.facts import words_facts
from vitrail.results.band_claim import BandClaim
from vitrail.results.counterfactuals import Counterfactuals, WhatIf
from vitrail.show.catalogue import LANGUAGES, Catalogue, catalogue
from vitrail.show.letter import Letter
from vitrail.show.page_words import ColumnWords, PageWords

Point: TypeAlias = dict[str, Any]
GOLDEN = Path(__file__).resolve().parents[1] / "web" / "golden" / "letters.json"
PROMISE = vt.Guarantee.of_mu(0.2, 1e-6)
SCHEMA = vt.Schema(
    {
        "hours": vt.Numeric(0, 99, integer=True, label="Hours of work", unit="hours"),
        "debts": vt.Numeric(0, 100_000, codes=(-9,), value_labels={-9: "not known"}),
        "rate": vt.Numeric(0, 1),
        "since": vt.Numeric(7_305, 22_279, date=True, label="Customer since"),
        "job": vt.Categorical(["a", "b"], label="Job", value_labels={"a": "artist", "b": "baker"}),
        "size": vt.Categorical([1, 2.5, False], label="Size"),
        "city": vt.Categorical(["Bern", "Genf"]),
        "state": vt.Categorical(["BE", "GE"]),
    },
    rules=[vt.Group("place", ["city", "state"])],
)
PLAYERS = ("hours", "debts", "rate", "since", "job", "size", "place")
LOAN = PageWords(
    decision="Your loan",
    above="approved",
    below="declined",
    good="above",
    columns={
        "hours": ColumnWords(subject="Your {value} a week", text="As on your payslips", code="H1", reason="Hours of work"),
        "debts": ColumnWords(label="Debts", unit="CHF", code="D2"),
        "place": ColumnWords(label="Where you live"),
    },
)
PEOPLE: tuple[Point, ...] = (
    {
        "hours": 45, "debts": 12_500.5, "rate": 0.0123456, "since": 17_897, "job": "b", "size": 2.5, "city": "Bern",
        "state": "BE",
    },
    {"hours": 0, "debts": -9.0, "rate": 0.5, "since": 20_000, "job": "a", "size": False, "city": "Genf", "state": "GE"},
)  # fmt: skip
VALUES = {
    "clear": ((-0.12, -0.08, 0.05, -0.04, 0.001, 0.0, 0.03), 0.01),
    "halves": ((0.125, -0.0625, 0.005, -0.025, 0.0005, 0.5, -0.3), 0.0025),
    "noise": ((-0.02, 0.01, 0.005, -0.004, 0.001, 0.0, 0.003), 0.3),
    "doubtful": ((-0.03, 0.028, 0.02, -0.02, 0.025, 0.03, 0.02), 0.026),
    "large": ((-1234.5, 812.25, 40.5, -99.95, 3.25, 0.5, -7.125), 2.5),
}


def attribution(values: tuple[float, ...], half: float | None, point: Point, claim: BandClaim) -> vt.Attribution:
    """One person's reasons, with bands of one width."""
    found = np.array([values])
    shown = {name: point[name] for name in PLAYERS[:-1]} | {"place": f"{point['city']}, {point['state']}"}
    base = 0.5 if abs(found).max() < 1 else 3000.0
    bands: dict[str, Any] = {} if half is None else {"lower": found - half, "upper": found + half}
    made: vt.Attribution = vt.Attribution(
        found, np.array([base]), PLAYERS, (shown,), np.array([base + sum(values)]), PROMISE, vt.Cost.of_mu(0.2), "shapley",
        band_claim=claim, **bands,
    )  # fmt: skip
    return made


def what_ifs(point: Point, output: float, *rows: Point) -> Counterfactuals:
    """Answers that cross the threshold."""
    answers = tuple(WhatIf({**point, **row}, 0.1, 0.1, 0.7 if output < 0.5 else 0.2) for row in rows)
    columns = tuple(SCHEMA)
    return Counterfactuals(
        columns, (point,), (output,), (int(output >= 0.5),), (int(output < 0.5),), (answers,), ("",), 3, PROMISE, vt.Cost()
    )


def letters() -> Iterator[tuple[str, Letter]]:
    """Every example, in one language."""
    wording = {
        "loan": LOAN,
        "good below": replace(LOAN, good="below", most_reasons=2),
        "no sides": PageWords(above="yes", below="no"),
        "bare": PageWords(),
        "classes": replace(LOAN, classes={"0": "class zero", "1": "class one"}, threshold=0.62),
    }
    for style, words in wording.items():
        for number, point in enumerate(PEOPLE):
            for name, (values, half) in VALUES.items():
                if name == "large":
                    continue
                e = attribution(values, half, point, BandClaim.MEASURED_95 if number == 0 else BandClaim.NOT_CALIBRATED)
                output = float(e.outputs[0])
                rows: tuple[Point, ...] = ({"hours": 50}, {"job": "a" if point["job"] == "b" else "b", "debts": 12.25})
                found = what_ifs(point, output, *rows[: 2 - number]) if name != "noise" else what_ifs(point, output)
                yield f"{style}, person {number}, {name}", usual(words, e, found, point)
    bikes = PageWords(unit="bikes a day", decision="Bikes", above="many", below="few", threshold=3000.0)
    e = attribution(*VALUES["large"], PEOPLE[0], BandClaim.NOISE_LAW_95)
    yield "bikes", usual(bikes, e, None, PEOPLE[0], limits=(0.0, 10_000.0), border=5000.0)
    without = attribution(VALUES["clear"][0], None, PEOPLE[0], BandClaim.NOT_CALIBRATED)
    yield "no bands", usual(LOAN, without, None, PEOPLE[0])
    linear = replace(without, method="linear", outputs=np.array([0.4]))
    yield "a line", usual(LOAN, linear, None, PEOPLE[0])
    yield "no reasons", usual(LOAN, None, None, PEOPLE[0])


def usual(
    words: PageWords,
    e: vt.Attribution | None,
    found: Counterfactuals | None,
    point: Point,
    limits: tuple[float, float] = (0.0, 1.0),
    border: float = 0.5,
) -> Letter:
    """The letter of a person."""
    return Letter(words, SCHEMA, "bank model", limits, border, e, found, PROMISE, 15_081, point)


def facts_of(letter: Letter) -> dict[str, object]:
    """What the browser is given."""
    e, found = letter.explanation, letter.changes_found
    explanation = None
    if e is not None:
        by_name = {one.column: one for one in e.top(len(e.columns))}
        explanation = {
            "method": e.method,
            "base": float(e.base_values[0]),
            "total": float(e.predictions[0]),
            "tooLittle": bool(e.too_little),
            "calibrated": e.band_claim.calibrated,
            "contributions": [
                {"column": name, "value": one.value, "lower": one.lower, "upper": one.upper, "certain": one.certain}
                for name in e.columns
                for one in (by_name[name],)
            ],
            "shown": e.points[0],
        }
    changes = None
    if found is not None:
        answers = zip(found.answers[0], found.changes[0], strict=True)
        told = [{"output": answer.output, "changes": changed} for answer, changed in answers]
        changes = {"found": found.classes[0], "wanted": found.wanted[0], "answers": told}
    person = {"point": letter.point, "output": letter.output, "askedModel": letter.asked_model}
    page = {"model": letter.model, "range": letter.range, "border": letter.border}
    return {"page": page, "person": {**person, "explanation": explanation, "changes": changes}}


def texts_of(letter: Letter) -> dict[str, object]:
    """What the page says."""
    return {
        "title": letter.title,
        "lead": letter.lead,
        "isGood": letter.is_good,
        "tooLittle": letter.too_little,
        "parts": [
            [heading, [[r.sentence, r.amount, r.give_or_take, r.certain, r.good, r.text] for r in told]]
            for heading, told in letter.told_parts
        ],
        "rest": letter.rest,
        "howSure": letter.how_sure,
        "codes": letter.reason_codes,
        "bars": [[bar.text, bar.reason.amount, bar.start, bar.width, bar.zero, bar.band, bar.side] for bar in letter.bars],
        "changesHeading": letter.changes_heading,
        "changesLead": letter.changes_lead,
        "answers": [[list(change) for change in answer] for answer in letter.answers],
        "entries": letter.entries,
        "threshold": letter.shown(letter.threshold),
    }


class Heard(dict[str, str]):
    """A catalogue's sentences that remembers which were asked for: the file holds no others, and changes with no others."""

    def __init__(self, sentences: dict[str, str]) -> None:
        super().__init__(sentences)
        self.asked: dict[str, str] = {}

    def get(self, sentence: str, default: Any = None) -> Any:
        """The translation, remembered."""
        if sentence in self:
            self.asked[sentence] = self[sentence]
        return super().get(sentence, default)


def golden() -> str:
    """The file: every example once, with its words and texts by language."""
    made, wordings = [], list[str]()
    heard = {language: Heard(catalogue(language).sentences) for language in LANGUAGES}
    for name, letter in letters():
        texts = {}
        for language in LANGUAGES:
            translated = replace(letter, words=replace(letter.words, language=language))
            translated.__dict__["catalogue"] = Catalogue(language, heard[language])
            texts[language] = texts_of(translated)
        told = words_facts(letter.words, letter.schema)
        words = _line({"words": told["words"], "columns": told["columns"]})
        wordings += [] if words in wordings else [words]
        made.append(_line({"name": name, "wording": wordings.index(words), **facts_of(letter), "texts": texts}))
    facts: dict[str, Any] = {one: words_facts(PageWords(language=one), SCHEMA)["catalogue"] for one in LANGUAGES}
    catalogues = _line({one: {**known, "sentences": dict(sorted(heard[one].asked.items()))} for one, known in facts.items()})
    lists = (f"[\n{joined}\n]" for joined in (",\n".join(wordings), ",\n".join(made)))
    return '{{"catalogues": {},\n"wordings": {},\n"letters": {}}}\n'.format(catalogues, *lists)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(golden(), encoding="utf-8")
    print(f"Written: {GOLDEN}")
