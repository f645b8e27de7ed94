"""A person's page in words: the decision, the reasons that matter, what would have changed it. Pure; languages by catalogue.

*Which reasons are told.* Those that stand out of the noise, the largest first, as long as they are at least ``LEAST_SHARE``
of all contributions together; where the decision went against the person those that counted against them come first, and
one that counted in their favour is told too. If none stands out the two largest are told with the words that they may be
chance; a point that is mostly noise has no reasons, and the page says so. web/src/letter.ts says the same in the browser;
both are held to the same examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from scipy.special import ndtr

from ..accounting.guarantee import Guarantee
from ..accounting.neighbours import is_exchange
from ..results import Attribution, Contribution
from ..results.checks import plain_value, shown_text
from ..results.counterfactuals import Counterfactuals
from ..schema import Numeric, Schema
from ..schema.days import date_text
from .catalogue import Catalogue, catalogue, decimals_for
from .page_words import LEAST_REASONS, ColumnWords, PageWords

LEAST_SHARE = 0.05
"""Of all contributions together: smaller ones are no reason to tell."""
WEAK_GUESS = 0.75
"""A best guess above this is called weak protection: mu 1.35, which is epsilon 6.9 at delta 1e-6."""
GUESSES = {
    (False, False): "Somebody who guesses whether a record is among them is right 50 times in 100 without this page, and at "
    "most {guess} times in 100 with it and everything else that was released with it.",
    (False, True): "Somebody who guesses whether a person is among them is right 50 times in 100 without this page, and at "
    "most {guess} times in 100 with it and everything else that was released with it.",
    (True, False): "Somebody who guesses which of two records is among them is right 50 times in 100 without this page, and "
    "at most {guess} times in 100 with it and everything else that was released with it.",
    (
        True,
        True,
    ): "Somebody who guesses which of two people is among them is right 50 times in 100 without this page, and at "
    "most {guess} times in 100 with it and everything else that was released with it.",
}
"""By whether a unit is exchanged for another, rather than added or removed, and whether it is a person."""
MOST_CHANGES = 8
"""Of one answer: an answer of more changes is not told."""


class Reason(NamedTuple):
    """One reason: ``good`` is whether it counted for the person, None where nobody said which side is good."""

    column: str
    sentence: str
    value: float
    amount: str
    give_or_take: str
    certain: bool
    good: bool | None
    text: str = ""
    code: str = ""
    official: str = ""


class LetterBar(NamedTuple):
    """A reason as a bar: places are per cent of the width; ``side`` is its class in the style sheet."""

    text: str
    reason: Reason
    start: float
    width: float
    zero: float
    band: tuple[float, float] | None
    side: str


class Change(NamedTuple):
    """A column of an answer that differs from the person's: its label, and both values in words."""

    label: str
    after: str
    before: str


