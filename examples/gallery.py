"""The gallery: pages of four cases, each from rows that stay private, in gallery/. ``make pages`` runs it.

- *A decision*: a loan, declined, in four languages; the model as a whole.
- *A number*: how many hours a week somebody works, where 40 counts as full time.
- *A class among several*: how far somebody went in school.
- *Fairness*: what the loan model does by sex and race, group by group.

The rows are the Adult census extract. Everything is computed from a pane or a question with its price; the pages are files
that load nothing.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier

import vitrail as vt
from demo import APPLICANT

DATA = Path(__file__).parent / "data"
LEVELS = {"school": 9, "college": 12, "degree": 16}
"""The most years of education of each level."""


def opened(rows: pd.DataFrame, schema: vt.Schema, target: str, name: str) -> vt.PrivateData:
    """Private rows with a budget of their own; the row count of this public file is public."""
    return vt.PrivateData(
        rows, schema, name=name, target=target, n_rows_public=len(rows), budget=vt.Budget(2.0, 1e-6), ledger="memory"
    )


def encoded(rows: pd.DataFrame, schema: vt.Schema, target: str) -> np.ndarray:
    """Features as models of this gallery take them."""
    inputs = schema.without(target)
    return inputs.features(inputs.read(rows.drop(columns=target)))[0]


def words_for(columns: list[str], **changed: object) -> vt.PageWords:
    """The bank's words, for these columns."""
    words = vt.PageWords.load(DATA / "adult.page.toml")
    kept = {name: replace(one, code="", reason="") for name, one in words.columns.items() if name in columns}
    return vt.PageWords(columns=kept, **changed)


def loan(rows: pd.DataFrame, schema: vt.Schema, folder: Path) -> None:
    """A decision, in four languages; the model; and what it does by group."""
    training, private = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    forest = RandomForestClassifier(16, max_depth=9, min_samples_leaf=10, random_state=0)
    forest.fit(encoded(training, schema, "income"), training["income"])
    model = vt.Model(forest, output=">50K", name="income model", inputs="features")
    data = opened(private, schema, "income", "customers")
    words = vt.PageWords.load(DATA / "adult.page.toml")
    pane = vt.release(data, model, epsilon=0.9, page=words)
    pane.to_html(folder / "model.html")
    of = {
        "en": {},
        "de": {"decision": "Ihr Kreditantrag", "above": "bewilligt", "below": "abgelehnt"},
        "fr": {"decision": "Votre demande de prêt", "above": "acceptée", "below": "refusée"},
        "es": {"decision": "Su solicitud de préstamo", "above": "aprobada", "below": "rechazada"},
    }
    for language, changed in of.items():
        # The names of columns stay as they are declared: a bank that writes to Geneva would declare French ones.
        own = replace(words, language=language, **changed, **({} if language == "en" else {"columns": {}, "footer": ""}))
        pane.with_page(own).explain(APPLICANT).to_html(folder / f"loan.{language}.html")
    report = vt.GroupReport(data, model, by=["sex", "race"])
    report(epsilon=0.5).to_html(folder / "groups.html")


def hours(rows: pd.DataFrame, schema: vt.Schema, folder: Path) -> None:
    """A number: hours of work a week."""
    training, private = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    fitted = HistGradientBoostingRegressor(max_iter=60, random_state=0)
    fitted.fit(encoded(training, schema, "hours-per-week"), training["hours-per-week"])
    model = vt.Model(fitted, range=(0, 99), name="hours model", inputs="features")
    said = {"above": "full time", "below": "part time", "good": "", "unit": "hours"}
    words = words_for([*schema.without("hours-per-week")], decision="Work a week, as the model expects it", **said)
    data = opened(private, schema, "hours-per-week", "workers")
    pane = vt.release(data, model, epsilon=0.9, threshold=40.0, page=words)
    person = {name: value for name, value in APPLICANT.items() if name != "hours-per-week"} | {"income": "<=50K"}
    pane.explain(person, desired=(44, None)).to_html(folder / "hours.html")


def education(rows: pd.DataFrame, schema: vt.Schema, folder: Path) -> None:
    """One class of three: how far somebody went in school."""
    level = np.select([rows["education-num"] <= most for most in list(LEVELS.values())[:-1]], list(LEVELS)[:-1], "degree")
    kept = [name for name in schema if name not in ("education", "education-num")]
    columns = {name: schema[name] for name in kept} | {"level": vt.Categorical(list(LEVELS))}
    own_schema, own_rows = vt.Schema(columns), rows[kept].assign(level=level)
    training, private = own_rows[: len(rows) // 2], own_rows[len(rows) // 2 :]
    fitted = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    fitted.fit(encoded(training, own_schema, "level"), training["level"])
    model = vt.Model(fitted, output="degree", name="education model", inputs="features")
    said = {"classes": {"degree": "a degree", "not degree": "no degree"}, "good": "above"}
    words = words_for([*own_schema.without("level")], decision="What the model thinks you have", **said)
    pane = vt.release(opened(private, own_schema, "level", "graduates"), model, epsilon=0.9, page=words)
    person = {name: value for name, value in APPLICANT.items() if name in kept} | {"income": "<=50K"}
    pane.explain(person).to_html(folder / "education.html")
    reasons = pane.classes(person, bands=True)
    for name, found in reasons.items():
        found.to_html(folder / f"education.{name}.html")


def main() -> None:
    """Write all pages."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "gallery")
    folder.mkdir(exist_ok=True)
    schema = vt.Schema.load(DATA / "adult.schema.json")
    rows = pd.read_parquet(DATA / "adult.parquet").sample(frac=1, random_state=0)
    for case in (loan, hours, education):
        case(rows, schema, folder)
        print(f"{case.__name__}: {(case.__doc__ or '').splitlines()[0]}")
    print(f"{len(list(folder.glob('*.html')))} pages in {folder}/")


if __name__ == "__main__":
    main()
