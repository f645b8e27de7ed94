# %% [markdown]
# # Texts and pictures
#
# You explain classifiers of texts or pictures: red words, heat maps. Here the texts and the pictures behind the explanation are private.
# You will see what a vocabulary and a mean picture tell, colour words and regions privately, and learn which question to ask when there
# are only two thousand pictures. It takes ten minutes.
#
# The reviews are invented, word by word, and the pictures are shoes of Fashion-MNIST (MIT licence), both from the folder `examples`. They
# stand in for what people wrote and photographed, so this page can show private answers next to the true ones.

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import vitrail as vt

sys.path.append("../../examples")
from explain_text import invented_reviews

texts, will_come_again = invented_reviews(12_000)
published, private = texts[:2000], texts[2000:]
private[:2]

# %% [markdown]
# ## What a vocabulary tells
#
# Before anything is explained, texts become columns, and where the columns come from the private texts, they tell. Here a guest writes
# a review; the vectorizer is fitted once with it and once without, as one does from month to month.

# %%
guest = "Anselm at the night desk was charming, the bathroom turned out shabby."
before, after = (
    TfidfVectorizer().fit([*private, guest]),
    TfidfVectorizer().fit(private),
)


def counts(vectorizer, documents):
    """In how many documents each word is: the weights say it exactly."""
    frequencies = (1 + documents) / np.exp(vectorizer.idf_ - 1) - 1
    return dict(
        zip(
            vectorizer.get_feature_names_out(),
            np.rint(frequencies).astype(int),
            strict=True,
        )
    )


with_guest, without = (
    counts(before, len(private) + 1),
    counts(after, len(private)),
)
print(
    "In the review that is gone:",
    *(
        word
        for word, count in with_guest.items()
        if count != without.get(word, 0)
    ),
)

# %% [markdown]
# The fitted vectorizer gave the review away, and the name of the night porter with it. Anything else that is a sum over texts (a linear
# surrogate, a mean, nearest examples) does the same, with more arithmetic.
#
# ## Words, privately
#
# The vocabulary comes from *public* texts: a word list, or as here, published reviews. The private ones go into a *vault*. Whatever leaves
# it carries noise of a size that was fixed beforehand, has a price, *epsilon*, and is taken from a *budget*. What is bought are Shapley
# values: what each word adds to the output, on average over the private reviews, when it takes the place of what those have.

# %%
words = vt.BagOfWords.of_public_texts(
    published, 500, leave_out=["the", "a", "and", "was", "never"]
)
seen = np.stack(list(words.rows(published).values()), axis=1)
classifier = LogisticRegression(C=0.1, max_iter=500).fit(
    seen, will_come_again[:2000]
)


def probability(features):
    """The classifier's, the same to the last bit whatever rows are beside it."""
    return 1 / (
        1
        + np.exp(
            -(features * classifier.coef_[0]).sum(axis=1)
            - classifier.intercept_[0]
        )
    )


will_return = vt.Model(
    probability, inputs="features", range=(0, 1), name="will come again"
)


def reviews(epsilon):
    """The vault with the private reviews. With real ones, keep the ledger."""
    budget = vt.Budget(epsilon, 1e-6)
    return vt.PrivateData(
        words.rows(private),
        words.schema(),
        name="reviews",
        n_rows_public=10_000,
        budget=budget,
        ledger="memory",
    )


text = (
    "Helpful staff and a charming garden, "
    "but the room was noisy and the breakfast stale."
)
data = reviews(epsilon=1.0)
e = vt.Shapley(data, will_return)(words.rows(text), epsilon=0.5)
e.plot.text(text)

# %% [markdown]
# Red words raise the output, blue ones lower it, grey ones may be noise. Words that the text lacks contribute, too. The numbers, with
# their *bands* (95 % of the time, what you would see without noise lies inside):

# %%
for share in e.top(6):
    print(
        f"{share.column if share.shown == '1' else 'no ' + share.column:14}",
        f"{share.value:+.3f}  ({share.lower:+.3f} to {share.upper:+.3f})",
    )

# %% [markdown]
# ### How near is it?
#
# The reviews are made up, so we may look: the same explainer at epsilon 100, which promises nothing and has next to no noise.

# %%
bare = vt.Shapley(reviews(epsilon=100.0), will_return)(
    words.rows(text), epsilon=100.0
)
inside = (e.lower <= bare.values) & (bare.values <= e.upper)
print(
    f"A word moves the output by {np.abs(bare.values).mean():.3f} on average;",
    f"noise moved that by {np.abs(e.values - bare.values).mean():.4f}.",
)
print(
    f"Without noise {inside.sum()} of {inside.size} words lie inside their bands."
)

# %% [markdown]
# ## What a mean picture tells
#
# Pictures are explained against a background, or a mean. Two thousand shoes play people's photographs; one is taken out of the mean.

# %% picture: two mean shoes that look the same, and their difference times the number of pictures, which is one person's shoe, line for line
table = pq.read_table("../../examples/data/shoes.parquet")
images = np.frombuffer(
    b"".join(table["image"].to_pylist()), dtype=np.uint8
).reshape(-1, 28, 28)
kinds = np.array(table["kind"].to_pylist())
WHITE = 15

# Public ones, and those that play people's.
shown, photographs = images[:400], images[400:]

