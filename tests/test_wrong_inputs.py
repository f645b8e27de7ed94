"""Ordinary mistakes of a first day, each answered before anything is charged; none gives confident numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from vitrail.desk.declaration import read_declaration
from vitrail.errors import ImpureFunction, InvalidInput, LedgerWarning, ModelError, RowCountWarning, SchemaError

N = 400
SCHEMA = vt.Schema(
    {
        "age": vt.Numeric(18, 90),
        "job": vt.Categorical(["clerk", "nurse", "smith"]),
        "member": vt.Categorical([False, True]),
        "ill": vt.Categorical(["no", "yes"]),
    }
)
DECLARED = """
format = 1
[dataset]
source = "visits.csv"
rows = 400
target = "ill"
[budget]
epsilon = 1.0
ledger = "ledger.db"
[columns.age]
kind = "number"
low = 18
high = 90
[columns.job]
levels = ["clerk", "nurse", "smith"]
[columns.member]
kind = "boolean"
[columns.ill]
levels = ["no", "yes"]
"""


def frame() -> pd.DataFrame:
    draw = np.random.Generator(np.random.PCG64(8))
    made = pd.DataFrame({"age": draw.uniform(18, 90, N), "job": draw.choice(["clerk", "nurse", "smith"], N)})
    made["member"] = draw.choice([False, True], N)
    return made.assign(ill=np.where(made["age"] > 60, "yes", "no"))


@pytest.fixture
def declared(tmp_path):
    """A folder with a declaration; what is written to visits.csv is up to the test."""

    def write(rows: pd.DataFrame, text: str = DECLARED):
        rows.to_csv(tmp_path / "visits.csv", index=False)
        (tmp_path / "visits.toml").write_text(text)
        return tmp_path / "visits.toml"

    return write


def private(rows: object = None, **options: object) -> vt.PrivateData:
    settings = {"name": "visits", "target": "ill", "n_rows_public": N, "budget": vt.Budget(1, 1e-6), "ledger": "memory"}
    return vt.PrivateData(frame() if rows is None else rows, SCHEMA, **settings | options)


def spent_nothing(data: vt.PrivateData) -> bool:
    return data.budget.spent_epsilon == 0 and data.budget.n_questions == 0


def advice(found: vt.Checkup) -> str:
    return " ".join(f"{one.where}: {one.text}" for one in found.findings)


def test_nan_in_a_third_of_a_column(declared):
    rows = frame()
    rows.loc[: 0.3 * N - 1, "age"] = np.nan
    assert "age: 120 rows (30.0 %) hold no value" in advice(vt.doctor(declared(rows)))
    with pytest.warns(RowCountWarning, match="Rows that count: 2"):  # who asks no doctor is told by the release
        vt.marginals(private(rows, budget=vt.Budget(20, 1e-6)), epsilon=10.0)


def test_a_typo_in_a_level(declared):
    rows = frame().replace({"job": {"nurse": "nurs"}})
    assert "Did you mean 'nurse'?" in advice(vt.doctor(declared(rows)))
    with pytest.raises(SchemaError, match="Did you mean 'nurse'"):
        SCHEMA.without("ill").read_points({"age": 40, "job": "nurs", "member": True})


def test_yes_and_no_against_booleans(declared):
    rows = frame()
    rows["member"] = np.where(rows["member"], "yes", "no")
    found = vt.doctor(declared(rows))
    assert "declare levels = ['no', 'yes']" in advice(found)
    assert not found.ok


def test_a_lambda_around_predict_proba():
    rows = frame()
    x = pd.get_dummies(rows[["age", "job", "member"]]).to_numpy(dtype=float)[:, :3]
    forest = RandomForestClassifier(5, random_state=0).fit(x, rows["ill"])
    data = private()
    model = vt.Model(lambda x: forest.predict_proba(x)[:, 1], range=(0, 1))
    with pytest.raises(ModelError, match=r"give the estimator itself: vt\.Model\(forest\)"):
        vt.GlobalReport(data, model)(epsilon=0.5)
    assert spent_nothing(data)


def test_a_forest_on_codes_of_levels():
    rows = frame()
    codes = rows[["age", "job", "member"]].assign(job=rows["job"].astype("category").cat.codes)
    data = private()
    for x in (codes, codes.to_numpy(dtype=float)):
        forest = RandomForestClassifier(5, random_state=0).fit(x, rows["ill"])
        with pytest.raises(ModelError, match="is not guessed"):
            vt.GlobalReport(data, vt.Model(forest))(epsilon=0.5)
    assert spent_nothing(data)


def test_a_model_that_looks_at_its_neighbours():
    data = private()
    model = vt.Model(lambda x: np.clip(0.5 + x[:, 0] - x[:, 0].mean(), 0, 1), range=(0, 1))
    with pytest.raises(ModelError, match="when other rows stand beside it"):
        vt.PartialDependence(data, model, columns=["age"])(epsilon=0.5)
    assert spent_nothing(data)
    question = vt.BoundedSum(lambda block: block.features + np.random.default_rng().normal(), size=6, l2_bound=2.0)
    with pytest.raises(ImpureFunction, match="two answers for the same public row"):
        private().ask(question, epsilon=0.5)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("epsilon = 1.0", "epsilon = 1000", "promises nothing"),
        ("epsilon = 1.0", "epsilon = 1\ndelta = 0.1", "one of them whole"),
    ],
)
def test_a_budget_that_promises_nothing(declared, before, after, words):
    with pytest.raises(InvalidInput, match=words):
        read_declaration(declared(frame(), DECLARED.replace(before, after)))
    numbers = {"epsilon": 1000.0, "delta": 1e-6} if "1000" in after else {"epsilon": 1.0, "delta": 0.1}
    with pytest.warns(UserWarning, match=words):  # in Python it is warned of
        private(budget=vt.Budget(**numbers))


def test_no_ledger(declared):
    with pytest.raises(InvalidInput, match="where the bill is kept"):
        read_declaration(declared(frame(), DECLARED.replace('ledger = "ledger.db"', "")))
    settings = {"name": "forgotten", "n_rows_public": N, "budget": vt.Budget(1, 1e-6)}
    import vitrail.ledger.high_water as high_water

    high_water._SAID.discard("forgetful")
    with pytest.warns(LedgerWarning, match="forgotten when this process ends"):
        vt.PrivateData(frame(), SCHEMA, **settings)


def test_a_point_that_holds_the_target():
    data = private()
    model = vt.Model(lambda x: 0.5 * x[:, 0], range=(0, 1), name="risk")
    pane = vt.release(data, model, epsilon=0.5, parts=["rows"], key="risk")
    person = {"age": 40, "job": "nurse", "member": True, "ill": "no"}
    with pytest.raises(SchemaError, match="'ill'"):
        pane.explain(person, bands=False)
    with pytest.raises(SchemaError, match="'ill'"):
        vt.Shapley(data, model, key="risk")(person, epsilon=0.1)


def test_a_column_of_identifiers(declared):
    rows = frame().assign(customer_number=np.arange(N) * 37 + 11)
    text = DECLARED + '[columns.customer_number]\nkind = "integer"\nlow = 0\nhigh = 100000\n'
    assert "customer_number: has another value in nearly every row, as an identifier has" in advice(
        vt.doctor(declared(rows, text))
    )
