# %% [markdown]
# # From shap
#
# You explain models with [shap](https://shap.readthedocs.io): a model, some background rows, one bar for each column. Here you do the
# same where the background rows are people's records. You will see what shap tells about them, buy the same bars once under
# differential privacy, compare the two, and read the bill. It takes ten minutes.
#
# The rows are the bundled census extract (UCI Adult, CC BY 4.0). They are public, so this page can show private answers next to the
# true ones. A bank has trained a model on one half of its customers, and explains it with the other half.

# %%
import numpy as np
import pandas as pd
import shap
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import vitrail as vt

people = pd.read_parquet("../../examples/data/adult.parquet").sample(
    frac=1, random_state=0
)
training, customers = people[:15_000], people[15_000:30_000]

codes = make_column_transformer(
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
pipeline = make_pipeline(
    codes, RandomForestClassifier(20, max_depth=6, random_state=0)
)
_ = pipeline.fit(training.drop(columns="income"), training["income"])

# %% [markdown]
# ## What you do today
#
# A hundred rows as background, a tree explainer, a waterfall for one person.

# %% picture: shap's waterfall plot for one person, one bar for each column
rows = codes.transform(customers.drop(columns="income"))
trees = pipeline[-1]


def reasons(background, asked):
    """shap's values of the probability of >50K, against all of these rows."""
    masker = shap.maskers.Independent(background, max_samples=len(background))
    return shap.TreeExplainer(trees, masker, model_output="probability")(asked)[
        :, :, 1
    ]


asked = rows.iloc[:12]  # the first twelve customers ask
background = rows.iloc[100:200]
usual = reasons(background, asked)
shap.plots.waterfall(usual[0], max_display=8)

# %% [markdown]
# ## What it tells about the background
#
# Shapley values are *means over background rows*, exact to the last digit. Whoever has the explanation of one question twice, once
# before and once after a single customer left the background, subtracts, and holds the values of that customer alone.

# %%
without = background.iloc[1:]  # one customer has left
question = asked.iloc[[0]]
before, after = reasons(background, question), reasons(without, question)

alone = len(background) * before.values[0] - len(without) * after.values[0]
score = (
    len(background) * before.base_values[0] - len(without) * after.base_values[0]
)

truth = trees.predict_proba(background.iloc[[0]])[0, 1]
print(
    f"The score of the customer who left, from two explanations: {score:.6f};",
    f"the true one: {truth:.6f}",
)

same = [
    name
    for name, value in zip(rows.columns, alone, strict=True)
    if abs(value) < 1e-9
]
print(
    "Their value is, to the model, that of the person who asked, in:",
    ", ".join(same),
)
print(
    "It really is the same in:",
    ", ".join(
        name
        for name in rows
        if (question[name].iloc[0] == background[name].iloc[0])
    ),
)

# %% [markdown]
# The score comes out digit by digit, and column by column one learns where the two people agree; a few questions from made-up people
# read the record out. No rounding repairs that for good, and the plots that shap is loved for (beeswarms, dependence plots) draw every
# background row as a dot.
#
# ## What you get instead
#
# The rows go into a *vault*. Whatever leaves it carries noise whose size is fixed beforehand, so that nobody can tell whether any one
# customer was there. That has a price, *epsilon*, taken from a *budget* that the owner sets once. The schema says what is public: the
# bounds and levels that a column may have.

# %%
schema = vt.Schema.load("../../examples/data/adult.schema.json")
data = vt.PrivateData(
    customers,
    schema,
    name="customers",
    target="income",
    n_rows_public=15_000,  # the round number you would put in a brochure
    budget=vt.Budget(epsilon=2.0, delta=1e-6),
    ledger="memory",  # public rows: the bill may go. Else: "sqlite:///ledger.db"
)
model = vt.Model(pipeline, output=">50K", name="income model")

offer = vt.PaneExplainer(data, model, parts=["rows", "reasons"])
data.quote(offer, epsilon=1.0)

# %% [markdown]
# That was the price tag, and it was free. (The band is that of a head count: so many of the 15 000 customers, more or less.) Now buy. What comes back is a *pane*: private rows that play the background, and a
# correction that was measured on the real ones. It holds released numbers only, so from here on explaining is free, for anybody.

# %%
pane = offer(epsilon=1.0)
e = pane.local(customers.drop(columns="income").iloc[:12], bands=True)
e

# %% [markdown]
# The thin lines are *bands*: 95 % of the time, what you would see without noise lies inside. Bars that may be noise alone are pale. The
# values add up to the model's output, as shap's do. And your pictures stay what they are, because the result is a shap
# `Explanation`, too:

# %% picture: shap's waterfall plot of the private values for the same person
shap.plots.waterfall(e.to_shap()[0], max_display=8)

# %% [markdown]
# ## How near is it?
#
# The rows here are public, so we may look. The truth is shap on *all* customers as background; a hundred of them are an estimate of it,
# too, with an error that one rarely looks at.

# %% picture: two scatter plots against shap on all customers: shap with a hundred background rows, and the private values
import matplotlib.pyplot as plt

order = [list(rows.columns).index(name) for name in e.columns]
exact = reasons(rows, asked).values[:, order]
hundred = usual.values[:, order]

figure, axes = plt.subplots(1, 2, figsize=(8, 3.8), sharex=True, sharey=True)
for ax, values, title in zip(
    axes,
    (hundred, e.values),
    ("shap, 100 real rows", "Vitrail, epsilon 1"),
    strict=True,
):
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.plot(exact.ravel(), values.ravel(), ".", markersize=4)
    ax.set(title=title, xlabel="shap on all customers", ylabel="value")
figure.tight_layout()

# %%
inside = (e.lower <= exact) & (exact <= e.upper)
pd.DataFrame(
    {
        "mean error": [
            np.abs(hundred - exact).mean(),
            np.abs(e.values - exact).mean(),
        ],
        "same largest column": [
            (np.abs(values).argmax(1) == np.abs(exact).argmax(1)).mean()
            for values in (hundred, e.values)
        ],
        "inside its bands": ["has none", f"{inside.mean():.0%}"],
    },
    index=["shap, 100 real rows", "Vitrail, epsilon 1"],
).round(4)

# %% [markdown]
# The noise is drawn afresh whenever this page is made, so the numbers move a little from run to run; the picture does not. What you
# give up is of the size that you gave up already by taking a hundred rows instead of all.
#
# ## The bill

# %%
data.budget.bill()

# %% [markdown]
# Each line was charged *before* a row was read. Costs do not add up like prices in a shop: squares do, so two questions cost less than
# the sum of their epsilons. Explaining a thousand more people, next year's model, or one class after another adds no line:

# %%
spent = data.budget.spent_epsilon
pane.local(customers.drop(columns="income").iloc[12:40])
data.budget.spent_epsilon == spent

# %% [markdown]
# ## Keep using shap
#
# Whatever explainer you prefer takes private rows as its background. They are nobody's, and may be shown.

# %% picture: shap's beeswarm plot, with sampled private rows as background
stand_in = codes.transform(pane.background(200))
shap.plots.beeswarm(
    reasons(stand_in, asked), max_display=8, plot_size=(7, 3.5), show=False
)

# %% [markdown]
# ## What bands mean here, and what they do not
#
# - They hold the noise that was added, which rows were drawn, and what the private rows do not know about pairs of columns. What
#   *three and more* columns have in common is a guess. [How often they hold](../bands.md) was measured, explainer by explainer.
# - They say nothing about another draw of customers. Neither do shap's bars.
# - Where everything drowns, nothing is ranked: `e.verdict` says *clear*, *weak* or *mostly noise*.

# %%
e.verdict, e.certain(0)[:5]

# %% [markdown]
# ## What shap does better
#
# - **It is exact.** If the background rows are public, or never leave the room, use shap.
# - **It has more kinds of values**: interactions within one prediction, path-dependent trees, gradients of deep networks,
#   sentences and pictures by masking. Here there are interventional values, by column or by group of columns.
# - **Small data.** Below a few thousand rows, or at an epsilon far below 1, small bars are lost in noise here.
# - **The promise is about the background.** The pipeline above was trained on other customers without privacy, and what a model learned by
#   heart, every explanation of it may repeat. [What is promised](../guarantees.md) says it in full.
#
# ## Where to read on
#
# | you used | here it is |
# |---|---|
# | `shap.Explainer(model, background)(X)` | `pane.local(X, bands=True)` after one purchase; `vt.Shapley(data, model)(X, epsilon=...)` per question |
# | `shap.plots.bar` over many people | `vt.ShapImportance(data, model)(epsilon=...)` |
# | `shap.dependence_plot` | `vt.ShapDependence(data, model, columns=["age"])(epsilon=...)` |
# | `shap.sample(X, 100)` | `pane.background(100)` |
# | a waterfall for a customer | `pane.explain(person).to_html("person.html")` |
#
# [One prediction](../local.md) · [the pane](../pane.md) · [which way to pay](../which_way.md) · [hand out a pane](hand_out_a_pane.ipynb)
