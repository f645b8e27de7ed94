# %% [markdown]
# # From OpenDP or Tumult
#
# You release counts and means with [OpenDP](https://docs.opendp.org) or [Tumult Analytics](https://docs.tmlt.dev), and know what epsilon
# costs. Then somebody asks why a model decides as it does, and the answer is made from the same rows. Here you see what an explanation
# tells when it is not a query like your others, write one as a query by hand, in OpenDP, and buy the same here. It takes ten minutes.
#
# The rows are the bundled census extract (UCI Adult, CC BY 4.0). They are public, so this page can show private answers next to the
# true ones. A model was trained on one half of the people; the other half is private.

# %%
import matplotlib.pyplot as plt
import numpy as np
import opendp.prelude as dp
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import vitrail as vt

dp.enable_features("contrib")

everybody = pd.read_parquet("../../examples/data/adult.parquet").sample(
    frac=1, random_state=0
)
training, people = everybody[:15_000], everybody[15_000:30_000]

codes = make_column_transformer(
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
)
forest = make_pipeline(
    codes, RandomForestClassifier(20, max_depth=6, random_state=0)
)
_ = forest.fit(training.drop(columns="income"), training["income"])

# %% [markdown]
# ## What you do today
#
# A context owns the rows and the budget; queries are composed, bounded and charged.

# %%
context = dp.Context.compositor(
    data=people["age"].astype(int).tolist(),
    privacy_unit=dp.unit_of(contributions=1),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=2,
)
count = context.query().count().laplace().release()
total = context.query().clamp((17, 90)).sum().laplace().release()
print(
    f"{count} people, {total / count:.2f} years old on average;",
    f"the true mean is {people['age'].mean():.2f}.",
)

# %% [markdown]
# ## The hole beside it
#
# Explanations of the model are rarely asked for that way. Here is the mean output, had everybody a given age (*partial dependence*, what
# scikit-learn draws), from the rows as they are, before and after one person has left.

# %%
AGES = np.arange(20, 80, 3)


def outputs(rows):
    """What the model says of each row at each age: an array (rows, ages)."""
    rows = rows.drop(columns="income")
    return np.stack(
        [forest.predict_proba(rows.assign(age=age))[:, 1] for age in AGES], axis=1
    )


each = outputs(people)
before, after = each.mean(axis=0), each[1:].mean(axis=0)

# Subtract: the curve of the one who left.
alone = len(people) * before - (len(people) - 1) * after

same = np.abs(outputs(people.iloc[:1])[0] - alone).max()
like = (np.abs(each - alone).max(axis=1) < 1e-6).sum()
print(
    f"Two curves give the curve of one person, to {same:.0e};",
    f"of all {len(people)} people, {like} have that curve.",
)

# %% [markdown]
# Two curves that look alike on any screen give away the model's whole opinion of one person, and with it, to whoever has the public model,
# much of the record. Counts that were released with all care stand beside it.
#
# ## The same as a query, by hand
#
# An explanation is a sum over rows, so it can be a query. A row contributes twenty numbers in [0, 1]; adding or removing one moves their
# sum by at most √20. That is all OpenDP needs. The model must look at each row alone, and that the numbers are in range is for you to see to.

# %%
EPSILON, DELTA = 0.1, 1e-6
space = (
    dp.vector_domain(dp.atom_domain(T=float, nan=False)),
    dp.l2_distance(T=float),
)


def gaussian(scale):
    return dp.c.make_fix_delta(
        dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale)), DELTA
    )


scale = dp.binary_search_param(
    gaussian, d_in=np.sqrt(len(AGES)), d_out=(EPSILON, DELTA)
)
noisy = gaussian(scale)(each.sum(axis=0).tolist())
by_hand = np.array(noisy) / 15_000  # the count, as declared in public

# %% [markdown]
# ## The same, bought here
#
# A *vault* plays the context: rows, public bounds (the schema), a budget, and a ledger that is charged before a row is read. An explainer
# plays the query.

# %%
data = vt.PrivateData(
    people,
    vt.Schema.load("../../examples/data/adult.schema.json"),
    name="people",
    target="income",
    n_rows_public=15_000,
    budget=vt.Budget(epsilon=1.0, delta=DELTA),
    ledger="memory",  # public rows: the bill may go. Else: "sqlite:///ledger.db"
)
model = vt.Model(forest, output=">50K", name="income model")
explain = vt.PartialDependence(data, model, columns=["age"])
print(data.quote(explain, epsilon=EPSILON))  # free

# %% picture: the exact curve of age, the noisy one by hand around it, and Vitrail's with its band, close to the exact one
curve = explain(epsilon=EPSILON)["age"]

figure, ax = plt.subplots(figsize=(6, 3.2))
ax.plot(AGES, by_hand, ".", color="tab:orange", label="by hand, in OpenDP")
ax.fill_between(curve.x, curve.lower, curve.upper, alpha=0.3)
ax.plot(curve.x, curve.y, label="Vitrail, with its 95 % band")
ax.plot(AGES, before, "k:", label="without noise")
ax.set(xlabel="age", ylabel="mean probability of >50K")
ax.legend()
figure.tight_layout()

