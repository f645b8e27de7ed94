"""Autoencoders of Yang et al. with several layers (section 4.3, Figure 2), and what they make of digits (Figure 3).

As published, each input of a hidden layer is normalised into [-1, 1], column by column over the rows, so that eq. 13 may be
used with the widest layer as K; noise is on the coefficients of the last layer. One row moves what all others are normalised
by, and one sensitivity stands for all layers (docs/errata.md): the epsilon is a claim that does not hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

import bench_data as datasets
import vitrail as vt
from local_setup import Part
from papers import counterfactual_models as models
from papers.counterfactual_adult import PUBLISHED
from papers.counterfactual_cases import DELTA
from papers.counterfactual_pixels import CLIP, pixels_text
from papers.counterfactual_scale import Bench
from papers.yang_published import published_dpc, sensitivity
from vitrail.explain.counterfactual import moments_question, shortened
from vitrail.solve.counterfactual.codes import code_of

EPSILONS = (0.025, 0.1, 0.75)
SHOWN_EPSILONS = (1.0, 0.05, 0.005, 0.0005)
WIDTHS = {"adult": (32, 16), "mnist": (256, 128, 64, 32)}
"""The paper's encoders; decoders are the same in reversed order."""
SEVERAL = "DPC as published, several layers"
DIGITS = 6


def to_range(inputs: Any) -> Any:
    """Each column over the rows, so that it reaches from -1 to 1; columns of one value are 0.

    >>> import torch
    >>> to_range(torch.tensor([[0.2, 5.0], [0.4, 5.0], [0.3, 5.0]])).round(decimals=3).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """
    low, high = inputs.min(dim=0).values, inputs.max(dim=0).values
    width = high - low
    return ((2 * inputs - low - high) / width.clamp_min(1e-9)) * (width > 1e-9)


@dataclass(frozen=True, eq=False)
class PublishedLayers:
    """A trained autoencoder of several layers."""

    layers: Any

    def reconstructed(self, rows: np.ndarray) -> np.ndarray:
        """All of these rows together: each is normalised by the others."""
        import torch

        with torch.no_grad():
            return np.asarray(passed(self.layers, torch.as_tensor(rows, dtype=torch.float32)).double().numpy())


def passed(layers: Any, x: Any) -> Any:
    """Forwards: every layer's inputs normalised, sigmoids."""
    import torch

    for layer in layers:
        x = torch.sigmoid(layer(to_range(x)))
    return x


def published_layers(
    rows: np.ndarray, widths: tuple[int, ...], epsilon: float, rng: np.random.Generator, epochs: int
) -> PublishedLayers:
    """Train on the perturbed objective by Adam on whole batches, with eq. 13's noise for the widest layer."""
    import torch

    torch.manual_seed(int(rng.integers(2**31)))
    n, features = rows.shape
    sizes = [features, *widths, *widths[-2::-1], features]
    layers = [torch.nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes)]
    scale = sensitivity(max(widths)) / epsilon / n
    on_linear = torch.as_tensor(rng.laplace(0.0, scale, features), dtype=torch.float32)
    on_square = max(1 + float(rng.laplace(0.0, scale)), 0.1)
    x = torch.as_tensor(rows, dtype=torch.float32)
    optimizer = torch.optim.Adam([weights for layer in layers for weights in layer.parameters()], lr=0.01)
    for _ in range(epochs):
        optimizer.zero_grad()
        out = passed(layers, x)
        loss = (on_square * out**2 - 2 * x * out + on_linear * out).sum() / n
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return PublishedLayers(layers)


def layers(bench: Bench) -> Part:
    """Figure 2 with the paper's own architecture, on Adult."""
    case = models.adult(bench.folder, bench.cache.folder, "network")
    rows, held = (case.schema.features(case.schema.read(frame))[0] for frame in (case.rows, case.test))
    epochs = 20 if bench.scale.quick else 300
    found: list[dict[str, object]] = []
    for epsilon in EPSILONS:
        one = published_dpc(rows, np.zeros(len(rows), dtype=int), 1, epsilon, np.random.default_rng(0), epochs=epochs)
        more = published_layers(rows, WIDTHS["adult"], epsilon, np.random.default_rng(0), epochs)
        for method, made, size in ((PUBLISHED, one.decode(one.encode(held)), 32), (SEVERAL, more.reconstructed(held), 16)):
            found.append(
                {"method": method, "epsilon": epsilon, "mse": float(((made - held) ** 2).mean()), "code_size": size}
            )
            print(found[-1], flush=True)
    how = (
        f"mean squared error per encoded feature on {len(held)} other people; {epochs} epochs; several layers: "
        f"{WIDTHS['adult']} units and back, as the paper has them, held-out people normalised by each other"
    )
    return Part({}, found, how)


def digits(bench: Bench) -> Part:
    """Figure 3: what is left of digits that were encoded and decoded."""
    train, _ = datasets.mnist(bench.folder, "train")
    test, labels = datasets.mnist(bench.folder, "test")
    rows, held = train[: bench.scale.images // 8] / 255.0, test[:2_000] / 255.0
    places = [int(np.flatnonzero(labels == digit)[0]) for digit in range(DIGITS)]
    epochs = 5 if bench.scale.quick else 60
    found: list[dict[str, object]] = [picture("the digits", None, held, places)]
    schema = vt.Schema({f"pixel {n}": vt.Numeric(0, 255, integer=True) for n in range(784)})
    frame = {name: train[: len(rows), place].astype(np.int64) for place, name in enumerate(schema.names)}
    for epsilon in SHOWN_EPSILONS:
        budget = vt.Budget(2.0, DELTA)
        data = vt.PrivateData(frame, schema, name="mnist", n_rows_public=len(rows), budget=budget, ledger="memory")
        release = data.ask(moments_question(784, CLIP), epsilon=epsilon)
        code = code_of("linear", release.value, release.sigma or 0.0, len(rows))
        made = np.clip(code.decode(code.encode(shortened(held, CLIP))) * CLIP, 0, 1)
        found.append({**picture("ours, moments", epsilon, made, places), **error(made, held), "code_size": code.size})
        one = published_dpc(rows, np.zeros(len(rows), dtype=int), 1, epsilon, np.random.default_rng(0), epochs=epochs)
        made = one.decode(one.encode(held))
        found.append({**picture(PUBLISHED, epsilon, made, places), **error(made, held), "code_size": 32})
        more = published_layers(rows, WIDTHS["mnist"], epsilon, np.random.default_rng(0), epochs)
        made = more.reconstructed(held)
        found.append({**picture(SEVERAL, epsilon, made, places), **error(made, held), "code_size": 32})
        print(epsilon, [(row["method"], row["mse"]) for row in found[-3:]], flush=True)
    how = (
        f"{len(rows)} training images; mean squared error per pixel on {len(held)} test images, the first of each digit "
        f"shown; {epochs} epochs; several layers: {WIDTHS['mnist']} units and back. Ours: rows cut to length {CLIP:g}, all "
        "of epsilon for the moments, delta 1e-6. The epsilon of DPC is a claim that does not hold"
    )
    return Part({}, found, how)


def error(made: np.ndarray, held: np.ndarray) -> dict[str, object]:
    return {"mse": float(((made - held) ** 2).mean())}


def picture(method: str, epsilon: float | None, images: np.ndarray, places: list[int]) -> dict[str, object]:
    """Some images as text."""
    texts = [pixels_text(np.rint(255 * images[place])) for place in places]
    return {"picture": True, "method": method, "epsilon": epsilon, "digits": texts}
