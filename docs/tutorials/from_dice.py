# %% [markdown]
# # From DiCE
#
# You tell people what would have changed the answer, with [DiCE](https://interpret.ml/DiCE/): a model, a table, a few counterfactuals.
# Here you see whose records such answers can be, get them from private rows instead, and compare the two on the same people. It takes
# ten minutes.
#
# The rows are the bundled census extract (UCI Adult, CC BY 4.0). They are public, so this page can show private answers next to the
# true ones. A bank has trained a model, has 15 000 customers, and advises applicants who were refused.
#
# (DiCE declares xgboost and lightgbm, which it needs only for models of theirs. To run this page without them:
# `pip install --no-deps dice-ml==0.12 raiutils==0.4.2`, beside pandas, scikit-learn, jsonschema, requests and tqdm.)

# %%
import contextlib
import io
import warnings

import dice_ml
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import vitrail as vt

people = pd.read_parquet("../../examples/data/adult.parquet").sample(
    frac=1, random_state=0
)
training, customers, strangers = (
    people[:15_000],
    people[15_000:30_000],
    people[30_000:].drop(columns="income"),
)

codes = make_column_transformer(
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
    verbose_feature_names_out=False,
)
pipeline = make_pipeline(
    codes, RandomForestClassifier(20, max_depth=8, random_state=0)
)
pipeline.fit(training.drop(columns="income"), training["income"] == ">50K")

applicants = strangers[~pipeline.predict(strangers)].iloc[:5]

# %% [markdown]
# ## What you do today
#
# Give DiCE the customers and the model, and ask. Its method `kdtree` looks for the nearest rows that got the other answer.

# %%
table = customers.assign(
    income=pipeline.predict(customers.drop(columns="income")).astype(int)
)
known = dice_ml.Data(
    dataframe=table,
    continuous_features=list(applicants.select_dtypes("number")),
    outcome_name="income",
)
explainers = {
    method: dice_ml.Dice(
        known, dice_ml.Model(model=pipeline, backend="sklearn"), method=method
    )
    for method in ("kdtree", "genetic", "random")
}


def advice(method, **options):
    """DiCE's answers, a frame for each applicant, without its progress bars."""
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options |= {"random_seed": 0} if method == "random" else {}
        told = explainers[method].generate_counterfactuals(
            applicants, total_CFs=3, desired_class=1, verbose=False, **options
        )
    return [
        answers.final_cfs_df[list(applicants)]
        for answers in told.cf_examples_list
    ]


nearest = advice("kdtree")
pd.concat([applicants.iloc[[0]], nearest[0]], keys=["applicant", "advice"]).T

# %% [markdown]
# ## What it tells about the customers
#
# Look at the advice again: the numbers above the columns are places in the customers' table. Each of these answers *is* a customer, with
# everything that the bank knows of them.

# %%
rows = set(map(tuple, customers.drop(columns="income").to_numpy()))


def records(answers):
    """How many customers' whole records stand in the answers."""
    return len(
        {
            values
            for frame in answers
            for values in map(tuple, frame.to_numpy())
            if values in rows
        }
    )


print(
    f"{sum(map(len, nearest))} answers to {len(applicants)} applicants hand out",
    f"the whole records of {records(nearest)} customers.",
)

# %% [markdown]
# Applicants may be made up, so whoever can ask can harvest the table. The method `genetic` begins with such rows and ends with some of
# them; `random` draws values between the smallest and the largest that are in a column.
#
# ## What you get instead
#
# The customers go into a *vault*. Private rows are bought from it once: nobody's, made from noisy tables of pairs of columns, so that
# nobody can tell whether any one customer was there. That has a price, *epsilon*, taken from a *budget*. Everything after it is free.
#
# The schema says what is public (bounds, levels), and what advice makes sense: age goes up, sex and family are nobody's to change, and a
# degree has its years of education.

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
model = vt.Model(pipeline, output=True, name="loans")
pane = vt.release(data, model, parts=["rows"], epsilon=1.0)

# %% picture: a table of one applicant's values, before and after, with the changed cells marked
out = pane.counterfactual(applicants, desired_class=1, total_CFs=3)
out.plot(0)

# %% [markdown]
# The names are DiCE's, and so are the options. Advice that somebody can follow leaves capital gains out:

# %%
can_change = [
    "workclass",
    "education",
    "education-num",
    "occupation",
    "hours-per-week",
]
mine = pane.counterfactual(
    applicants, desired_class=1, total_CFs=3, features_to_vary=can_change
)
for place, answers in zip(applicants.index[:6], mine.changes, strict=False):
    told = [
        ", ".join(f"{column} {old} -> {new}" for column, old, new in changes)
        for changes in answers
    ]
    print(
        f"Applicant {place}:",
        " | ".join(told) or "nothing of this would have done",
    )

# %% [markdown]
# ## How near is it?
#
# The same applicants, the same model, any column, DiCE with the rows themselves. An answer is *near* that changes few columns, and
# *plausible* where some real customer who is accepted is much like it; the rows are public here, so we may look. The distance counts 1
# for another level and the share of the declared range for a number. (DiCE can be forbidden columns, by `features_to_vary`. That nobody
# gets younger or changes sex stands in our schema once.)

