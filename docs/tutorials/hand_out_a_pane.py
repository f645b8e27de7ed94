# %% [markdown]
# # Hand out a pane
#
# You have people's records and a model, and somebody else has the questions: a branch, a clinic, a regulator, the people themselves. Here
# you put all answers into one file, pay for it once, and give it away: the owner's side, the other side, and a try at getting records
# back out. It takes ten minutes, and needs no other library.
#
# The rows are the bundled census extract (UCI Adult, CC BY 4.0). They are public, so this page can show private answers next to the
# true ones. A bank trained on one third of the people, explains with another, and the last third are strangers.

# %%
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from skl2onnx import to_onnx
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import vitrail as vt

COLUMNS = [
    "age",
    "education",
    "occupation",
    "marital-status",
    "hours-per-week",
    "capital-gain",
]
people = pd.read_parquet(
    "../../examples/data/adult.parquet", columns=[*COLUMNS, "income"]
).sample(frac=1, random_state=0)
people = people.astype(dict.fromkeys(people.select_dtypes("number"), "float32"))
training, customers, strangers = (
    people[:10_000],
    people[10_000:20_000],
    people[20_000:30_000],
)
schema = vt.Schema(
    {
        name: column
        for name, column in vt.Schema.load(
            "../../examples/data/adult.schema.json"
        ).items()
        if name in people
    }
)

# %% [markdown]
# ## The owner: a model that can travel
#
# Whoever is to ask "why?" must be able to ask the model. An ONNX file runs anywhere and executes nothing of yours, and may lie in the pane.
# (It may also stay with whoever has it: `vt.Pane.load("loans.pane", model=...)`.)