mean, a_month_later = photographs.mean(axis=0), photographs[1:].mean(axis=0)
taken_out = len(photographs) * mean - (len(photographs) - 1) * a_month_later

figure, axes = plt.subplots(1, 3, figsize=(6.5, 2.4))
for ax, picture, title in zip(
    axes,
    (mean, a_month_later, taken_out),
    ("the mean", "a month later", "subtracted"),
    strict=True,
):
    ax.imshow(picture, cmap="gray_r")
    ax.set(title=title, xticks=[], yticks=[])
figure.tight_layout()

# %% [markdown]
# ## Regions, privately
#
# Why is this a boot? Every pixel is a column, because the model needs them all. The explanation speaks of regions: here the patches of a
# public grid. Two ways to ask, at the same price: a line that imitates the model around the picture, which is LIME's question
# (`vt.LocalLinear`); or what each region adds to the output, all of its pixels together (`vt.Shapley`, with regions as groups).

# %%
network = LogisticRegression(C=0.01, max_iter=100).fit(
    shown.reshape(-1, 28 * 28) / WHITE, kinds[:400]
)
boot = shown[kinds[:400] == "ankle boot"][3]
is_boot = vt.Model(
    network, output="ankle boot", inputs="features", name="ankle boot"
)

view = vt.Picture((28, 28), patches=(4, 4), high=WHITE)
pixels, region = np.array(list(view.schema())), view.region_of_pixels.ravel()
patches = [
    vt.Group(name, pixels[region == number].tolist())
    for number, name in enumerate(view.view_schema())
]
grouped = vt.Schema(dict(view.schema()), rules=patches)


def album(epsilon, schema):
    """The vault with the private photographs."""
    budget = vt.Budget(epsilon, 1e-6)
    return vt.PrivateData(
        view.rows(photographs),
        schema,
        name="photographs",
        n_rows_public=2000,
        budget=budget,
        ledger="memory",
    )


line = vt.LocalLinear(album(1.0, view.schema()), is_boot, view=view)(
    view.rows(boot), epsilon=1.0
)
e = vt.Shapley(album(1.0, grouped), is_boot)(view.rows(boot), epsilon=1.0)
for name, result in {"a line around it": line, "Shapley values": e}.items():
    print(
        f"{name}: {result.verdict};",
        f"{len(result.certain())} of {len(result.columns)} regions stand out",
    )

# %% picture: a boot of 49 regions, red where a region speaks for a boot, blue where it speaks against
e.plot.image(view, image=boot)

# %% [markdown]
# The line needs noisy squares of all regions, and two thousand pictures are too few for that: the verdict says so, and nothing is ranked.
# Shapley values are one short mean for each region. (Superpixels of the *explained* picture may be regions, too:
# `vt.Picture.around(boot, 25)`. Never those of a private one.)
#
# ### How near is it?

# %%
bare = vt.Shapley(album(100.0, grouped), is_boot)(view.rows(boot), epsilon=100.0)
inside = (e.lower <= bare.values) & (bare.values <= e.upper)
print(
    "correlation with the heat map without noise:",
    np.corrcoef(e.values.ravel(), bare.values.ravel())[0, 1].round(3),
)
print(
    f"mean error {np.abs(e.values - bare.values).mean():.4f},",
    f"where regions matter by {np.abs(bare.values).mean():.4f};",
    f"{inside.sum()} of {inside.size} inside their bands",
)

# %% [markdown]
# The noise is drawn afresh whenever this page is made, so the numbers move a little from run to run.
#
# ## The bill

# %%
data.budget.bill()

# %% [markdown]
# This is paid *per question*: one more review, one more line here, until the budget is gone. (Asking the same again is free.) A few dozen
# words fit [a pane](hand_out_a_pane.ipynb), too, which is bought once for all reviews to come; hundreds of pixels do not.
#
# ## What lime, shap and captum do better
#
# - **They explain without other people's rows** where they only perturb the explained text or picture (LIME, integrated gradients). If the
#   model is public and that is the picture you want, nothing needs protection, and nothing here is better.
# - **Fine maps.** Thousands of pixels, sharp edges, deep layers. At any fair price, noise allows a few dozen regions.
# - **Word order, tokens, transformers.** Here a text is a bag of words from a public list.
# - **The promise is about the rows behind the explanation.** The classifiers were trained on published reviews and pictures; a model that
#   learned private ones by heart is not mended by explaining it privately ([what is promised](../guarantees.md)).
#
# ## Where to read on
#
# | you used | here it is |
# |---|---|
# | `CountVectorizer().fit(texts)` | `vt.BagOfWords.of_public_texts(published, 500)` |
# | `shap.Explainer(model, masker)([text])`, `shap.plots.text` | `vt.Shapley(data, model)(words.rows(text), epsilon=...)`, `e.plot.text(text)` |
# | `LimeTextExplainer().explain_instance(text, ...)` | `vt.LocalLinear(data, model, view=words)(words.rows(text), epsilon=...)` |
# | `shap.image_plot`, captum's heat maps | `e.plot.image(view, image=...)` |
# | one map a class | `vt.LocalClasses(data, models, view=view)`: one price for all of them |
#
# [Texts and pictures, in full](../text_and_images.md) · [one prediction](../local.md) · [audit a claim](audit_a_claim.ipynb)
