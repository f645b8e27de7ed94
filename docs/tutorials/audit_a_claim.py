# %% [markdown]
# # Audit a claim
#
# Somebody shows you an explanation and a sentence: *(epsilon = 1)-differentially private*. You cannot see that it is, and neither can
# they: a wrong bound looks like a right one. Here you play the adversary, in four settings: a function that can be run often, one whose
# weak spot must be looked for, a model that was trained once, and a whole explainer of Vitrail's. It takes ten minutes. Nothing is charged,
# no ledger is opened.
#
# The rows are the bundled census extract (UCI Adult, CC BY 4.0).

# %%
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import vitrail as vt

everybody = pd.read_parquet("../../examples/data/adult.parquet").sample(
    frac=1, random_state=0
)
training, people = (
    everybody[:10_000],
    everybody[10_000:10_500].drop(columns="income"),
)


def trained(rows, **options):
    codes = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder="passthrough",
    )
    return make_pipeline(
        codes, RandomForestClassifier(random_state=0, **options)
    ).fit(rows.drop(columns="income"), rows["income"])


forest = trained(training, n_estimators=20, max_depth=6)
generator = np.random.default_rng()  # of made-up mechanisms: it protects nobody

# The claim: pure epsilon.
EPSILON_1 = vt.Guarantee(epsilon=1.0, delta=0.0, mu=0.0)

# %% [markdown]
# ## 1. A function that can be run often
#
# A vendor's curve: what the model would say, had everybody a given age, at twenty ages. "An output lies in [0, 1], so one person moves a sum
# by at most 1, so Laplace noise of scale 1 gives epsilon 1."

# %%
AGES = np.arange(20, 80, 3)
by_age = [forest.predict_proba(people.assign(age=age))[:, 1] for age in AGES]
outputs = np.stack(by_age, axis=1)  # (people, ages)


def vendors_curve(rows, draws, scale=1.0):
    """The curve, drawn many times, on a grid, so that no digit tells anything."""
    noisy = rows.sum(axis=0) + generator.laplace(0, scale, (draws, len(AGES)))
    return np.round(noisy * 1024) / 1024


neighbours = outputs, outputs[1:]  # with and without one person
audit = vt.audit.mechanism(
    vendors_curve, neighbours, claimed=EPSILON_1, draws=50_000
)
print(audit.summary())

# %% picture: the trade-off of the two errors of an adversary, far below what the claim allows
audit.plot()

# %% [markdown]
# One half of the draws taught the auditor how to tell the two tables apart, the other half counted how often that works, with exact
# confidence. A person is in *all twenty* numbers: the claim forgot to add them up. With noise for twenty,

# %%
repaired = vt.audit.mechanism(
    lambda rows, draws: vendors_curve(rows, draws, scale=len(AGES)),
    neighbours,
    claimed=EPSILON_1,
    draws=50_000,
)
print(repaired.summary())

# %% [markdown]
# *Not refuted* is all that an audit can say. A tightness far below 1 hints at waste (twenty Laplace noises add up more kindly than their
# epsilons do), or at neighbours that are too easy.
#
# ## 2. Where is the weak spot?
#
# A bound is broken by the person whom nobody thought of. Here capital gains are counted in thousands, "which are below 50". A search explores
# many pairs of tables, and tests the one that looked worst on fresh draws.


# %%
def vendors_total(gains, draws):
    noisy = np.sum(gains) + generator.laplace(0, 50.0, draws)
    return np.round(noisy * 1024) / 1024


town = [0.0, 0.0, 7.298, 15.024]
candidates = [([*town, gain], town) for gain in (0.0, 5.178, 27.828, 99.999)]
search = vt.audit.search(
    vendors_total, candidates, claimed=EPSILON_1, draws=100_000
)
print(search.summary())

# %% [markdown]
# The last candidate is somebody with the largest gain that the form allows. Whoever clips before adding has no such neighbours.
#
# ## 3. A model that was trained once
#
# A model cannot be trained fifty thousand times. One training run is enough, with many *canaries*: a thousand made-up people, each put into
# the training data by the toss of a coin. Whoever guesses the coins from the model alone refutes its claim. First a random forest,
# trained with "enough trees that nobody stands out":

