"""What a live page says that is the same for everybody: words, sentences of one language, promise, hashes. Plain JSON."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..accounting import JsonValue
from ..model import Model
from ..pane import Pane
from ..pane.lifetime import DEFAULT_VERSION
from ..pane.person import page_words_of
from ..results.band_claim import BandClaim
from ..results.checks import plain_value
from ..schema import Level, Numeric, Schema
from ..show.catalogue import Catalogue, catalogue
from ..show.letter import Letter
from ..show.page_words import PageWords
from ..show.pages import curve_verdict
from ..solve.shapley.on_rows import players_of

FORMAT = "vitrail-page/1"


def page_facts(
    pane: Pane, model: Model, *, trained_on: str, words: PageWords | None = None, start: Mapping[str, Level] | None = None
) -> dict[str, JsonValue]:
    """Everything that a page's script is told besides the numbers.

    Parameters
    ----------
    pane : Pane
        Of one model at most.
    model : Model
        The one that the page asks.
    trained_on : str
        In the owner's words.
    words : PageWords, optional
        In place of the pane's.
    start : mapping, optional
        What the form shows first; the middle of the private rows if not given.
    """
    told = page_words_of(pane) if words is None else words
    told.check([*pane.schema, *players_of(pane.schema)])
    limits, border = (model.lo, model.hi), (model.lo + model.hi) / 2
    if pane.made_for is not None and limits[0] < pane.made_for.border < limits[1]:
        border = pane.made_for.border
    letter = Letter(
        told, pane.schema, model.name, limits, border, None, None, pane.guarantee, pane.n_rows_public, {}, asked_model=True
    )
    is_own, counted = pane.manifest.number_of(model) is not None, pane.rows_counted
    effects = pane.effects if is_own and {"pdp", "ale"} & {*pane.parts} else None
    return {
        "format": FORMAT,
        **words_facts(told, pane.schema),
        "model": model.name,
        "range": [*limits],
        "border": border,
        "ownModel": is_own,
        "start": {name: plain_value(value) for name, value in (start or middle_person(pane)).items()},
        "promise": [*letter.promise],
        "trainedOn": trained_on,
        "protectsTraining": pane.guarantee.protects == "training-data",
        "guarantee": {
            "sentence": pane.guarantee.sentence,
            "epsilon": pane.guarantee.epsilon,
            "delta": pane.guarantee.delta,
        },
        "pane": {
            "dataset": pane.dataset,
            "created": pane.created,
            "tool": pane.tool,
            "version": "" if pane.version == DEFAULT_VERSION else pane.version,
            "expires": pane.expires,
        },
        "readFirst": [] if counted is None or not counted.contradicts else [counted.sentence],
        "curveRemarks": {name: said for name in effects if (said := curve_verdict(effects, name))} if effects else {},
        "marks": {claim.value: claim.mark for claim in BandClaim},
        "claims": {claim.value: claim.sentence() for claim in BandClaim},
    }


def words_facts(words: PageWords, schema: Schema) -> dict[str, JsonValue]:
    """The owner's words and the catalogue of their language, with those of the schema where the owner has none."""
    sentences = catalogue(words.language)
    named = dict.fromkeys((*schema, *players_of(schema)))
    return {
        "catalogue": {
            "language": sentences.language,
            "direction": sentences.direction,
            "separators": [*_separators(sentences)],
            "sentences": dict(sentences.sentences),
        },
        "words": {
            "decision": words.decision,
            "above": words.above,
            "below": words.below,
            "classes": dict(words.classes),
            "good": words.good,
            "threshold": words.threshold,
            "unit": words.unit,
            "sender": words.sender,
            "footer": words.footer,
            "mostReasons": words.most_reasons,
        },
        "columns": {name: _column(words, schema, name) for name in named},
    }


def _separators(sentences: Catalogue) -> tuple[str, str, str]:
    """Between thousands, before decimals, before the per cent sign: read off numbers that the catalogue writes."""
    number, share = sentences.number(1234.5, 1), sentences.per_cent(0.01)
    return number[1], number[-2], share[1:-1]


def _column(words: PageWords, schema: Schema, name: str) -> dict[str, JsonValue]:
    told, declared = words.of(name, schema), schema.get(name)
    numeric = isinstance(declared, Numeric)
    return {
        "label": told.label,
        "unit": told.unit,
        "subject": told.subject,
        "text": told.text,
        "code": told.code,
        "reason": told.reason,
        "values": dict(told.values),
        "numeric": numeric,
        "date": isinstance(declared, Numeric) and declared.date,
        "codes": [*declared.codes] if isinstance(declared, Numeric) else [],
    }


def middle_person(pane: Pane) -> dict[str, Level]:
    """Nobody: in each column the middle of the private rows, or their most common level; linked columns follow.

    From rows that are a release already, so it costs nothing and tells nothing more.
    """
    rows, schema = pane.private_rows, pane.schema
    sampled = rows.sampled[:, [rows.schema.column_index(name) for name in schema]]
    row = np.empty((1, schema.n_columns))
    for j, column in enumerate(schema.values()):
        values, counts = np.unique(sampled[:, j], return_counts=True)
        most_common = values[int(counts.argmax())]
        if isinstance(column, Numeric) and most_common not in column.codes:
            inside = sampled[~np.isin(sampled[:, j], column.codes), j]
            row[0, j] = np.quantile(inside, 0.5, method="nearest")
        else:
            row[0, j] = most_common
    person = {name: values.tolist()[0] for name, values in schema.frame(row).items()}
    for rule in schema.rules:
        values_of = getattr(rule, "values", None)
        if values_of is not None:
            person[rule.other] = values_of[person[rule.column]]  # type: ignore[union-attr]
    return person
