"""Pages of every kind from one small private dataset, as files: a person's, a report, groups, one question."""

from pathlib import Path

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from benchmark_scripts import ROOT
from error_rates import planted_noise

DATA = ROOT / "examples" / "data"
N_ROWS = 6_000
PERSON = {
    "age": 38,
    "workclass": "Private",
    "education": "HS-grad",
    "education-num": 9,
    "marital-status": "Married-civ-spouse",
    "occupation": "Sales",
    "relationship": "Wife",
    "race": "White",
    "sex": "Female",
    "capital-gain": 0,
    "capital-loss": 0,
    "hours-per-week": 45,
    "native-country": "United-States",
}
NAMES = ("person.html", "report.html", "group.html", "question.html", "small.pane")


def income_model(training: pd.DataFrame, schema: vt.Schema) -> vt.Model:
    inputs = schema.without("income")
    features, _ = inputs.features(inputs.read(training.drop(columns="income")))
    forest = RandomForestClassifier(8, max_depth=7, min_samples_leaf=10, random_state=0)
    return vt.Model(forest.fit(features, training["income"]), output=">50K", name="income model")


def write(folder: Path) -> None:
    """Write every page of ``NAMES``. On planted noise: whether a page has anything to say is no matter of chance."""
    schema = vt.Schema.load(DATA / "adult.schema.json")
    rows = pd.read_parquet(DATA / "adult.parquet").sample(frac=1, random_state=0)
    model = income_model(rows[:10_000], schema)
    with planted_noise():
        data = vt.PrivateData(
            rows[-N_ROWS:],
            schema,
            name="customers",
            target="income",
            n_rows_public=N_ROWS,
            budget=vt.Budget(epsilon=3.0, delta=1e-6),
            ledger="memory",
        )
        pane = vt.release(data, model, epsilon=1.0)
        pane.save(folder / "small.pane")
        pane.explain(PERSON).to_html(folder / "person.html")
        pane.to_html(folder / "report.html")
        vt.GroupReport(data, model, by="sex")(epsilon=1.0).to_html(folder / "group.html")
        curves = vt.PartialDependence(data, model, columns=["age", "education"])(epsilon=1.0)
        curves.to_html(folder / "question.html")