# %%
ours = np.interp(AGES, curve.x, curve.y)
inside = (np.interp(AGES, curve.x, curve.lower) <= before) & (
    before <= np.interp(AGES, curve.x, curve.upper)
)
print(
    f"mean error at epsilon {EPSILON}:",
    f"by hand {np.abs(by_hand - before).mean():.4f},",
    f"here {np.abs(ours - before).mean():.4f}",
)
print(f"the exact curve is inside the band at {inside.sum()} of {len(AGES)} ages")
print(
    f"half-widths of 95 % bands: by hand ±{1.96 * scale / 15_000:.4f} for each age,",
    f"here ±{np.median(curve.upper - curve.lower) / 2:.4f} for the curve",
)

# %% [markdown]
# Both are honest at the same price. The difference is bought with public knowledge: part of the price goes to *private rows*, the public
# model is looked at along those, and the real rows are asked only for what that leaves open, with noise shaped like the answer. (You
# could smooth by hand, too; the band is then yours to work out.)
#
# The noise is drawn afresh whenever this page is made, so the numbers move from run to run. By hand every age errs on its own; here ages
# err together. So in one run of twenty or so many of them lie outside the band at once: that is what 95 % means, and this may be the one.
#
# ## The bill
#
# Costs are kept as Gaussian differential privacy: squares of mu add up, exactly, as rho does in zCDP (for a Gaussian, rho = mu² / 2).
# Reading epsilon off mu is exact too, where zCDP's conversion is an upper bound: for the noise above the two say

# %%
rho = dp.m.make_gaussian(*space, scale).map(np.sqrt(len(AGES)))
pd.Series(
    {
        "OpenDP, through zCDP": gaussian(scale).map(np.sqrt(len(AGES)))[0],
        "the same noise, as mu": vt.Guarantee.of_mu(
            np.sqrt(2 * rho), DELTA
        ).epsilon,
    },
    name=f"epsilon at delta {DELTA}",
).round(4)

# %%
data.budget.bill()

# %% [markdown]
# Whoever would rather trust another accountant exports the charges: `data.budget.to_dp_events()` makes Google's dp-accounting events
# ([exports](../exports.md)).
#
# ## Do not believe either
#
# The auditor plays the adversary on two neighbouring tables, against any callable: here OpenDP's measurement itself, on a sum with and
# without one person.

# %%
with_one, without = np.ones(2), np.zeros(2)
measurement = dp.m.make_gaussian(*space, 2.0)


def run(sums, draws):
    return np.array([measurement(sums.tolist()) for _ in range(draws)])


claim = vt.Guarantee.of_mu(np.sqrt(2) / 2.0, DELTA)
audit = vt.audit.mechanism(run, (with_one, without), claimed=claim, draws=20_000)
print(audit.verdict_line)

# %% [markdown]
# ## Word for word
#
# Tumult needs Java and Spark, so it is not run here; what it calls things, beside the other two:
#
# | OpenDP | Tumult Analytics | Vitrail |
# |---|---|---|
# | `dp.Context.compositor(data=...)` | `Session.from_dataframe(...)` | `vt.PrivateData(rows, schema, ...)` |
# | `privacy_unit=dp.unit_of(contributions=1)` | `protected_change=AddOneRow()` | `neighbours="add-remove"`, the default |
# | `unit_of(contributions=k)` | `AddMaxRows(k)` | `rows_per_person=k` |
# | identifiers, in Polars queries | `AddRowsWithID()`, `MaxRowsPerID` | `person="customer_id"`: everybody counts once |
# | `privacy_loss=dp.loss_of(epsilon=1.0)` | `PureDPBudget(1)`, `ApproxDPBudget`, `RhoZCDPBudget` | `vt.Budget(epsilon=1.0, delta=1e-6)`, kept in a ledger on disk |
# | `context.query().clamp(...).sum().laplace()` | `QueryBuilder("people").sum("age", 17, 90)` | `vt.BoundedSum(function, size, l2_bound)` |
# | `.release()` | `session.evaluate(query, budget)` | `data.ask(question, epsilon=...)`, `explainer(epsilon=...)` |
# | keys of a group-by | `KeySet` | levels in the schema |
# | `query.summarize(alpha=0.05)` | (read the noise information) | `data.quote(...)`, and bands on every result |
# | `context.remaining_privacy_loss()` | `session.remaining_privacy_budget` | `data.budget.bill()` |
# | asking the same again pays again | pays again | is replayed from the ledger, free |
#
# ## What OpenDP and Tumult do better
#
# - **Queries.** Group-bys, joins, quantiles, selections over many tables: theirs is a language, ours are explanations, histograms, and
#   bounded sums that you write.
# - **Pure epsilon and many noises.** Here almost everything is Gaussian; Laplace noise is there for sums of few numbers.
# - **Proofs, and scale.** OpenDP's library is vetted part by part, with proofs; Tumult (now an OpenDP project, too) runs on Spark as a
#   matter of course, with tables larger than were tried here.
# - **A function of yours** is as good as your bound there. Here it is clipped to the bound, and tried on public rows first; both trust that it
#   looks at one row at a time.
# - **No model, no explanation?** Then use them.
#
# ## Where to read on
#
# [A question of your own](../tutorial.md) · [what is promised](../guarantees.md) · [any explainer](../generic.md) ·
# [audit a claim](audit_a_claim.ipynb) · [hand out a pane](hand_out_a_pane.ipynb)
