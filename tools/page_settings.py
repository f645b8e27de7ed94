"""What a page of the documentation speaks of and does not make itself: somebody's rows, somebody's model.

``tools/page_blocks.py`` calls a page's ``prepare`` in the page's folder, before its first block, and hands the names that it
returns to the page. Everything is made from the bundled census rows, or made up.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import vitrail as vt
from vitrail.ledger import open_ledger

DATA = Path(__file__).resolve().parent.parent / "examples" / "data"
NUMBERS = ("age", "education-num", "hours-per-week")
CORE_ALONE = ("attr", "dp_accounting", "onnxruntime", "pandas", "polars", "shap", "sklearn", "torch")
"""What `pip install .` does not bring and would be missed first."""

Names = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """How a page is run.

    Parameters
    ----------
    prepare : callable
        Makes files in the folder it is called in, and returns names for the page's Python.
    changed : sequence of (str, str)
        What stands in the page, and what runs instead: a real address, more rows than a test has.
    says : sequence of str
        What the page's blocks must print, in this or that place.
    writes : sequence of str
        Files that they must write.
    hidden : sequence of str
        Packages that its Python must not need.
    """

    prepare: Callable[[], Names | None] = dict
    changed: Sequence[tuple[str, str]] = ()
    says: Sequence[str] = ()
    writes: Sequence[str] = ()
    hidden: Sequence[str] = ()

    def missing(self, printed: str, files: Sequence[str]) -> Iterator[str]:
        for words in self.says:
            if words not in printed:
                yield f"nothing printed says {words!r}"
        for file in self.writes:
            if file not in files:
                yield f"no block wrote {file}"


def census(*columns: str, rows: int = 4000, epsilon: float = 4.0, name: str = "people", never: Sequence[str] = ()) -> Names:
    """Census rows in a vault and in files, and small models of who is rich: what most pages need."""
    wanted = [*(columns or (*NUMBERS, "sex")), "income"]
    people = pd.read_parquet(DATA / "adult.parquet")[wanted].dropna().head(rows)
    declared = vt.Schema.load(DATA / "adult.schema.json")
    schema = vt.Schema({name: declared[name] for name in wanted})
    schema.save("schema.json")
    people.to_parquet("people.parquet")
    inputs = schema.without("income")
    features, _ = inputs.features(inputs.read(people.drop(columns="income")))
    forest = RandomForestClassifier(8, max_depth=5, random_state=0).fit(features, people["income"])
    data = vt.PrivateData(
        people,
        schema,
        name=name,
        target="income",
        n_rows_public=len(people),
        budget=vt.Budget(epsilon, 1e-6),
        ledger="sqlite:///ledger.db",
    )
    return {
        "vt": vt,
        "np": np,
        "data": data,
        "schema": schema,
        "inputs": inputs,
        "forest": forest,
        "model": vt.Model(forest, output=1, name="riches"),
        "frame": people,
        "features": features,
    }


def as_onnx(forest: Any, features: Any, file: str = "model.onnx") -> None:
    from skl2onnx import to_onnx

    exported = to_onnx(forest, features[:1].astype(np.float32), options={"zipmap": False})
    Path(file).write_bytes(exported.SerializeToString())


def frame_model(names: Names) -> Any:
    """A pipeline on data frames, as scikit-learn's own explainers take it."""
    people = names["frame"]
    texts = [name for name in people if name != "income" and people[name].dtype.kind not in "iuf"]
    numbers = [name for name in people if name != "income" and name not in texts]
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), texts))
    return make_pipeline(encode, LogisticRegression()).fit(people.drop(columns="income"), people["income"])


def code_book(columns: Sequence[str]) -> None:
    lines = (DATA / "adult.codebook.md").read_text(encoding="utf-8").splitlines()
    kept = ("| Column", "|---", *(f"| {name} |" for name in columns))
    told = [line.rsplit("|", 2)[0] + "|" for line in lines if line.startswith(kept)]  # not what follows from other columns
    Path("book.md").write_text("\n".join(told))


def csv_and_pipeline() -> Names:
    """A CSV file, its code book, and somebody's pipeline in a file."""
    columns = ["age", "education-num", "hours-per-week", "sex"]
    people = pd.read_parquet(DATA / "adult.parquet")[[*columns, "income"]]
    people.to_csv("people.csv", index=False)
    code_book([*columns, "income"])
    codes = make_column_transformer((OrdinalEncoder(), ["sex"]), remainder="passthrough")
    model = make_pipeline(codes, DecisionTreeClassifier(max_depth=5, random_state=0))
    skops.io.dump(model.fit(people[columns].head(3000), people["income"].head(3000)), "model.skops")
    return {}


