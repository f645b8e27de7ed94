"""Figures 2 to 5, 8 and 9 of the paper, from the runs: maps and privacy, top maps, maps beside networks, accuracies. What
RUNS does not hold is not drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vitrail.show.images import draw_map
from vitrail.show.style import AMBER, GLASS, INK, RULE, SOFT, new_figure
from vitrail.vault import map_scores

SHAPE = (28, 28)
CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")
BETAS = {"published": {"mnist": 1 / 30, "fashion": 1.0}, "ours": {"mnist": 0.1, "fashion": 1 / 30}}
STANDARD = {"mnist": (0.1307, 0.3081), "fashion": (0.2860, 0.3530)}
"""Mean and deviation by which pixels were standardised for the runs as published."""

SHOWN = "2"
"""Epsilon of the private networks in Figure 8; the paper's is 1.19."""


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {key: file[key].astype(np.float64) for key in file.files}


def draw(runs: Path, rows: Sequence[dict[str, object]], out: Path) -> None:
    accuracies(rows, out / "maps_accuracy.png")
    private = {size: attributions(runs, size) for size in ("large", "small")}
    if all({"inf", SHOWN} <= own.keys() for own in private.values()):
        two_networks(private, out / "maps_two_networks.png")
    if not (runs / "maps.npz").exists():
        return
    maps = arrays(runs / "maps.npz")
    networks = {dataset: arrays(runs / f"network_{dataset}.npz") for dataset in ("mnist", "fashion")}
    top_maps(maps, networks["fashion"], out / "maps_top.png")
    beside_a_network(maps, networks, out / "maps_network.png")
    beside = next((size for size in ("large", "small") if {"2", "5.4"} <= private[size].keys()), None)
    if beside is not None:
        trade_offs(maps, private[beside], beside, out / "maps_trade_offs.png")


def attributions(runs: Path, size: str) -> dict[str, dict[str, np.ndarray]]:
    """Of the networks of one size, by epsilon."""
    paths = runs.glob(f"attributions.{size}.*.npz")
    return {path.name.removeprefix(f"attributions.{size}.").removesuffix(".npz"): arrays(path) for path in paths}


def heaviest(maps: dict[str, np.ndarray], name: str, dataset: str, image: np.ndarray, label: int, top: int):
    """Maps of a class in the order of their shares at an image, and the shares."""
    ours = name in ("ours2", "free")
    x = image / 255
    if ours and dataset == "mnist":
        x = x / np.linalg.norm(x) * 9.2
    if not ours:
        x = (x - STANDARD[dataset][0]) / STANDARD[dataset][1]
    found = map_scores(
        x[None],
        maps[f"{dataset}_{name}_maps"],
        maps[f"{dataset}_{name}_biases"],
        BETAS["ours" if ours else "published"][dataset],
    )
    shares = found.shares[0, :, label]
    order = np.argsort(-shares)[:top]
    average = shares @ maps[f"{dataset}_{name}_maps"][:, label]
    return [maps[f"{dataset}_{name}_maps"][j, label] for j in order], shares[order], average


def input_picture(axes, image: np.ndarray, title: str = "") -> None:
    axes.imshow(image.reshape(SHAPE), cmap="gray_r")
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(RULE)
    axes.set_title(title, fontsize=7, color=INK)


def trade_offs(maps, networks, size: str, path: Path) -> None:
    """Figure 2: the heaviest maps of two inputs as published, without projection, with less privacy; ours; and attributions
    of a network at the same prices."""
    network = networks["2"]
    setups = [
        ("published", "as published, D' = 300"),
        ("unprojected", "no projection, epsilon 2"),
        ("five", "no projection, epsilon 5.2"),
        ("ours2", "ours, epsilon 2"),
    ]
    pictures = [(name, epsilon) for epsilon in ("2", "5.4") for name in ("integrated", "smoothed")]
    figure = new_figure(13.6, 2.1)
    axes = figure.subplots(2, 1 + 2 * len(setups) + len(pictures))
    for row, number in enumerate((0, 1)):
        image, label = network["images"][number], int(network["labels"][number])
        input_picture(axes[row, 0], image, "input" if row == 0 else "")
        for place, (name, title) in enumerate(setups):
            found, _, _ = heaviest(maps, name, "fashion", image, label, 2)
            for k in range(2):
                draw_map(axes[row, 1 + 2 * place + k], found[k], SHAPE)
            if row == 0:
                axes[row, 1 + 2 * place].set_title(title, fontsize=7, color=INK, loc="left")
        for place, (name, epsilon) in enumerate(pictures):
            here = axes[row, 1 + 2 * len(setups) + place]
            draw_map(here, networks[epsilon][name][number], SHAPE)
            if row == 0 and name == "integrated":
                here.set_title(f"{size} network, epsilon {epsilon}", fontsize=7, color=INK, loc="left")
    figure.savefig(path, dpi=90)


def two_networks(private, path: Path) -> None:
    """Figure 8: attributions of networks of two sizes, without privacy and with it."""
    figure = new_figure(8.2, 2.4)
    axes = figure.subplots(2, 9)
    for row, number in enumerate((0, 1)):
        input_picture(axes[row, 0], private["large"]["inf"]["images"][number])
        place = 1
        for size, word in (("large", "large"), ("small", "small")):
            for epsilon, price in (("inf", "no privacy"), (SHOWN, f"eps {SHOWN}")):
                for name in ("integrated", "smoothed"):
                    draw_map(axes[row, place], private[size][epsilon][name][number], SHAPE)
                    if row == 0:
                        axes[row, place].set_title(f"{word}, {price}\n{name}", fontsize=5.5, color=INK)
                    place += 1
    figure.savefig(path, dpi=90)