@dataclass(frozen=True)
class Letter:
    """What a person's page says, in one language.

    Attributes
    ----------
    words : PageWords
        The owner's.
    schema : Schema
        The columns of the point.
    model : str
        Its name, where the decision has none.
    range, border : (float, float), float
        Of the output, and from which output on the outcome is ``above``.
    explanation : Attribution or None
        Of one point.
    changes_found : Counterfactuals or None
        Of one point.
    guarantee : Guarantee
    n_rows_public : int
    point : mapping
        What the person has in every column.
    asked_model : bool
        Whether the model itself was asked; otherwise the output is what the explanation adds up to.
    """

    words: PageWords
    schema: Schema
    model: str
    range: tuple[float, float]
    border: float
    explanation: Attribution | None
    changes_found: Counterfactuals | None
    guarantee: Guarantee
    n_rows_public: int
    point: Mapping[str, object]
    asked_model: bool = True

    @cached_property
    def catalogue(self) -> Catalogue:
        """Of the page's language."""
        return catalogue(self.words.language)

    def say(self, sentence: str, /, **values: object) -> str:
        """A sentence in the page's language."""
        return self.catalogue.say(sentence, **values)

    # --- the decision ------------------------------------------------------------------------------------------------

    @property
    def output(self) -> float | None:
        """The model's own, or what the explanation adds up to where no model was asked; None without either."""
        if self.explanation is None:
            return None if self.changes_found is None else float(self.changes_found.outputs[0])
        e = self.explanation
        return float((e.outputs if self.asked_model else e.predictions)[0])

    @property
    def threshold(self) -> float:
        """From which output on the outcome is the one above."""
        return self.border if self.words.threshold is None else self.words.threshold

    @property
    def outcome(self) -> str:
        """The decision in the owner's words; empty where they have none for it."""
        if self.words.classes and self.changes_found is not None:
            return self.words.classes.get(str(self.changes_found.classes[0]), "")
        return "" if self.output is None else self.words.outcome(self.output, self.threshold)

    @property
    def is_good(self) -> bool | None:
        """Whether the decision is good for the person; None where nobody said which side is."""
        if not self.words.good or self.output is None:
            return None
        return (self.output >= self.threshold) == (self.words.good == "above")

    @property
    def title(self) -> str:
        """The decision."""
        if self.outcome:
            return f"{self.words.decision or self.model}: {self.outcome}"
        if self.output is None or not self.asked_model:
            return self.words.decision or self.say("{model}, explained for one person", model=self.model)
        return self.say("{model} says {output}", model=self.words.decision or self.model, output=self.shown(self.output))

    @property
    def lead(self) -> tuple[str, ...]:
        """What the result is, where it decides, and what reasons add up to."""
        e, output = self.explanation, self.output
        if output is None:
            return ()
        low, high = self.range
        said = []
        if self.words.above and self.words.below:
            given = {"output": self.shown(output), "threshold": self.shown(self.threshold)}
            sentence = "Your result is {output}. From {threshold} on it is “{above}”, below that “{below}”."
            said.append(self.say(sentence, **given, above=self.words.above, below=self.words.below))
        elif self.asked_model:
            given = {"model": self.model, "output": self.shown(output), "low": self.shown(low), "high": self.shown(high)}
            said.append(self.say("{model} says {output}, on a scale from {low} to {high}.", **given))
        else:
            said.append(self.say("The explanation puts the output at {output}.", output=self.shown(output)))
        if e is not None and not e.too_little:
            base, total = self.shown(float(e.base_values[0])), self.shown(float(e.predictions[0]))
            if e.method == "shapley":
                sentence = "On average over the people in the data it is {base}; your own entries make the difference."
                said.append(self.say(sentence, base=base))
            else:
                sentence = "The explanation starts at {base} and adds up to {total}, which is not exactly the result."
                said.append(self.say(sentence, base=base, total=total))
        return tuple(said)

    @property
    def too_little(self) -> str:
        """That there is too little to tell, for a person; empty where there is not."""
        if self.explanation is None or not self.explanation.too_little:
            return ""
        return self.say(
            "There is too little data to tell the reasons at this price of privacy, so none are listed. The result is the "
            "model's own answer all the same."
        )

    # --- reasons -----------------------------------------------------------------------------------------------------

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Of every column, the largest first; none where everything is mostly noise."""
        e = self.explanation
        if e is None or e.too_little:
            return ()
        return tuple(self._reason(one) for one in e.top(len(e.columns)) if one.value != 0)

    def _reason(self, one: Contribution) -> Reason:
        words = self.words.of(one.column, self.schema)
        good = None if not self.words.good else (one.value > 0) == (self.words.good == "above")
        half = None if one.lower is None or one.upper is None else (one.upper - one.lower) / 2
        return Reason(
            column=one.column,
            sentence=self._sentence(words, self._own(one.column, words), one.value > 0, good),
            value=one.value,
            amount=self.amount(one.value),
            give_or_take="" if half is None else self.amount(half, sign=False, like=one.value, unit=False),
            certain=one.certain,
            good=good,
            text=words.text,
            code=words.code,
            official=words.reason,
        )

    def _own(self, column: str, words: ColumnWords) -> str:
        """What the person has in a column, or in the columns of a group, in words."""
        assert self.explanation is not None
        return self.value_text(column, words, self.explanation.points[0][column])

    def _sentence(self, words: ColumnWords, value: str, up: bool, good: bool | None) -> str:
        if words.subject:
            subject = words.subject.replace("{value}", value)
            if good is None:
                said = "{subject} raised the result." if up else "{subject} lowered the result."
            else:
                said = "{subject} counted in your favour." if good else "{subject} counted against you."
            return self.say(said, subject=subject)
        if good is None:
            sentence = "“{label}: {value}” raised the result." if up else "“{label}: {value}” lowered the result."
        else:
            sentence = "“{label}: {value}” counted in your favour." if good else "“{label}: {value}” counted against you."
        return self.say(sentence, label=words.label, value=value)

    @cached_property
    def told(self) -> tuple[Reason, ...]:
        """The reasons that are told in sentences: two to five, in their order."""
        whole = sum(abs(reason.value) for reason in self.reasons)
        telling = [reason for reason in self.reasons if reason.certain and abs(reason.value) >= LEAST_SHARE * whole]
        if not telling:
            return self.reasons[:LEAST_REASONS]
        most, outcome = self.words.most_reasons, self.is_good
        if outcome is None:
            return tuple(telling[:most])
        first = [reason for reason in telling if reason.good == outcome]
        others = [reason for reason in telling if reason.good != outcome]
        kept = first[: most - 1] + others[: max(1, most - len(first))] if others else first[:most]
        return tuple(kept[: max(most, LEAST_REASONS)])

    @property
    def told_parts(self) -> tuple[tuple[str, tuple[Reason, ...]], ...]:
        """The told reasons under their headings."""
        if not self.words.good:
            return ((self.say("The reasons that matter most"), self.told),) if self.told else ()
        sides = {False: self.say("What counted against you"), True: self.say("What counted in your favour")}
        order = (True, False) if self.is_good else (False, True)
        parts = ((sides[side], tuple(one for one in self.told if one.good is side)) for side in order)
        return tuple((heading, told) for heading, told in parts if told)

    @property
    def rest(self) -> str:
        """What all other columns add together; empty where there are none."""
        names = {reason.column for reason in self.told}
        others = [reason for reason in self.reasons if reason.column not in names]
        if not others or not self.told:
            return ""
        total = sum(reason.value for reason in others)
        return self.say("All other entries together: {amount}.", amount=self.amount(total))

    @property
    def how_sure(self) -> str:
        """What stands behind the plus-minus signs; empty without any."""
        e = self.explanation
        if e is None or e.lower is None or not self.told:
            return ""
        if e.band_claim.calibrated:
            sentence = "Behind ±: how far noise may have moved a number, 95 times in 100, each number on its own."
        else:
            sentence = "Behind ±: how far noise may have moved a number; a rough guide, which is not calibrated."
        return self.say(sentence)

    @property
    def bars(self) -> tuple[LetterBar, ...]:
        """Every reason as a bar, on one scale."""
        e = self.explanation
        if e is None or not self.reasons:
            return ()
        ends = {one.column: (one.lower, one.upper) for one in e.top(len(e.columns))}
        places = [0.0, *(reason.value for reason in self.reasons)]
        places += [end for reason in self.reasons for end in ends[reason.column] if end is not None]
        low, high = min(places), max(places)
        unit = 100 / ((high - low) or 1.0)
        made = []
        for reason in self.reasons:
            words = self.words.of(reason.column, self.schema)
            start, stop = sorted((0.0, reason.value))
            lower, upper = ends[reason.column]
            band = None if lower is None or upper is None else ((lower - low) * unit, (upper - lower) * unit)
            side = ("up" if reason.value > 0 else "down") if reason.good is None else "good" if reason.good else "bad"
            text = f"{words.label}: {self._own(reason.column, words)}"
            made.append(LetterBar(text, reason, (start - low) * unit, (stop - start) * unit, -low * unit, band, side))
        return tuple(made)

    @property
    def reason_codes(self) -> tuple[tuple[str, str], ...]:
        """Declared reason codes of what counted against the person, the largest first; none of a good decision."""
        if self.is_good:
            return ()
        against = [reason for reason in self.reasons if reason.good is False and reason.certain and reason.code]
        return tuple(dict.fromkeys((reason.code, reason.official or reason.sentence) for reason in against))

    # --- what would have changed it ----------------------------------------------------------------------------------

    @cached_property
    def answers(self) -> tuple[tuple[Change, ...], ...]:
        """What would have led to the other outcome: answers, each a few changes."""
        if self.changes_found is None:
            return ()
        told = [changes for changes in self.changes_found.changes[0] if 0 < len(changes) <= MOST_CHANGES]
        return tuple(tuple(self._change(*change) for change in changes) for changes in told)

    def _change(self, column: str, before: object, after: object) -> Change:
        words = self.words.of(column, self.schema)
        return Change(words.label, *(self.value_text(column, words, value) for value in (after, before)))

    @property
    def wanted(self) -> str:
        """The outcome that answers lead to, in words."""
        found = self.changes_found
        if found is None:
            return ""
        if str(found.wanted[0]) in self.words.classes:
            return self.words.classes[str(found.wanted[0])]
        sides = {answer.output >= self.threshold for answer in found.answers[0]}
        if self.words.above and self.words.below and self.output is not None and sides == {self.output < self.threshold}:
            return self.words.above if self.output < self.threshold else self.words.below
        return str(found.wanted[0])

    @property
    def changes_heading(self) -> str:
        """Above the answers."""
        return self.say("What would change it") if self.is_good else self.say("What would have changed it")

    @property
    def changes_lead(self) -> str:
        """Before the answers."""
        if not self.answers:
            return self.say("No small change was found that leads to another outcome.")
        if len(self.answers) == 1:
            return self.say("This would lead to “{wanted}”, everything else unchanged:", wanted=self.wanted)
        return self.say("Any one of these would lead to “{wanted}”, everything else unchanged:", wanted=self.wanted)

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """The person's own values, in words."""
        point = self.point
        words = {name: self.words.of(name, self.schema) for name in point}
        return tuple((words[name].label, self.value_text(name, words[name], value)) for name, value in point.items())

    def level_writer(self, column: str) -> Callable[[object], str]:
        """How values of a column are written beside its curve: words, and numbers without their unit."""
        words = self.words.of(column, self.schema)
        bare = replace(words, unit="")
        return lambda value: self.value_text(column, bare, value)

    # --- the promise -------------------------------------------------------------------------------------------------

    @property
    def promise(self) -> tuple[str, ...]:
        """What the promise means for the people in the data, without letters of the alphabet."""
        exchanged, of_people = is_exchange(self.guarantee.neighbours), "person" in self.guarantee.neighbours
        rows, guess = self.catalogue.number(self.n_rows_public), best_guess(self.guarantee)
        said = [
            self.say("The reasons were computed from about {rows} records, with noise to protect each of them.", rows=rows),
            self.say(GUESSES[exchanged, of_people], guess=self.catalogue.number(math.ceil(1000 * guess) / 10, 1)),
        ]
        if guess > WEAK_GUESS:
            said.append(self.say("That is weak protection."))
        if self.guarantee.protects == "explanation-data":
            said.append(
                self.say(
                    "This protects the records behind the reasons. What the model itself has learned from the records it "
                    "was trained on is not covered."
                )
            )
        return tuple(said)

    # --- numbers -----------------------------------------------------------------------------------------------------

    @property
    def is_share(self) -> bool:
        """Whether outputs are shown as per cent."""
        low, high = self.range
        return not self.words.unit and low >= 0 and high <= 1

    def shown(self, output: float) -> str:
        """An output in words."""
        if self.is_share:
            return self.catalogue.per_cent(output, 0 if 0.01 <= output <= 0.99 or output in (0, 1) else 1)
        return f"{self.catalogue.number(output)} {self.words.unit}".rstrip()

    def bare(self, output: float) -> str:
        """An output without its unit, for the scale of a picture."""
        return self.shown(output) if self.is_share else self.catalogue.number(output)

    def amount(self, value: float, *, sign: bool = True, like: float | None = None, unit: bool = True) -> str:
        """A difference of outputs in words; ``like`` gives the decimals."""
        scaled, model = (100 * value, 100 * (value if like is None else like)) if self.is_share else (value, like or value)
        decimals = decimals_for(model, 2) if abs(model) < 10 or not self.is_share else 0
        text = self.catalogue.number(scaled, min(decimals, 4), sign=sign)
        if not unit:
            return text
        if not self.is_share:
            return f"{text} {self.words.unit}".rstrip()
        return self.say("{number} points", number=text)

    def value_text(self, column: str, words: ColumnWords, value: object) -> str:
        """A value of a column, in words and with its unit."""
        plain = plain_value(value)
        text = shown_text(plain)
        if (worded := words.values.get(text) or words.values.get(str(plain))) is not None:
            return worded
        declared = self.schema.get(column)
        if not isinstance(declared, Numeric) or isinstance(plain, str | bool) or plain is None or plain in declared.codes:
            return text
        if declared.date:
            return date_text(plain)
        return f"{self.catalogue.number(float(plain))} {words.unit}".rstrip()