# %%
codes = make_column_transformer(
    (
        OneHotEncoder(handle_unknown="ignore"),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
)
forest = make_pipeline(
    codes, RandomForestClassifier(20, max_depth=6, random_state=0)
).fit(training[COLUMNS], training["income"])

folder = Path(tempfile.mkdtemp())
graph = to_onnx(forest, training[COLUMNS].iloc[:1], options={"zipmap": False})
_ = (folder / "loans.onnx").write_bytes(graph.SerializeToString())
model = vt.Model(folder / "loans.onnx", output=">50K", name="loans")

# %% [markdown]
# ## The price, then the purchase
#
# The rows go into a *vault*; a *budget* is set once. A quote is free and reads no row: it says what one purchase of everything would tell.

# %%
data = vt.PrivateData(
    customers,
    schema,
    name="customers",
    target="income",
    n_rows_public=10_000,  # the round number you would put in a brochure
    budget=vt.Budget(epsilon=2.0, delta=1e-6),
    ledger="memory",  # public rows: the bill may go. Else: "sqlite:///ledger.db"
)
offer = vt.PaneExplainer(
    data, model, embed_model=True, version="2026-Q4", expires="2027-12-31"
)
data.quote(offer, epsilon=1.0).result.accuracy()

# %%
pane = offer(epsilon=1.0)
pane.save(folder / "loans.pane")
print(
    f"loans.pane: {(folder / 'loans.pane').stat().st_size / 1024:.0f} KiB.",
    f"Promise: {pane.guarantee}",
)
data.budget.bill()

# %% [markdown]
# Each line was charged before a row was read. There will be no further line, whoever asks, and however often: what is in the file is
# released already.
#
# ## The other side: a machine without data
#
# Another process, which has the file and nothing else. It loads neither the vault nor a ledger.

# %%
person = {
    "age": 38,
    "education": "HS-grad",
    "occupation": "Sales",
    "marital-status": "Divorced",
    "hours-per-week": 45,
    "capital-gain": 0,
}
elsewhere = """
import json, sys
import vitrail as vt

pane = vt.Pane.load("loans.pane", model="embedded")
answer = pane.explain(json.loads(sys.argv[1]))
answer.to_html("person.html")
for share in answer.explanation.top(3):
    band = f"({share.lower:+.3f} to {share.upper:+.3f})"
    print(f"{share.column} = {share.shown}: {share.value:+.3f} {band}")
print("would have changed it:", answer.counterfactuals.changes[0][0])
for room in ("vitrail.vault", "vitrail.ledger"):
    print(room, "was loaded:", room in sys.modules)
"""
told = subprocess.run(
    [sys.executable, "-c", elsewhere, json.dumps(person)],
    cwd=folder,
    capture_output=True,
    text=True,
    check=False,
)
print(told.stdout + told.stderr)

# %% [markdown]
# `person.html` is a page for that person, readable on a phone, in your words if you [give some](../page.md). The first thing on it is what
# the model says, then why, then what would have changed it. On the command line the same is `vitrail explain loans.pane person.json`, and
# `vitrail page loans.pane -o site/` makes [a page that answers in the reader's browser](../live.md).

# %%
pane.explain(person)

# %% [markdown]
# ## How near is it?
#
# The rows here are public, so we may look: the mean output over all 10 000 customers, had they all one value, without noise.

# %% picture: the pane's curves of age and of hours per week with their bands; the exact curves lie inside
figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
for ax, name in zip(axes, ("age", "hours-per-week"), strict=True):
    curve = pane.pdp[name]
    asked = [customers[COLUMNS].assign(**{name: x}) for x in curve.x]
    exact = np.array([forest.predict_proba(rows)[:, 1].mean() for rows in asked])
    ax.fill_between(curve.x, curve.lower, curve.upper, alpha=0.3)
    ax.plot(curve.x, curve.y, label="from the pane")
    ax.plot(curve.x, exact, "k:", label="without noise")
    ax.set(xlabel=name)
    inside = (curve.lower <= exact) & (exact <= curve.upper)
    print(
        f"{name}: off by {np.abs(curve.y - exact).mean():.4f} on average,",
        f"inside the band at {inside.sum()} of {len(exact)} places",
    )
axes[0].set(ylabel="mean probability of >50K")
axes[0].legend()
figure.tight_layout()

# %% [markdown]
# ## Can the records be got back out?
#
# Explainers want background rows, and people have handed out samples of real ones for that. Suppose the recipient of either file wants to
# know whether somebody is a customer, and looks for the nearest row in it.

# %%
numbers = {
    name: column.high - column.low
    for name, column in schema.items()
    if isinstance(column, vt.Numeric)
}
levels = [name for name in COLUMNS if name not in numbers]
asked = pd.concat(
    [
        customers.sample(1000, random_state=1),
        strangers.sample(1000, random_state=1),
    ]
)[COLUMNS]
is_customer = np.repeat([True, False], 1000)


def nearness(rows):
    """For everybody asked about: minus the way to the nearest of the rows."""
    apart = sum(
        (asked[name].to_numpy()[:, None] != rows[name].to_numpy()).astype(float)
        for name in levels
    )
    for name, width in numbers.items():
        apart = (
            apart
            + np.abs(
                asked[name].to_numpy(float)[:, None] - rows[name].to_numpy(float)
            )
            / width
        )
    return -apart.min(axis=1)


handed_out = {
    "4 000 real customers": customers.sample(4000, random_state=2),
    "4 000 rows of the pane": pane.rows(4000),
}
pd.DataFrame(
    {
        name: {
            "area under the ROC curve": roc_auc_score(is_customer, nearness(rows))
        }
        for name, rows in handed_out.items()
    }
).round(3)

# %% [markdown]
# One half is a coin. This is one attack and proves nothing; the promise covers all of them, with any knowledge, for ever: whoever guesses
# whether one record was there gets from one half to at most

# %%
from scipy.stats import norm

print(
    f"{norm.cdf(pane.guarantee.mu / 2):.1%} right, with the best attack",
    f"that there can be at mu {pane.guarantee.mu:.3f}",
)

# %% [markdown]
# ## Next year's model
#
# Rows are about no model. The same file explains the next one, and nobody pays.

# %%
next_year = make_pipeline(
    codes, RandomForestClassifier(40, max_depth=8, random_state=1)
).fit(training[COLUMNS], training["income"])
spent = data.budget.spent_epsilon
later = pane.local(
    person,
    model=vt.Model(next_year, output=">50K", name="next year's"),
    bands=True,
)
print(
    [f"{share.column}: {share.value:+.3f}" for share in later.top(3)],
    "- charged:",
    data.budget.spent_epsilon - spent,
)

# %% [markdown]
# ## Before you send it
#
# - **The file may be public.** What the owner must not give away is the ledger, the rows, and `person.html` of other people.
# - **The model is another matter.** What it learned from *its* training rows is not covered by the pane's promise, and `embed_model=True`
#   hands the model out. [What is promised](../guarantees.md) says it in full.
# - **Hashes find damage, not forgery.** Where that matters, sign the file.
# - **One release, not one a week.** Every further release of the same people costs again: [releasing again when rows
#   change](../renew.md) says how much, and `vitrail show OLD.pane NEW.pane` where two differ by more than noise explains.
# - **Few people, many columns**: below a few thousand rows, or at an epsilon far below 1, small reasons drown; the page then says so.
#
# ## Where to read on
#
# | you want | here it is |
# |---|---|
# | the price of each part, and other parts | [the pane](../pane.md) |
# | a letter in your words and languages | [the page of a person](../page.md) |
# | questions from many analysts instead of a file | [a service](../serve.md) |
# | to know whether a pane is the right way to pay | [which way](../which_way.md) |
#
# [From shap](from_shap.ipynb) · [from DiCE](from_dice.ipynb) · [audit a claim](audit_a_claim.ipynb)
