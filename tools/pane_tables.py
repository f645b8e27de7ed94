"""The tables on panes, from benchmarks/results/pane.json, and the page "Which way to pay", which compares ways by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks" / "results"
RESULTS = FOLDER / "pane.json"
LOCAL = FOLDER / "local.json"

HEADLINE = {
    "local_ratio": ("local excess loss in a pane of all parts, over the synopsis alone at eps 1", "<= 6", "{:.1f} x"),
    "pdp_ratio": ("partial dependence, MISE, the same", "<= 6", "{:.1f} x"),
    "ale_ratio": ("accumulated effects, MISE, the same", "<= 6", "{:.1f} x"),
    "local_fidelity": ("error of local explanations on nearby real rows, gradient boosting", "<= 0.080", "{:.4f}"),
    "importance_agreement": ("rank agreement of permutation importance", ">= 0.95", "{:.3f}"),
    "counterfactual_validity": ("people with a valid counterfactual", ">= 97 %", "{:.1%}"),
    "worst_gain_vs_published": (
        "as-published methods with all of eps 1 for one question, over the pane: the smallest gain",
        ">= 1",
        "{:.2f} x",
    ),
    "pane_mib": ("size of Adult's pane", "< 5 MiB", "{:.2f} MiB"),
    "person_seconds": ("load it, and explain a new person with three counterfactuals", "< 1 s", "{:.2f} s"),
    "local_per_second": ("local explanations a second, 103 features, no bands", ">= 500", "{:.0f}"),
    "fuzz_failures": ("damaged and forged panes that gave anything but our error, or a pane that works", "0", "{:.0f}"),
}
KINDS = {"local excess loss": "local excess loss", "pdp": "partial dependence, MISE", "ale": "accumulated effects, MISE"}


def read(path: Path = RESULTS) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def headline_table(found: dict[str, Any]) -> list[str]:
    lines = ["| figure | held to | measured |", "|---|---|---|"]
    return lines + [
        f"| {what} | {bar} | {form.format(found['headline'][key])} |"
        for key, (what, bar, form) in HEADLINE.items()
        if key in found["headline"]
    ]


def part_rows(found: dict[str, Any], part: str) -> list[dict[str, Any]]:
    return [row for row in found["rows"] if row["part"] == part]


def section() -> list[str]:
    """Lines of the page of measurements."""
    found = read()
    lines = [
        "## Panes",
        "",
        "Adult, all parts, epsilon 1 and delta 1e-6 for everything together.",
        "",
        *headline_table(found),
    ]
    lines += ["", "Each part in the pane, alone, and as published with all of epsilon 1 for one question:", ""]
    lines += ["| part | column | alone | in the pane | ratio | as published | gain |", "|---|---|---|---|---|---|---|"]
    published = {(row["what"], row.get("feature")): row for row in part_rows(found, "published")}
    for row in part_rows(found, "ratios"):
        if row["what"] not in KINDS:
            continue
        other = published[row["what"], row.get("feature")]
        theirs = f"{other['published']:.1e}" if "published" in other else ""
        lines.append(
            f"| {KINDS[row['what']]} | {row.get('feature', '')} | {row['alone']:.1e} | {row['in_the_pane']:.1e} | "
            f"{row['ratio']:.1f} x | {theirs} | {other['gain']:.2g} x |"
        )
    fuzz = [row for row in part_rows(found, "fuzz") if "refused" in row]
    if fuzz:
        lines += ["", "Panes from strangers:", "", "| damage | refused | opened, and usable | failed |", "|---|---|---|---|"]
        lines += [f"| {row['damage']} | {row['refused']} | {row['opened']} | {row['failed']} |" for row in fuzz]
    how = {
        name: said
        for name, said in found["how"].items()
        if isinstance(said, str) and name in {r["part"] for r in found["rows"]}
    }
    return [*lines, "", "How: " + "; ".join(f"*{name}*: {value}" for name, value in how.items()) + "."]


# --- which way to pay ----------------------------------------------------------------------------------------------------


def ways() -> list[str]:
    """One epsilon, three ways: what a person is told, and how many people may ask."""
    local, pane = read(LOCAL), read()
    near = {
        (row["method"], row["weight"]): row["error"]
        for row in part_rows(local, "fidelity")
        if row["data"] == "adult-boosting" and row["epsilon"] == 1.0
    }
    question = min((error, weight) for (method, weight), error in near.items() if method.startswith("statistics"))
    exact = min(
        row["error"]
        for row in part_rows(local, "fidelity")
        if row["data"] == "adult-boosting" and row["epsilon"] is None and row["method"] == "non-private"
    )
    mean = next(row["error"] for row in part_rows(local, "fidelity") if row["method"].startswith("predicting the mean"))
    return [
        "| way | what epsilon 1 buys on Adult | error near a person | people who may ask |",
        "|---|---|---|---|",
        f"| pane | everything: contributions, counterfactuals, curves, importance, rows | "
        f"{pane['headline']['local_fidelity']:.3f} | everybody, for ever |",
        f'| private rows alone (`fit(kind="rows")`) | contributions | '
        f"{near['private rows', 'default width']:.3f} | everybody |",
        f'| synopsis alone (`fit(kind="moments")`) | contributions, no model needed | '
        f"{near['synopsis, ball of 3', 'polynomial']:.3f} | everybody |",
        f"| per question (`statistics`, {question[1]}) | one person's contributions | {question[0]:.3f} | one |",
        f"| per question (`descent`) | one person's contributions | "
        f"{near['descent, one explanation', 'stable, c = 1']:.3f} | one |",
        f"| without privacy | sharpest kernel | {exact:.3f} | |",
        f"| nothing | the mean of the neighbours | {mean:.3f} | |",
    ]


def stream() -> list[str]:
    """A long stream of questions: the adaptive protocol beside paying for each."""
    names = {
        "non-adaptive (sound Algorithm 1)": "a descent for every question",
        "statistics, one release per query": "statistics for every question",
        "adaptive": "adaptive",
        "enhanced": "enhanced",
    }
    lines = ["| way | price factor | epsilon of the whole stream | mean excess loss |", "|---|---|---|---|"]
    for row in part_rows(read(LOCAL), "adaptive"):
        if row["method"] in names:
            factor = f"{row['price_factor']:g}" if "price_factor" in row else ""
            lines.append(
                f"| {names[row['method']]} | {factor} | {row['epsilon_spent']:.2f} | {row['mean_excess_loss']:.1e} |"
            )
    return lines


PAGE = """# Which way to pay

