# %% [markdown]
# # From InterpretML
#
# You train glass boxes with [InterpretML](https://interpret.ml): an EBM, one curve for each column, importances beside them. Here you
# see what the file of such a model tells about the people it was trained on, how InterpretML's own private EBM mends that, and how to
# explain the result on *other* people's records, with bands, in the same dashboard. It takes ten minutes.
#
# The rows are the bundled census extract (UCI Adult, CC BY 4.0). They are public, so this page can show private answers next to the
# true ones. A bank trains on one half of its customers and explains what the model does to the other half.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.metrics import roc_auc_score

import vitrail as vt

people = pd.read_parquet("../../examples/data/adult.parquet").sample(
    frac=1, random_state=0
)
training, customers = people[:15_000], people[15_000:30_000]
X, y = training.drop(columns="income"), training["income"]
X_customers, rich = (
    customers.drop(columns="income"),
    customers["income"] == ">50K",
)

# %% [markdown]
# ## What you do today
#
# Fit, and look at the curves. (`interpret.show` draws them in the browser; the numbers behind it are `data(...)`, and we draw those.)

# %% picture: the EBM's curve for age, a staircase of many small steps, above the histogram of ages that it keeps
settings = {
    "interactions": 0,
    "outer_bags": 1,
    "learning_rate": 0.05,
    "n_jobs": 1,
    "random_state": 0,
}
ebm = ExplainableBoostingClassifier(**settings).fit(X, y)
age = ebm.explain_global().data(0)

figure, (above, below) = plt.subplots(
    2, figsize=(6, 3.6), height_ratios=(3, 1), sharex=True
)
above.stairs(age["scores"], age["names"], baseline=None)
above.set(ylabel="log-odds")
below.stairs(
    age["density"]["scores"], age["density"]["names"], fill=True, color="0.7"
)
below.set(xlabel="age", ylabel="people")
figure.tight_layout()

# %% [markdown]
# ## What it tells about the people it was trained on
#
# The grey bars are *exact counts*, and they are in the model's file, column by column. Somebody asks to be deleted; next month's model is
# trained without them. Whoever has both files subtracts.

# %%
stayed, their_income = X.iloc[1:], y.iloc[1:]  # one customer has left
next_month = ExplainableBoostingClassifier(**settings).fit(stayed, their_income)

read = {}
for column, (name, before, after) in enumerate(
    zip(X, ebm.histogram_weights_, next_month.histogram_weights_, strict=True)
):
    (place,) = np.flatnonzero(before != after)  # the one bar that became shorter
    edges = ebm.histogram_edges_[column]
    if edges is None:  # levels: by their number, from 1 on
        read[name] = next(
            level
            for level, number in ebm.bins_[column][0].items()
            if number == place
        )
    else:  # a number, to the width of a bar
        low, high = ([-np.inf, *edges, np.inf][at] for at in (place, place + 1))
        read[name] = f"{low:.0f} to {high:.0f}"
pd.DataFrame({"read from two files": read, "the customer who left": X.iloc[0]})

# %% [markdown]
# That is the whole record, and no attack: it is one subtraction. The steps of the curve are means over people in the same way, only
# tangled; and the ends of the axis are the age of the oldest customer and the gain of the richest.
#
# ## InterpretML's own answer, and it is a good one
#
# `DPExplainableBoostingClassifier` adds noise to every step while it trains. The bounds and kinds of the columns must not come from the
# rows; a Vitrail schema has them.

# %%
from interpret.privacy import DPExplainableBoostingClassifier

schema = vt.Schema.load("../../examples/data/adult.schema.json")
numbers = {
    name: (column.low, column.high)
    for name, column in schema.items()
    if isinstance(column, vt.Numeric)
}


def private_ebm(epsilon):
    kinds = ["continuous" if name in numbers else "nominal" for name in X]
    made = DPExplainableBoostingClassifier(
        feature_types=kinds, privacy_bounds=numbers, epsilon=epsilon, delta=1e-6
    )
    return made.fit(X, y)


private = [private_ebm(epsilon) for epsilon in (0.1, 1.0, 1.0, 1.0)]
pd.DataFrame(
    {
        "area under the ROC curve": [
            roc_auc_score(rich, each.predict_proba(X_customers)[:, 1])
            for each in (ebm, *private)
        ]
    },
    index=["EBM", "DP-EBM, epsilon 0.1", *["DP-EBM, epsilon 1"] * 3],
).round(3)

# %% picture: the curves of age of three private EBMs at epsilon 1, of similar shape, each with its own steps, and no bands
figure, ax = plt.subplots(figsize=(6, 2.8))
for each in private[1:]:
    told = each.explain_global().data(0)
    ax.stairs(told["scores"], told["names"], baseline=None)
ax.set(xlabel="age", ylabel="log-odds")
figure.tight_layout()

