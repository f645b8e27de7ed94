"""A question of your own: hours worked per week, by sex, as one bounded sum.

Any function of one row with a bounded result can be summed in private. The proof that the bound holds is yours, and short;
the vault clips what does not obey it. Run it with ``python examples/own_function.py``.
"""

import math
from pathlib import Path

import numpy as np

import vitrail as vt

DATA = Path(__file__).parent / "data"
MOST_HOURS = 99


def hours_by_sex(block: vt.Block) -> np.ndarray:
    """(female hours, male hours, females, males) of every row, hours scaled to [0, 1]."""
    is_male = block.column("sex")  # the index of the level: Female 0, Male 1
    hours = block.column("hours-per-week") / MOST_HOURS
    sexes = np.stack([1 - is_male, is_male], axis=1)
    return np.concatenate([sexes * hours[:, None], sexes], axis=1)


def main() -> None:
    """Ask, and divide the noisy sums: a ratio of releases is post-processing."""
    data = vt.PrivateData(
        DATA / "adult.parquet",
        vt.Schema.load(DATA / "adult.schema.json"),
        name="adult",
        n_rows_public=30_000,
        budget=vt.Budget(epsilon=1.0, delta=1e-6),
        ledger="memory",  # public data: the bill may be forgotten
    )
    # One of the two sexes is 1, the other 0, so a row is (h, 1) with h <= 1 and zeros: its norm is at most sqrt(2).
    question = vt.BoundedSum(hours_by_sex, size=4, l2_bound=math.sqrt(2), key="hours by sex, version 1")
    release = data.ask(question, epsilon=0.1)
    hours, people = release.value[:2] * MOST_HOURS, release.value[2:]
    for sex, mean, count in zip(["Female", "Male"], hours / people, people, strict=True):
        # Noise of a ratio, to first order: that of the numerator and of the denominator, both over the count.
        noise = 1.96 * release.sigma * math.hypot(MOST_HOURS, mean) / count
        print(f"{sex}: {mean:.1f} hours per week, noise within {noise:.1f} (95 %)")
    print("Promise:", release.guarantee)

    again = data.ask(question, epsilon=0.1)
    print("Asked again: replayed from the ledger, free." if again.replayed else "Asked again: paid again.")


if __name__ == "__main__":
    main()
