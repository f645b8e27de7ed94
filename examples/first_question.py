"""The first question: how ages and incomes are spread, without showing anybody.

Run it with ``python examples/first_question.py``. Nothing is written; the bill ends with the program.
"""

from pathlib import Path

import vitrail as vt

DATA = Path(__file__).parent / "data"


def main() -> None:
    """Ask for two histograms and print what they say."""
    # The schema is public and comes from a code book, never from the rows.
    schema = vt.Schema.load(DATA / "adult.schema.json")
    data = vt.PrivateData(
        DATA / "adult.parquet",
        schema,
        name="adult",
        target="income",
        n_rows_public=30_000,  # declared: a round number that everybody may know
        budget=vt.Budget(epsilon=1.0, delta=1e-6),
        ledger="memory",  # public data: the bill may be forgotten
    )

    # A quote reads no row and costs nothing.
    from vitrail.explain.marginals import marginals_question

    print("Price tag:", data.quote(marginals_question(schema, ["age", "income"]), epsilon=0.1))

    found = vt.marginals(data, columns=["age", "income"], epsilon=0.1)
    print(f"Half of the people are {found.quantile('age', 0.5):.0f} or younger.")
    print(f"The mean age is {found.mean('age'):.1f}, noise within {1.96 * found.mean_sigma('age'):.1f} (95 %).")
    for level, share in zip(found.labels["income"], found.shares["income"], strict=True):
        print(f"Income {level}: {share:.1%}")
    print(f"Each count is within {found.half_width:.0f} of the true one with probability 95 %.")
    print("Promise:", found.guarantee)
    print(data.budget.bill().sentence)


if __name__ == "__main__":
    main()
