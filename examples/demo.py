"""The demo: what a bank can say about its customers and its model, with a bill for every epsilon.

A bank has trained a model on one half of its customers and wants to explain it on the other half, which is private. It
declares a schema and a budget, sees what a report would cost, buys it (which columns matter, what each of them does, who
the customers are), asks a question of its own, is refused another, gets an answer again for nothing, and writes a page that
may be published. ``make demo`` runs it in well under a minute; the page is demo-output/report.html.

The customers are the Adult census extract, which is public, so that the demo can show how close the private answers come.
"""

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier

import vitrail as vt
from vitrail.ledger import SqlLedger
from vitrail.show import Estimate, Section, bill_of, estimates_picture

DATA = Path(__file__).parent / "data"
OUTPUT = Path("demo-output")
SEXES = ("Female", "Male")
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
    for suffix in ("", "-wal", "-shm"):
        Path(f"{ledger}{suffix}").unlink(missing_ok=True)
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
    table.add_row("income above 50K", f"{found.shares['income'][1]:.1%}", f"{(truth['income'] == '>50K').mean():.1%}")
    console.print(table)


def show_report(report: vt.GlobalExplanation, model: vt.Model, truth: pd.DataFrame, schema: vt.Schema) -> None:
    """The most important columns, and partial dependence beside the true one."""
    inputs = schema.without("income")
    raw = inputs.read(truth.drop(columns="income"))
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for name in ("", "importance", "above the next", "model output at", "private", "true"):
        table.add_column(name, justify="left" if name in ("", "model output at") else "right")
    ranked = report.importance.frame()
    for place, name in enumerate(report.importance.top(5)):
        curve = report.pdp[name]
        at = int(np.argmax(curve.density.shares)) if curve.categorical else len(curve) // 2
        altered = raw.copy()
        shown = curve.x[at]
        altered[:, inputs.column_index(name)] = inputs[name].levels.index(shown) if curve.categorical else shown
        table.add_row(
            name,
            f"{ranked['score'][place]:.4f} ± {TWO_SIDED_95 * ranked['std'][place]:.4f}",
            f"{ranked['confidence'][place]:.0%}",
            shown if curve.categorical else f"{shown:,.0f}",
            f"{curve.y[at]:.3f} ± {curve.half_width[at]:.3f}",
            f"{model.predict_points(inputs, altered).mean():.3f}",
        )
    console.print(table)


def ratios(release: vt.Release) -> tuple[list[Estimate], list[Estimate]]:
    """Mean prediction and accuracy by sex from the noisy sums, noise to first order as half a 95 % band."""
    means, accuracies = [], []
    for sex, (predictions, right, people) in zip(SEXES, release.value.reshape(2, 3), strict=True):
        for found, total in ((means, predictions), (accuracies, right)):
            rate = total / people
            found.append(Estimate(sex, rate, TWO_SIDED_95 * release.sigma * math.hypot(1, rate) / people))
    return means, accuracies


def model_section(means: list[Estimate], accuracies: list[Estimate]) -> Section:
    """What the page says about women and men."""
    text = (
        "The model predicts how likely an income above 50K is. It was trained on other customers, whom this promise does "
        "not cover. Mean prediction and accuracy on the private half come from one noisy sum."
    )
    pictures = (
        estimates_picture("Mean prediction", means, limits=(0, 1)),
        estimates_picture("Accuracy", accuracies, limits=(0, 1)),
    )
    return Section("What the model does", (text,), pictures=pictures)


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
        n_rows_public=15_000,
        budget=vt.Budget(epsilon=1.0, delta=1e-6),
        ledger=ledger,
        analyst="alice",
    )
    console.print(f"{data}\nBudget epsilon 1 at delta 1e-6, bill in {ledger}")

    step(3, "What would a whole report cost, and how good would it be? The price tag is free")
    explain = vt.GlobalReport(data, model)
    console.print(f"[dim]{data.quote(explain, epsilon=0.6)}[/dim]")

    step(4, "It buys the report: who they are, which columns matter, what each of them does, epsilon 0.6")
    report = explain(epsilon=0.6)
    show_marginals(report.marginals, private)
    console.print()
    show_report(report, model, private, schema)

    step(5, "A question of its own: what does the model say about women and men, how often is it right? epsilon 0.2")
    question = by_sex(model)
    console.print(f"[dim]Price tag, free: {data.quote(question, epsilon=0.2)}[/dim]")
    means, accuracies = ratios(data.ask(question, epsilon=0.2))
    for mean, accuracy in zip(means, accuracies, strict=True):
        console.print(
            f"{mean.name:8} mean prediction {mean.value:.3f} ± {mean.half_width:.3f}   "
            f"accuracy {100 * accuracy.value:.1f} % ± {100 * accuracy.half_width:.1f}"
        )

    step(6, "A question that does not fit is refused, and costs nothing")
    try:
        vt.marginals(data, epsilon=0.95)
    except vt.errors.BudgetExceeded as refusal:
        console.print(f"[yellow]{refusal}[/yellow]")

    step(7, "The same report again is answered from the ledger, and costs nothing")
    spent = data.budget.spent
    again = explain(epsilon=0.6)
    same = all(np.array_equal(again.pdp[name].y, report.pdp[name].y) for name in report.pdp)
    console.print(f"Replayed: {data.budget.spent == spent}; the same numbers: {same}")

    step(8, "The bill, and whether the ledger holds")
    bill = bill_of(data.budget)
    lines = Table(box=None, padding=(0, 2), header_style="dim")
    for name, justify in (("entry", "right"), ("question", "left"), ("epsilon", "right"), ("so far", "right")):
        lines.add_column(name, justify=justify)
    for line in bill.lines:
        price = f"{line.epsilon:.3g}" if line.paid else "free"
        lines.add_row(str(line.seq), line.what, price, f"{line.so_far:.3g}")
    console.print(lines)
    console.print("Epsilons do not add up, squares of mu do: 0.6 and 0.2 together are less than 0.8.")
    verified = SqlLedger(ledger, must_exist=True).verify()
    console.print("The ledger holds." if verified.ok else "\n".join(verified.problems))

    page = report.report(bill, title="A bank explains its model", before=(model_section(means, accuracies),))
    written = page.save(OUTPUT / "report.html")
    console.print(f"\n[bold]Report: {written}[/bold]  ({time.monotonic() - started:.0f} s)")
    console.print(f"[dim]The same bill on the command line: vitrail budget {ledger}[/dim]")


if __name__ == "__main__":
    main()