def best_guess(guarantee: Guarantee) -> float:
    """How often somebody can be right at most, who guesses with even chances which of two neighbouring datasets it was.

    Of mu-GDP Phi(mu/2), as the best test of N(0, 1) against N(mu, 1); where no mu describes the promise, by the total
    variation (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) of (epsilon, delta)-DP (Kairouz, Oh & Viswanath 2015).

    Examples
    --------
    >>> round(best_guess(Guarantee.of_mu(0.2, 1e-6)), 4), best_guess(Guarantee(float("inf"), 0.0, 0.0))
    (0.5398, 1.0)
    >>> round(best_guess(Guarantee(1.0, 1e-5, 0.0)), 4)  # from a fixed block
    0.7311
    """
    if guarantee.mu:
        return float(ndtr(guarantee.mu / 2))
    shrunk = math.exp(-guarantee.epsilon)
    return min(1.0, 0.5 + 0.5 * (1 - shrunk + 2 * guarantee.delta * shrunk) / (1 + shrunk))


def decision_record(letter: Letter) -> dict[str, object]:
    """What a decision system keeps of a letter, as plain values: outcome, result, reasons in their order, codes, changes."""

    def of(reason: Reason) -> Mapping[str, object]:
        shown = {"column": reason.column, "sentence": reason.sentence, "contribution": reason.value}
        return {**shown, "certain": reason.certain, "favourable": reason.good, "code": reason.code}

    def listed(answers: Sequence[Sequence[Change]]) -> list[list[dict[str, str]]]:
        return [[change._asdict() for change in answer] for answer in answers]

    return {
        "decision": letter.words.decision,
        "outcome": letter.outcome,
        "favourable": letter.is_good,
        "output": letter.output,
        "threshold": letter.threshold,
        "reasons": [of(reason) for reason in letter.told],
        "reason_codes": [{"code": code, "text": text} for code, text in letter.reason_codes],
        "changes": listed(letter.answers),
        "too_little": bool(letter.too_little),
    }
