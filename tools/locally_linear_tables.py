"""docs/papers/locally_linear.md from benchmarks/results/locally_linear.json: text here, every figure from the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from patel_tables import Row, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "locally_linear.json"

HELD_TO = {
    "mnist_eps2": ("MNIST, accuracy at epsilon 2, %", "at least 95.0, aim 96 (printed: 94.2)"),
    "mnist_eps0.5": ("MNIST, accuracy at epsilon 0.5, %", "at least 92.5, aim 94.2 (printed: 91.8)"),
    "fashion_eps2": ("Fashion-MNIST, accuracy at epsilon 2, %", "at least 84.5, aim 86 (printed: 83.2)"),
    "fashion_eps0.5": ("Fashion-MNIST, accuracy at epsilon 0.5, %", "at least 82.5, aim 84 (printed: 80.7)"),
    "adult_auc_eps1": ("Adult, AUC at epsilon 1", "at least 0.89"),
    "dpebm_auc_eps1": ("the same for DP-EBM", "beside it"),
    "mnist_seconds_gpu": ("one MNIST run on the GPU, seconds", "under 10"),
    "opacus_speedup": ("a step on the CPU, times faster than opacus", "at least 10"),
}

OPENING = """# Interpretable and Differentially Private Predictions, reproduced

Written by `tools/make_docs_tables.py` from `benchmarks/results/locally_linear.json`
(`python benchmarks/papers/locally_linear.py`).

Harder, Bauer and Park (AAAI 2020) give every class several linear maps, weighed by a softmax of themselves, and train them
with DP-SGD on random projections. The model and its bound are ours too ([how it works](../locally_linear.md)); what
differs is where the noise falls (smooth patterns instead of random projections), moved copies of a picture within one
clip, large batches, a cosine schedule, and an exact price. Settings were found on 50 000 / 10 000 of the training images
and fixed before the seeds were run. The aims were reached for MNIST at epsilon 2 only; the bars everywhere.
"""

EPSILONS = """## Accuracy and epsilon

Test accuracy in %, mean and standard deviation over the seeds; no epsilon is no privacy. Printed in the paper at epsilon 2
and 0.5: 94.2 and 91.8 on MNIST, 83.2 and 80.7 on Fashion-MNIST.
"""

PUBLISHED = """## As published

M = 30 maps, D' = 300, batch 500, 20 epochs, Adam at 0.001 losing a fifth every quarter, sigma 1.3. The paper says this is
epsilon 2 by the moments accountant; privacy loss distributions give what the table says, so its noise is larger than it
had to be. Its text has clip 0.001; with Adam the scale of the clip matters little as long as it is small, and 0.5 is used
here. It does not say how pixels were scaled: standardised, as in the example code it builds on, its figure is met; with
pixels in [0, 1] MNIST is lower.
"""

TABULAR = """In place of the Henan hospital data, which is not public. AUC on test rows. Counts and sums of
money, declared from 0 to 20 or more, enter as logarithms. Ours is ahead of DP-EBM on Adult and level with it on Diabetes
130, whose settings are Adult's and were not tuned. More maps than two bring nothing on either table."""

PICTURES = """## Figures

![accuracies](figures/maps_accuracy.png)

Figure 5: accuracy over epsilon, over maps per class and over waves per direction (our filters; the paper varies D'). Bars
are two standard deviations. More maps cost a private model little here: the clip is shared by all maps of a row.

![maps and privacy](figures/maps_trade_offs.png)

Figure 2: the two heaviest maps for two inputs. Random projections cost the maps their looks, as the paper says. So do
*our* settings on Fashion-MNIST, which were tuned for accuracy alone: weight spreads over many maps, and no single one
shows a boot.

![top maps](figures/maps_top.png)

Figure 3: the three heaviest maps with their weights, then their weighted average, trained on pixels without projection:
left without privacy, right at epsilon 2. One map has nearly all the weight.

![beside a network](figures/maps_network.png)

Figures 4 and 9: integrated gradients (not multiplied with the input) and SmoothGrad of a convolutional network, then the
weighted average map of a model without privacy, of one on pixels at epsilon 2, and of ours at epsilon 2.
"""


def shown(row: Row, measure: str = "accuracy", scale: float = 100, digits: int = 2) -> str:
    spread = row.get(f"{measure}_std")
    return f"{scale * row[measure]:.{digits}f}" + (f" ± {scale * spread:.{digits}f}" if spread is not None else "")


def epsilon_text(row: Row) -> str:
    return "none" if row["epsilon"] is None else f"{row['epsilon']:g}"


def of(rows: Sequence[Row], *parts: str) -> list[Row]:
    return [row for row in rows if row["part"] in parts]


def page() -> str:
    found = json.loads(RESULTS.read_text())
    rows: list[Row] = found["rows"]
    held = [(what, bar, found["headline"][key]) for key, (what, bar) in HELD_TO.items()]
    lines = [OPENING, *table(("figure", "held to", "measured"), held)]
    lines += ["How: " + "; ".join(f"*{name}*: {value}" for name, value in found["how"].items()) + ".", "", EPSILONS]
    by_epsilon = sorted(of(rows, "epsilon"), key=lambda row: (row["dataset"], row["epsilon"] or 99))
    lines += table(
        ("data", "epsilon", "accuracy", "seeds"), [(r["dataset"], epsilon_text(r), shown(r), r["seeds"]) for r in by_epsilon]
    )
    lines += [PUBLISHED]
    published = sorted(of(rows, "published"), key=lambda row: (row["dataset"], row["settings"]))
    lines += table(
        ("data", "settings", "epsilon by PLD", "accuracy", "seeds"),
        [(r["dataset"], r["settings"], epsilon_text(r), shown(r), r["seeds"]) for r in published],
    )
    lines += ["## Maps and sizes", "", "MNIST, our settings with one of them changed.", ""]
    changed = [(r, f"{r['n_maps']} maps") for r in of(rows, "maps")] + [
        (r, f"{r['filters']} waves") for r in of(rows, "size")
    ]
    lines += table(
        ("changed", "epsilon", "accuracy", "seeds"), [(word, epsilon_text(r), shown(r), r["seeds"]) for r, word in changed]
    )
    lines += ["The paper's settings with pixels in [0, 1] and another D':", ""]
    widths = of(rows, "width")
    lines += table(
        ("D'", "epsilon", "accuracy", "seeds"), [(r["width"], epsilon_text(r), shown(r), r["seeds"]) for r in widths]
    )
    lines += ["## Tables", "", TABULAR, ""]
    lines += table(
        ("data", "method", "maps", "epsilon", "AUC", "seeds"),
        [
            (r["dataset"], r["method"], r.get("n_maps", ""), epsilon_text(r), shown(r, "auc", 1, 4), r["seeds"])
            for r in of(rows, "tabular")
        ],
    )
    return "\n".join([*lines, PICTURES]).rstrip() + "\n"