# %%
canaries = everybody[20_000:21_000].copy()
other = {">50K": "<=50K", "<=50K": ">50K"}  # unusual, to be noticed
canaries["income"] = canaries["income"].map(other).astype(str)
coins = generator.integers(0, 2, len(canaries)).astype(bool)
rows = pd.concat([training[:3000], canaries[coins]])


def belief(model):
    """How sure a model is of the canaries' labels: surer of those it has seen."""
    told = pd.DataFrame(
        model.predict_proba(canaries.drop(columns="income")),
        columns=model.classes_,
    )
    return np.where(canaries["income"] == ">50K", told[">50K"], told["<=50K"])


print(
    vt.audit.one_run(
        belief(trained(rows, n_estimators=100)), coins, claimed=EPSILON_1
    ).summary()
)

# %% [markdown]
# And InterpretML's private EBM, which promises epsilon 1 at delta 1e-6 for good reasons:

# %%
from interpret.privacy import DPExplainableBoostingClassifier

schema = vt.Schema.load("../../examples/data/adult.schema.json")
numbers = {
    name: (column.low, column.high)
    for name, column in schema.items()
    if isinstance(column, vt.Numeric)
}
kinds = [
    "continuous" if name in numbers else "nominal" for name in rows.columns[:-1]
]
private = DPExplainableBoostingClassifier(
    feature_types=kinds, privacy_bounds=numbers, epsilon=1.0, delta=1e-6
)
private.fit(rows.drop(columns="income"), rows["income"])
print(
    vt.audit.one_run(
        belief(private),
        coins,
        claimed=vt.Guarantee(epsilon=1.0, delta=1e-6, mu=0.0),
    ).summary()
)

# %% [markdown]
# That proves little: an additive model hardly shows single people, so such canaries would say nothing about a broken one either. *What*
# is planted, and who scores it, decide how much an audit can see.
#
# ## 4. A whole explainer
#
# An explainer of Vitrail's is a conversation of several questions, each planned from the answers before it. `vt.audit.explainer` holds the
# whole of it many times, with rows of yours and with a neighbour of them, and shows every released number to the adversary. The
# data behind it may be nobody's: it lends its public facts only. Our claim is Gaussian, and so is the test: a mu.

# %%
ages = vt.Schema({"age": vt.Numeric(17, 90, integer=True)})
nobody = vt.PrivateData(
    {"age": []},
    ages,
    name="nobody",
    n_rows_public=3,
    budget=vt.Budget(9, 1e-6),
    ledger="memory",
)
audit = vt.audit.explainer(
    vt.MarginalsExplainer(nobody, bins=5),
    {"age": [30, 40, 50]},
    {"age": [30, 40, 50, 90]},
    mu=2.0,
    draws=1000,
)
print(audit.summary())

# %% [markdown]
# Measured is a good part of what is claimed: nearly all that was paid for is used. (A thousand draws say it roughly; the tests of this
# project run every explainer through this, on worst-case neighbours.)
#
# ## On the command line
#
# Each of these has one, and ends with exit code 1 where a claim is refuted:
#
# ```
# vitrail audit mechanism my_code:vendors_curve --neighbours my_code:PAIR --epsilon 1 -o audit.html
# vitrail audit membership members.csv nonmembers.csv --label label --probability p -o audit.html
# ```
#
# ## What an audit cannot do
#
# - **Confirm.** Other neighbours, other adversaries, more draws may find what this one did not. A promise is proved, beside the code, and
#   audited as well.
# - **See the clock.** Time, memory and files are not listened to. Exceptions, warnings and log lines are: `vt.audit.escapes`.
# - **Judge what was not claimed.** Whether an unprotected explainer gives members away is asked by `vt.audit.membership`, whether it gives
#   rows away by `vt.audit.reconstruction`, and whether it gives the model away by `vt.audit.extraction`.
#
# ## Where to read on
#
# [What explanations leak](../audit.md) · [what is promised](../guarantees.md) · [errata of the papers](../errata.md) ·
# [from OpenDP or Tumult](from_opendp.ipynb)