The tables are written by `tools/make_docs_tables.py` from `benchmarks/results`.

There are three ways to pay for explanations: once, for a *pane*; *per question*; and *adaptively*, where earlier answers
are used again. They differ in who may ask, when the budget is spent, and how good an answer is.

| | pane (`vt.release`) | per question | adaptive (`method="adaptive"`) |
|---|---|---|---|
| budget is spent | once, before anybody asks | with every new question | with every new kind of question |
| who may ask | anybody, any number of times | until the budget is gone | longer, if questions are alike |
| where | anywhere, without the data | where the data is | where the data is |
| what else it has | counterfactuals, curves, importance, rows | the one answer | the one answer |
| best for | people who ask why; publishing; applications | one question; a new model | streams |

## One epsilon, three ways

Adult, gradient boosting, epsilon 1 and delta 1e-6; mean squared error of an explanation on the 200 nearest real rows of a
person, outputs in [-1, 1]. Less is better.

{ways}

A pane explains well although it carries everything else too: the model is public and can be asked again on private rows,
so that a sharp kernel costs nothing, where noisy statistics of so few neighbours would drown. Its parts are noisier than
they would be alone: {local_ratio:.1f} times the excess loss of the synopsis, {pdp_ratio:.1f} and {ale_ratio:.1f} times the
squared error of partial dependence and of accumulated effects. Where only one of them is wanted, buy that one:
`vt.release(data, model, epsilon=1.0, parts=["local"])`.

## A long stream of questions

ACS, 1 500 questions to each of three parts of the rows, each at epsilon 0.01 if it were paid alone (times the price factor):

{stream}

Adaptive answers are worth it where questions are alike and come one at a time. A release that is paid once does better for
the same total as soon as there are more than a few people: see [one prediction](local.md).

## In short

- *People will ask, and you do not know how many*: a pane.
- *It must run elsewhere* (a branch, a phone, a reviewer's machine): a pane; embed the model if you may.
- *One question, about one model, now*: per question. Keep the rest of the budget.
- *A stream of similar questions, no budget up front*: adaptive; `method="history"` goes on when it is gone.
- *Several*: budgets compose. A pane for most of the budget, and single questions from what is left.
"""


def page() -> str:
    """docs/which_way.md."""
    return PAGE.format(ways="\n".join(ways()), stream="\n".join(stream()), **read()["headline"])