def top_maps(maps, network, path: Path) -> None:
    """Figure 3: the three heaviest maps with their weights, trained on pixels without privacy and with epsilon 2."""
    figure = new_figure(8.6, 4.0)
    axes = figure.subplots(4, 9)
    for row, label in enumerate((4, 5, 0, 9)):
        image = network["images"][label]
        input_picture(axes[row, 0], image, CLOTHES[label])
        for start, name, word in ((1, "plain", "no privacy"), (5, "unprojected", "eps 2")):
            found, shares, average = heaviest(maps, name, "fashion", image, label, 3)
            for k in range(3):
                draw_map(axes[row, start + k], found[k], SHAPE)
                axes[row, start + k].set_title(f"{shares[k]:.2f}", fontsize=6, color=SOFT, pad=2)
            draw_map(axes[row, start + 3], average, SHAPE)
            axes[row, start + 3].set_title("average" if row else f"average, {word}", fontsize=6, color=INK, pad=2)
    figure.savefig(path, dpi=90)


def beside_a_network(maps, networks, path: Path) -> None:
    """Figures 4 and 9: integrated gradients and SmoothGrad of a network; average maps, without privacy and ours with."""
    figure = new_figure(10.6, 4.2)
    axes = figure.subplots(5, 12)
    for half, (dataset, labels) in enumerate((("fashion", (0, 1, 5, 7, 8)), ("mnist", (0, 2, 3, 5, 7)))):
        network = networks[dataset]
        for row, label in enumerate(labels):
            here = axes[row, 6 * half : 6 * half + 6]
            image = network["images"][label]
            input_picture(here[0], image)
            draw_map(here[1], network["integrated"][label], SHAPE)
            draw_map(here[2], network["smoothed"][label], SHAPE)
            draw_map(here[3], heaviest(maps, "plain", dataset, image, label, 1)[2], SHAPE)
            draw_map(here[4], heaviest(maps, "unprojected", dataset, image, label, 1)[2], SHAPE)
            draw_map(here[5], heaviest(maps, "ours2", dataset, image, label, 1)[2], SHAPE)
            if row == 0:
                for place, word in enumerate(("input", "integrated", "smoothed", "maps", "maps, eps 2", "ours, eps 2")):
                    here[place].set_title(word, fontsize=6.5, color=INK)
    figure.savefig(path, dpi=72)


def accuracies(rows: Sequence[dict[str, object]], path: Path) -> None:
    """Figure 5: accuracy over epsilon, the number of maps, the numbers per map; bars are two standard deviations."""
    figure = new_figure(12.5, 3.0)
    left, middle, projected, right = figure.subplots(1, 4)

    def line(axes, some, x, colour, label, style="-") -> None:
        some = sorted(some, key=lambda row: row[x])
        axes.errorbar(
            [row[x] for row in some],
            [100 * row["accuracy"] for row in some],
            yerr=[200 * (row["accuracy_std"] or 0) for row in some],
            color=colour,
            label=label,
            linestyle=style,
            marker="o",
            markersize=3,
            capsize=2,
            linewidth=1.2,
        )

    for dataset, colour in (("mnist", GLASS), ("fashion", AMBER)):
        some = [row for row in rows if row["part"] == "epsilon" and row["dataset"] == dataset]
        line(left, [row for row in some if row["epsilon"]], "epsilon", colour, dataset)
        free = next(row for row in some if row["epsilon"] is None)
        left.axhline(100 * free["accuracy"], color=colour, linestyle="--", linewidth=0.8)
    for epsilons, values in (((0.5, 2.0), (91.8, 94.2)), ((0.5, 2.0), (80.7, 83.2))):
        left.plot(epsilons, values, "x", color=SOFT, label="printed in the paper" if values[0] > 90 else None)
    left.set_xscale("log")
    left.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
    left.set_xlabel("epsilon (dashed: no privacy)")
    for axes, part, x, word in (
        (middle, "maps", "n_maps", "maps per class"),
        (right, "size", "filters", "waves per direction, ours"),
    ):
        for epsilon, colour, label in ((2.0, GLASS, "epsilon 2"), (None, INK, "no privacy")):
            line(axes, [row for row in rows if row["part"] == part and row["epsilon"] == epsilon], x, colour, label)
        axes.set_xlabel(word)
    for epsilon, colour, label in ((2.0, GLASS, "epsilon 2"), (None, INK, "no privacy")):
        some = [row for row in rows if row["part"] == "width" and row["epsilon"] == epsilon]
        line(projected, [row for row in some if "width" in row], "width", colour, label)
        for row in some:
            if "width" not in row:
                projected.axhline(100 * row["accuracy"], color=colour, linestyle="--", linewidth=0.8)
    projected.set_xscale("log")
    projected.set_xticks([25, 50, 100, 200, 400, 784], ["25", "50", "100", "200", "400", "784"])
    projected.set_xlabel("D' of random projections, as published (dashed: none)")
    middle.set_xscale("log")
    middle.set_xticks([1, 2, 5, 10, 30, 100], ["1", "2", "5", "10", "30", "100"])
    for axes in (left, middle, projected, right):
        axes.minorticks_off()
        axes.legend(fontsize=7, frameon=False)
        axes.tick_params(labelsize=7, colors=SOFT)
        axes.xaxis.label.set_size(7)
    left.set_ylabel("test accuracy, %", fontsize=8)
    figure.savefig(path, dpi=90)