def table_and_forest() -> Names:
    """The first tutorial's table, and a model that somebody else trained."""
    columns = ["age", "hours-per-week", "sex", "income"]
    people = pd.read_parquet(DATA / "adult.parquet")[columns]
    people.to_parquet("people.parquet")
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    public = people.head(500)
    Path("backups").mkdir()
    return {"forest": tree.fit(public[["age", "hours-per-week"]], public["income"] == ">50K")}


def one_prediction() -> Names:
    names = census("age", "hours-per-week", "sex", rows=30_162)
    as_onnx(names["forest"], names["features"])
    names["frame"].drop(columns="income").head(2).to_csv("people.csv", index=False)
    names["schema"].save("people.schema.json")
    person = {"age": 52, "hours-per-week": 45, "sex": "Male"}
    return {**names, "monday": person, "tuesday": person | {"age": 53}, "anybody": person | {"age": 54}}


def whole_model() -> Names:
    names = census("age", "hours-per-week", "sex", epsilon=9.0)
    person = {"age": 52, "hours-per-week": 45, "sex": "Male"}
    return {**names, "e": vt.Shapley(names["data"], names["model"])(person, epsilon=0.5), "pandas": pd}


def by_group() -> Names:
    return census("age", "race", "hours-per-week", epsilon=2.0)


def what_would_have_changed() -> Names:
    names = census("age", "education", "education-num", "hours-per-week", "sex")
    levels = names["schema"]["education"].levels
    names["years"] = {level: place for place, level in enumerate(levels, 1)}
    as_onnx(names["forest"], names["features"])
    names["people"] = names["frame"].drop(columns="income").head(2)
    return names


def any_explainer() -> Names:
    import shap

    names = census(*NUMBERS, "capital-gain", rows=1000, epsilon=9.0)
    people = names["frame"]
    trees = RandomForestClassifier(4, max_depth=3, random_state=0)
    return {
        **names,
        "shap": shap,
        "estimator": frame_model(names),
        "forest": trees.fit(people.drop(columns="income"), people["income"]),
        "my_explainer": lambda model, X: (X["age"], X["hours-per-week"] / 99),
        "RandomForestClassifier": RandomForestClassifier,
    }


def panes() -> Names:
    """Two models and people to explain."""
    names = census("age", "hours-per-week", "sex", epsilon=9.0)
    as_onnx(names["forest"], names["features"])
    as_onnx(names["forest"], names["features"], "next_year.onnx")
    Path("person.json").write_text('{"age": 52, "hours-per-week": 45, "sex": "Male"}')
    names["frame"].to_parquet("adult.parquet")
    names["schema"].save("adult.schema.json")
    other = RandomForestClassifier(4, max_depth=3, random_state=1).fit(names["features"], names["frame"]["income"])
    point = {"age": 52, "hours-per-week": 45, "sex": "Male"}
    return {
        **names,
        "point": point,
        "points": [point, point | {"age": 30}],
        "next_years_model": vt.Model(other, output=1, name="next"),
        "any_model": vt.Model(other, output=1, name="any"),
        "old": vt.Model(names["forest"], output=1, name="old"),
        "new": vt.Model(other, output=1, name="new"),
    }


def declared_and_trained() -> Names:
    """A declared dataset, census.toml, and a model in a file."""
    csv_and_pipeline()
    command("vitrail init people.csv --codebook book.md --target income --rows 30000 --budget 2 -o census.toml")
    return {}