# %%
numbers = {
    name: column.high - column.low
    for name, column in schema.items()
    if isinstance(column, vt.Numeric)
}
levels = [name for name in applicants if name not in numbers]
accepted = customers[pipeline.predict(customers.drop(columns="income"))]
years = customers.groupby("education")["education-num"].first()


def far(answer):
    """How far it is from an answer to the nearest accepted customer."""
    apart = (accepted[levels] != answer[levels]).sum(axis=1)
    return (
        apart
        + sum(
            (accepted[name] - answer[name]).abs() / width
            for name, width in numbers.items()
        )
    ).min()


def impossible(before, answer):
    """Whether an answer changes what cannot change, or turns the clock back."""
    fixed = ["marital-status", "relationship", "race", "sex", "native-country"]
    return (before[fixed] != answer[fixed]).any() or answer["age"] < before["age"]


def measures(answers):
    told = [
        (before, answer)
        for (_, before), frame in zip(applicants.iterrows(), answers, strict=True)
        for _, answer in frame.iterrows()
    ]
    return {
        "applicants with an answer": sum(len(frame) > 0 for frame in answers),
        "answers": len(told),
        "changed columns": np.mean(
            [(before != answer).sum() for before, answer in told]
        ),
        "to the nearest customer": np.mean([far(answer) for _, answer in told]),
        "nobody can follow": np.mean(
            [impossible(before, answer) for before, answer in told]
        ),
        "degree without its years": np.mean(
            [
                years[answer["education"]] != answer["education-num"]
                for _, answer in told
            ]
        ),
        "customers handed out": records(answers),
    }


def frames(found):
    """Answers as DiCE gives them: a frame for each applicant."""
    return [
        pd.DataFrame([answer.row for answer in answers], columns=list(applicants))
        for answers in found.answers
    ]


pd.DataFrame(
    {
        "DiCE, kdtree": measures(nearest),
        "DiCE, genetic": measures(advice("genetic")),
        "DiCE, random": measures(advice("random")),
        "Vitrail": measures(frames(out)),
    }
).T.round(2)

# %% [markdown]
# DiCE's answers lie near customers because they *are* customers, or are put together from them. Private answers change less, keep what
# the schema says, and lie farther off: a capital gain is the smallest change that there is, and few people have one.
# (`plausibility_weight=` asks for answers that resemble more people; they change more.) Should a private answer ever equal some customer's
# record, it is by coincidence: without that customer it would, almost surely, have been the same. The noise is drawn afresh whenever this page is made, so the
# numbers move a little from run to run.
#
# ## The bill

# %%
data.budget.bill()

# %% [markdown]
# Advice for another thousand applicants, with other columns to change, or for next year's model, adds no line: the search asks the public
# model about private rows, and both are there already.
#
# ## Keep using DiCE
#
# DiCE takes private rows as its table. They are nobody's, so even `kdtree` hands out nobody.

# %%
stand_in = pane.background(15_000)
stand_in = stand_in.assign(income=pipeline.predict(stand_in).astype(int))
known = dice_ml.Data(
    dataframe=stand_in, continuous_features=list(numbers), outcome_name="income"
)
explainers["kdtree"] = dice_ml.Dice(
    known, dice_ml.Model(model=pipeline, backend="sklearn"), method="kdtree"
)
advised = advice("kdtree")
print(
    f"{sum(map(len, advised))} answers; {records(advised)} of them happen to be",
    "like a customer in all columns.",
)

# %% [markdown]
# ## What DiCE does better
#
# - **It needs no rows, if you want.** `dice_ml.Data(features=...)` takes ranges and levels alone. Nothing of the rows is told then, and
#   answers know nothing of what people are like.
# - **More methods, more models**: gradients through TensorFlow and PyTorch, diversity as a goal of its own, importances from answers.
# - **It is exact.** Where the rows are public, a real person's row is the most plausible answer there is.
# - **The promise is about the customers.** The pipeline was trained on other people without privacy, and what it learned by heart, every
#   answer of it may tell, DiCE's and ours. [What is promised](../guarantees.md) says it in full.
#
# ## Where to read on
#
# | you used | here it is |
# |---|---|
# | `dice_ml.Data(dataframe=rows, ...)` | `vt.PrivateData(rows, schema, ...)`, and `vt.release` once |
# | `exp.generate_counterfactuals(X, total_CFs=3, desired_class="opposite")` | `pane.counterfactual(X, total_CFs=3, desired_class="opposite")` |
# | `features_to_vary=`, `permitted_range=` | the same; what holds for everybody stands in the schema: `change="up"`, `vt.Link` |
# | `desired_range=` for numbers | `desired=(low, high)` |
# | `proximity_weight=`, `diversity_weight=` | `plausibility_weight=`; answers change different columns by themselves |
# | `cf_examples_list[0].final_cfs_df` | `out.answers[0]`, `out.changes[0]`, `pd.DataFrame(out.frame())` |
#
# [What would have changed the answer](../counterfactual.md) · [hand out a pane](hand_out_a_pane.ipynb) · [from shap](from_shap.ipynb)
