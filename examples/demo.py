"""The demo: what a bank can say about its customers and its model, with a bill for every epsilon, in one file.

A bank has trained a model on one half of its customers and wants to explain it on the other half, which is private. It
declares a schema and a budget, sees what a *pane* would cost, and buys it: one file from which everything is explained from
then on, without the customers. It asks a question of its own, is refused another, gets the pane again for nothing. Then
somebody else, with no access to any of this, opens the file and explains the model's answer to a person who was turned down.
``make demo`` runs it in well under a minute; it ends with a page for that person and a page on the model, in demo-output.

The customers are the Adult census extract, which is public, so that the demo can show how close the private answers come.
"""

import json
import math
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from vitrail.accounting import rounded_up
from vitrail.ledger import SqlLedger

DATA = Path(__file__).parent / "data"
OUTPUT = Path("demo-output")
SEXES = ("Female", "Male")
APPLICANT = {
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
"""A person who asks. Nobody's row."""
TWO_SIDED_95 = 1.96

console = Console(width=100, highlight=False)


def step(number: int, text: str) -> None:
    """Say what comes next."""
    console.print(f"\n[bold]{number}. {text}[/bold]")


def train(rows: pd.DataFrame, schema: vt.Schema) -> vt.Model:
    """A plain scikit-learn model: a small forest on the schema's features."""
    inputs = schema.without("income")
    features, _ = inputs.features(inputs.read(rows.drop(columns="income")))
    forest = RandomForestClassifier(16, max_depth=9, min_samples_leaf=10, random_state=0)
    forest.fit(features, rows["income"])
    return vt.Model(forest, output=">50K", name="income model")


def by_sex(model: vt.Model) -> vt.BoundedSum:
    """For each sex: the sum of predictions, the number of right ones, the number of people.

    A row is one sex, so it fills one group of three numbers in [0, 1] and leaves the other at zero: its norm is at most
    sqrt(3).
    """

    def contributions(block: vt.Block) -> np.ndarray:
        prediction = block.predictions(model)
        right = (prediction > 0.5) == (block.target == 1)
        numbers = np.stack([prediction, right, np.ones(len(block))], axis=1)
        sex = np.eye(2)[block.column("sex").astype(int)]
        return (sex[:, :, None] * numbers[:, None, :]).reshape(len(block), 6)

    key = f"predictions and accuracy by sex, version 1, model {model.digest()}"
    return vt.BoundedSum(contributions, size=6, l2_bound=math.sqrt(3), key=key, label="predictions and accuracy by sex")


def fresh_ledger() -> Path:
    """A new ledger for every run. Deleting one does not give its budget back: only a demo on public data may do this."""
    OUTPUT.mkdir(exist_ok=True)
    ledger = OUTPUT / "ledger.db"
    if ledger.exists():
        console.print(f"Removing the ledger of the last demo, {ledger} (with real data this would be a breach).")
    ledger.unlink(missing_ok=True)
    # The library writes down outside the ledger how far it has come, and would refuse the new one. The demo has that apart.
    os.environ["VITRAIL_STATE"] = str(OUTPUT / "state")
    shutil.rmtree(OUTPUT / "state", ignore_errors=True)
    return ledger


def show_marginals(found: vt.Marginals, truth: pd.DataFrame) -> None:
    """A few numbers beside the true ones."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for name in ("", "private", "true (the demo's data is public)"):
        table.add_column(name, justify="left" if not name else "right")
    table.add_row("customers", f"{found.total:,.0f} ± {TWO_SIDED_95 * found.total_sigma:.0f}", f"{len(truth):,}")
    table.add_row(
        "mean age",
        f"{found.mean('age'):.1f} ± {TWO_SIDED_95 * found.mean_sigma('age'):.1f}",
        f"{truth['age'].mean():.1f}",
    )
    table.add_row("median age", f"{found.quantile('age', 0.5):.0f}", f"{truth['age'].median():.0f}")
    table.add_row("women", f"{found.shares['sex'][0]:.1%}", f"{(truth['sex'] == 'Female').mean():.1%}")
    console.print(table)


def show_columns(pane: vt.Pane, model: vt.Model, truth: pd.DataFrame) -> None:
    """The most important columns, and partial dependence beside the true one."""
    inputs = pane.schema
    raw = inputs.read(truth.drop(columns="income"))
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for name in (
        "",
        f"importance ({pane.importance.band_claim.mark})",
        "above the next",
        "model output at",
        "private",
        "true",
    ):
        table.add_column(name, justify="left" if name in ("", "model output at") else "right")
    ranked = pane.importance.frame()
    for place, name in enumerate(pane.importance.top(5)):
        curve = pane.pdp[name]
        at = int(np.argmax(curve.density.shares)) if curve.categorical else len(curve) // 2
        altered = raw.copy()
        shown = curve.x[at]
        altered[:, inputs.column_index(name)] = inputs[name].levels.index(shown) if curve.categorical else shown
        table.add_row(
            name,
            f"{ranked['score'][place]:.4f} ± {TWO_SIDED_95 * ranked['std'][place]:.4f}",
            f"{ranked['confidence'][place]:.0%}",
            shown if curve.categorical else f"{shown:,.0f}",
            f"{curve.y[at]:.3f} ± {curve.half_widths[at]:.3f}",
            f"{model.predict_points(inputs, altered).mean():.3f}",
        )
    console.print(table)


def show_ratios(release: vt.Release) -> None:
    """Mean prediction and accuracy by sex from the noisy sums, noise to first order as half a 95 % band."""
    for sex, (predictions, right, people) in zip(SEXES, release.value.reshape(2, 3), strict=True):
        said = []
        for total in (predictions, right):
            rate = total / people
            said.append((rate, TWO_SIDED_95 * release.sigma * math.hypot(1, rate) / people))
        (mean, band), (accuracy, other) = said
        console.print(
            f"{sex:8} mean prediction {mean:.3f} ± {band:.3f}   accuracy {100 * accuracy:.1f} % ± {100 * other:.1f}"
        )


def show_person(person: vt.pane.Person) -> None:
    """The three largest contributions, and what would have changed the answer."""
    why = person.explanation
    console.print(f"The model's output is {why.outputs[0]:.2f}, where 0.5 decides. What moves it most:")
    for one in why.top(3):
        console.print(f"  {one.column} = {person.point[one.column]}: {one.value:+.3f} ± {(one.upper - one.lower) / 2:.3f}")
    console.print(why.band_claim.sentence())
    console.print("It would have been the other answer with:")
    for changes in person.counterfactuals.changes[0]:
        console.print("  " + ", ".join(f"{column} {after} (not {before})" for column, before, after in changes))


def main() -> None:
    """Run the demo."""
    started = time.monotonic()
    console.print("[bold]Vitrail demo[/bold]: explain a model from private rows, with a bill for every epsilon.")
    ledger = fresh_ledger()

    step(1, "The bank declares what is public, and trains a model on one half of its customers")
    schema = vt.Schema.load(DATA / "adult.schema.json")
    customers = pd.read_parquet(DATA / "adult.parquet").sample(frac=1, random_state=0)
    training, private = customers[: len(customers) // 2], customers[len(customers) // 2 :]
    model = train(training, schema)
    console.print(f"{schema.n_columns} columns, {schema.n_features} features; {model}")

    step(2, "It puts the other half into a vault, with a budget for ever")
    data = vt.PrivateData(
        private,
        schema,
        name="customers",
        target="income",
        n_rows_public=15_081,  # the file is published, so this is; a rounded one may be called a contradiction
        budget=vt.Budget(epsilon=1.0, delta=1e-6),
        ledger=ledger,
        analyst="alice",
    )
    console.print(f"{data}\nBudget epsilon 1 at delta 1e-6, bill in {ledger}")

    step(3, "What would a pane cost, and how good would it be? The price tag is free")
    console.print(f"[dim]{data.quote(vt.pane.PaneExplainer(data, model), epsilon=0.9)}[/dim]")

    step(4, "It buys the pane: who they are, what matters, what each column does, why and what if for anybody, epsilon 0.9")
    words = vt.PageWords.load(DATA / "adult.page.toml")  # what the bank calls things; no part of any question
    pane = vt.release(data, model, epsilon=0.9, page=words)
    pane.save(OUTPUT / "customers.pane")
    show_marginals(pane.marginals, private)
    console.print()
    show_columns(pane, model, private)

    step(5, "A question of its own: what does the model say about women and men, how often is it right? epsilon 0.2")
    question = by_sex(model)
    console.print(f"[dim]Price tag, free: {data.quote(question, epsilon=0.2)}[/dim]")
    show_ratios(data.ask(question, epsilon=0.2))

    step(6, "A question that does not fit is refused, and costs nothing")
    try:
        vt.marginals(data, epsilon=0.95)
    except vt.errors.BudgetExceeded as refusal:
        console.print(f"[yellow]{refusal}[/yellow]")

    step(7, "The same pane again is answered from the ledger, and costs nothing")
    spent = data.budget.spent
    again = vt.release(data, model, epsilon=0.9, page=words)
    console.print(f"Replayed: {data.budget.spent == spent}; the same bytes: {again.to_bytes() == pane.to_bytes()}")

    step(8, "The bill, and whether the ledger holds")
    lines = Table(box=None, padding=(0, 2), header_style="dim")
    for name, justify in (("entry", "right"), ("question", "left"), ("epsilon", "right"), ("so far", "right")):
        lines.add_column(name, justify=justify)
    for line in data.budget.bill().lines:
        if line.paid:
            lines.add_row(str(line.seq), line.what, rounded_up(line.epsilon), rounded_up(line.so_far))
    console.print(lines)
    console.print("Epsilons do not add up, squares of mu do: 0.9 and 0.2 together are less than 1.")
    verified = SqlLedger(ledger, must_exist=True).verify()
    console.print("The ledger holds." if verified.ok else "\n".join(verified.problems))

    step(9, "Elsewhere, without the customers or the ledger: a person asks why, with the file and the model")
    pane = vt.Pane.load(OUTPUT / "customers.pane", model=model)
    person = pane.explain(APPLICANT)
    show_person(person)
    person.to_html(OUTPUT / "person.html")
    pane.to_html(OUTPUT / "report.html")
    (OUTPUT / "person.json").write_text(json.dumps(APPLICANT, indent=1) + "\n", encoding="utf-8")

    size = (OUTPUT / "customers.pane").stat().st_size / 1024
    console.print(f"\nPane:   {OUTPUT / 'customers.pane'}  ({size:.0f} KiB: may be mailed, published, shipped)")
    console.print(f"[bold]Person: {OUTPUT / 'person.html'}[/bold]  (open it in a browser, or on a phone)")
    console.print(f"[bold]Report: {OUTPUT / 'report.html'}[/bold]  ({time.monotonic() - started:.0f} s)")
    console.print(f"[dim]On the command line: vitrail show {OUTPUT / 'customers.pane'}; vitrail budget {ledger}[/dim]")


if __name__ == "__main__":
    main()
