"""Which words make a review a good one? Texts explained word by word, from private texts.

Run it with ``python examples/explain_text.py``. The reviews are invented below, word by word, and stand in for private ones.
For texts of your own: ``--data reviews.parquet --text text --label label --rows 20000``, labels 0 and 1, the number of
private rows as you declare it. The first sixth plays the public texts; ``--vocabulary words.txt`` gives a public word list.
``--page words.html`` saves the highlighted text.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from sklearn.linear_model import LogisticRegression

import vitrail as vt

GOOD = ("friendly", "clean", "quiet", "delicious", "charming", "helpful", "spotless", "cosy")
BAD = ("rude", "dirty", "noisy", "stale", "shabby", "slow", "cramped", "overpriced")
THINGS = ("room", "staff", "breakfast", "garden", "bathroom", "lobby", "dinner", "bed")
TURNS = ("was", "seemed", "turned out", "was never less than")
EXPLAINED = "Helpful staff and a charming garden, but the room was noisy and the breakfast stale."


def invented_reviews(count: int) -> tuple[list[str], np.ndarray]:
    """Reviews of hotels that do not exist, and whether the guest would come again."""
    generator = np.random.default_rng(0)
    texts, again = [], []
    for _ in range(count):
        mood = generator.random()
        said = [GOOD if generator.random() < mood else BAD for _ in range(generator.integers(2, 6))]
        parts = [f"the {generator.choice(THINGS)} {generator.choice(TURNS)} {generator.choice(words)}" for words in said]
        texts.append((", ".join(parts) + ".").capitalize())
        again.append(sum(1 if words is GOOD else -1 for words in said) + generator.normal() > 0)
    return texts, np.array(again, dtype=int)


def main() -> None:
    """Train a model on public texts, explain a review from the private ones."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="a Parquet file with a column of texts and one of labels 0 and 1")
    parser.add_argument("--text", default="text", help="the name of the column of texts")
    parser.add_argument("--label", default="label", help="the name of the column of labels")
    parser.add_argument("--rows", type=int, default=20_000, help="how many private rows there are: declared, not counted")
    parser.add_argument("--vocabulary", help="a text file with a public word per line")
    parser.add_argument("--explain", default=EXPLAINED, help="the public text to explain")
    parser.add_argument("--page", help="where to save the highlighted text, such as words.html")
    arguments = parser.parse_args()

    if arguments.data:
        table = pq.read_table(arguments.data, columns=[arguments.text, arguments.label])
        order = np.random.default_rng(0).permutation(len(table))
        texts, labels = table[arguments.text].take(order).to_pylist(), np.asarray(table[arguments.label])[order]
    else:
        texts, labels = invented_reviews(24_000)
    n_public = len(texts) // 6  # so many play the public ones
    if arguments.vocabulary:
        words = vt.BagOfWords(Path(arguments.vocabulary).read_text(encoding="utf-8").split())
    else:
        words = vt.BagOfWords.of_public_texts(texts[:n_public], 500, leave_out=["the", "a", "and", "was", "never"])

    public = np.stack(list(words.rows(texts[:n_public]).values()), axis=1)
    classifier = LogisticRegression(C=0.1, max_iter=500).fit(public, labels[:n_public])
    data = vt.PrivateData(
        words.rows(texts[n_public:]),
        words.schema(),
        name="reviews",
        n_rows_public=arguments.rows,
        budget=vt.Budget(epsilon=2.0, delta=1e-6),
        ledger="memory",  # public data: the bill may be forgotten
    )
    explain = vt.LocalLinear(data, vt.Model(classifier, inputs="features", name="will come again"), view=words)
    point = words.rows(arguments.explain)
    print("Price tag:", explain.quote(point, epsilon=1.0))
    e = explain(point, epsilon=1.0)
    print(f"\n{arguments.explain}\n")
    for one in e.top(8):
        if one.certain:
            print(
                f"  {'' if one.shown == '1' else 'no '}{one.column}: {one.value:+.3f} ({one.lower:+.3f} to {one.upper:+.3f})"
            )
    print(e.band_claim.sentence())
    print("\nPromise:", e.guarantee)
    if arguments.page:
        Path(arguments.page).write_text(str(e.plot.text(arguments.explain)), encoding="utf-8")


if __name__ == "__main__":
    main()