# %% [markdown]
# Now the *model* is private: what it learned from the training rows is covered, whatever is done with it. Two things are still open.
# Which of these steps are noise, the picture does not say. And what the model does *among people who were not trained on* (the customers
# whose loans it decides), one sees only with their rows: shares, effects on probabilities, what matters here.
#
# ## What Vitrail adds
#
# The customers go into a *vault*: whatever leaves it carries noise of a size that was fixed beforehand, has a price, *epsilon*, and is
# taken from a *budget*. The model may be any; here it is the private EBM, so that both halves of the people are covered.

# %%
data = vt.PrivateData(
    customers,
    schema,
    name="customers",
    target="income",
    n_rows_public=15_000,  # the round number you would put in a brochure
    budget=vt.Budget(epsilon=2.0, delta=1e-6),
    ledger="memory",  # public rows: the bill may go. Else: "sqlite:///ledger.db"
)
model = vt.Model(private[1], output=">50K", name="income model")

explain = vt.GlobalReport(
    data,
    model,
    columns=["age", "education-num", "hours-per-week", "marital-status"],
    parts=["pdp", "importance"],
)
print("Before paying:", data.quote(explain, epsilon=1.0))

# %%
report = explain(epsilon=1.0)
report.importance.order, report.verdicts

# %% [markdown]
# ## How near is it?
#
# The rows here are public, so we may look: the mean output over all 15 000 customers, had they all one age, without noise.

# %% picture: the private curve of age with its band, and the exact one, which cannot be told from it
curve = report.pdp["age"]
exact = np.array(
    [
        private[1].predict_proba(X_customers.assign(age=int(age)))[:, 1].mean()
        for age in curve.x
    ]
)

figure, ax = plt.subplots(figsize=(6, 3))
ax.fill_between(curve.x, curve.lower, curve.upper, alpha=0.3, label="95 % band")
ax.plot(curve.x, curve.y, label="Vitrail, epsilon 1")
ax.plot(curve.x, exact, "k:", label="without noise")
ax.set(xlabel="age", ylabel="mean probability of >50K")
ax.legend()
figure.tight_layout()

# %%
inside = (curve.lower <= exact) & (exact <= curve.upper)
print(
    f"From end to end the exact curve moves by {np.ptp(exact):.3f};",
    f"the private one is off by {np.abs(curve.y - exact).mean():.4f} on average.",
)
print(f"The exact one is inside the band at {inside.sum()} of {len(exact)} ages.")

# %% [markdown]
# The noise is drawn afresh whenever this page is made, so the numbers move a little from run to run.
#
# ## In your dashboard
#
# `to_interpret()` makes InterpretML's own explanation of a report, a curve, a ranking, or of the reasons for one person. What `show`
# draws has its bands, and the histogram below it is a released one.

# %%
explanation = report.to_interpret()
print(explanation.selector)

# What show(explanation) draws, and where its band begins.
(
    explanation.visualize(0).__class__,
    explanation.data(0)["upper_bounds"][:3].round(3),
)

# %% [markdown]
# ## The bill

# %%
data.budget.bill()

# %% [markdown]
# There are two promises here, and nobody is in both halves: epsilon 1 for the people the model was *trained* on, from InterpretML, and
# what the bill says for those it was *explained* with. Had both been the same people, the two would add up, roughly.
#
# ## What InterpretML does better
#
# - **A private model.** A DP-EBM is one, trained in seconds, and a better protection than explaining an unprotected model
#   privately. Vitrail's own [model that explains itself](../locally_linear.md) is the alternative; which of the two is more accurate
#   depends on the table, and [is measured](../papers/locally_linear.md).
# - **Exactness by construction.** An EBM's curves *are* the model. Partial dependence of another model is a summary of it.
# - **The dashboard**, interactions (`FAST`), editing of terms, monotone curves, export. Vitrail draws pages and hands you objects.
# - **Without secrets**, use InterpretML as it is: nothing here is needed.
#
# ## Where to read on
#
# | you used | here it is |
# |---|---|
# | `DPExplainableBoostingClassifier` | keep it; or `vt.LocallyLinearClassifier(data).fit(epsilon=...)` |
# | `ebm.explain_global()` | `vt.GlobalReport(data, model)(epsilon=...).to_interpret()` |
# | `PartialDependence(model, X)` of `interpret.blackbox` | `vt.PartialDependence(data, model)(epsilon=...)["age"]` |
# | `ShapKernel(model, X).explain_local(...)` | `pane.local(people, bands=True).to_interpret()` after one purchase |
# | `LimeTabular(model, X)` | `vt.LocalLinear(data, model)(person, epsilon=...)` |
#
# [The whole model](../global.md) · [a model that explains itself](../locally_linear.md) · [hand out a pane](hand_out_a_pane.ipynb)