def command(line: str) -> None:
    done = subprocess.run(["bash", "-e", "-c", line], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{line!r}: {done.stderr}")


def somebody_else() -> Names:
    """The people of the README's file of many."""
    pd.read_csv(DATA / "adult.csv").drop(columns="income").head(2).to_csv("people.csv", index=False)
    return {}


def a_house() -> Names:
    """Stays in hospital, made up, their code book, and a model of them."""
    draw = np.random.default_rng(0)
    stays = pd.DataFrame(
        {"age": draw.integers(18, 95, 4000), "length_of_stay": draw.gamma(2.0, 2.0, 4000).clip(0, 30).round(1)}
    )
    stays["readmitted"] = np.where(draw.random(4000) < 0.1 + 0.005 * (stays["age"] - 18), "yes", "no")
    stays.to_parquet("visits.parquet")
    book = [
        "| Column | Kind | Values |",
        "|---|---|---|",
        "| age | integer | 18 to 95 |",
        "| length_of_stay | number | 0 to 30 |",
    ]
    Path("book.md").write_text("\n".join([*book, "| readmitted | levels | no, yes |"]))
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    columns = ["age", "length_of_stay"]
    tree = make_pipeline(
        make_column_transformer(("passthrough", columns)), DecisionTreeClassifier(max_depth=3, random_state=0)
    )
    kinds = [(name, FloatTensorType([None, 1])) for name in columns]  # an input for each column, by its name
    exported = to_onnx(tree.fit(stays[columns], stays["readmitted"]), initial_types=kinds, options={"zipmap": False})
    Path("risk.onnx").write_bytes(exported.SerializeToString())
    open_ledger("sqlite:///ledger.db").close()  # as the first start leaves it
    return {}


def live() -> Names:
    names = census("age", "hours-per-week", "sex")
    as_onnx(names["forest"], names["features"])
    vt.release(names["data"], vt.Model("model.onnx", output=1), epsilon=1.0, parts=["rows"]).save("adult.pane")
    return {**names, "model": names["forest"], "rows": names["features"]}


def other_programs() -> Names:
    import mlflow
    import polars

    draw = np.random.default_rng(0)
    schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    rows = {"age": draw.uniform(0, 100, 3000), "smoker": draw.choice(["no", "yes"], 3000)}
    budget = vt.Budget(2, 1e-6)
    data = vt.PrivateData(rows, schema, name="adult", n_rows_public=3000, budget=budget, ledger="sqlite:///ledger.db")
    model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0], range=(0, 1), name="risk")
    pane = vt.release(data, model, epsilon=1.0, parts=["rows", "reasons"])
    pane.save("adult.pane")
    people = pd.DataFrame({"age": [30.0, 70.0], "smoker": ["no", "yes"]})
    return {"data": data, "pane": pane, "people": people, "vt": vt, "mlflow": mlflow, "polars": polars}


def texts_and_pictures() -> Names:
    """Made-up reviews and pictures, and models of them."""
    draw = np.random.default_rng(0)
    vocabulary = ["awful", "boring", "brilliant", "great", "plot", "waste"]
    counts = draw.random((2000, 6)) < 0.3
    reviews = [" ".join(np.array(vocabulary)[row]) for row in counts]
    good = counts @ np.array([-1, -1, 1, 1, 0, -1]) > 0
    images = draw.random((1500, 28, 28))
    digits = np.arange(1500) % 10
    images[np.arange(1500), digits * 2, :] = 1.0
    flat = images.reshape(len(images), -1)
    return {
        "vt": vt,
        "reviews": reviews,
        "classifier": LogisticRegression().fit(counts, good),
        "images": images,
        "image": images[0],
        "network": DecisionTreeClassifier(max_depth=12, random_state=0).fit(flat, digits),
    }


ASKED = "vitrail ask people.parquet --schema people.schema.json --target income --rows 30000 --budget 1 --ledger asked.db"
SETTINGS = {
    "README.md": Setting(somebody_else, hidden=CORE_ALONE, writes=["person.html", "report.html", "marginals.png"]),
    "docs/tutorial.md": Setting(table_and_forest, writes=["ledger.db", "marginals.png"]),
    "docs/tutorial_pane.md": Setting(csv_and_pipeline, writes=["person.html", "report.html"]),
    "docs/models.md": Setting(says=["given a pandas DataFrame with category columns, 13 columns"]),
    "docs/audit.md": Setting(
        says=["claim refuted, tightness 1.9", "H-orthogonal: 60 of 60", "claim not refuted, tightness 0."],
        writes=["audit.html", "roc.png", "influence.html"],
    ),
    "docs/renew.md": Setting(
        declared_and_trained,
        changed=[("model.onnx", "model.skops")],
        says=["differ by more than noise explains: smoker, histogram"],
        writes=["drift.html"],
    ),
    "docs/local.md": Setting(
        one_prediction,
        changed=[("$ vitrail ask ... --point", f"$ {ASKED} --model model.onnx --point")],
    ),
    "docs/flow.md": Setting(lambda: {"vt": vt}),
    "docs/serve.md": Setting(a_house),
    "docs/global.md": Setting(whole_model),
    "docs/groups.md": Setting(by_group),
    "docs/counterfactual.md": Setting(what_would_have_changed),
    "docs/generic.md": Setting(any_explainer),
    "docs/pane.md": Setting(panes),
    "docs/desk.md": Setting(csv_and_pipeline),
    "docs/live.md": Setting(live),
    "docs/exports.md": Setting(other_programs, writes=["label.html", "rows.parquet", "reasons/MLmodel"]),
    "docs/text_and_images.md": Setting(texts_and_pictures),
}
