"""Networks trained with differential privacy, and what their attributions are worth: Figures 2 (right) and 8 of
"Interpretable and Differentially Private Predictions", and shuffled batches with the epsilon that they really have. Needs an
accelerator.

    python benchmarks/papers/locally_linear_networks.py IMAGES.npz OUT_FOLDER            # networks, maps beside them
    python benchmarks/papers/locally_linear_networks.py IMAGES.npz OUT_FOLDER --only shuffled

IMAGES.npz as for ``locally_linear_images.py``. Writes lines (``images.*.jsonl``) and attributions for the picture
(``attributions.*.npz``).

*The networks* are the paper's: two convolutions and two dense layers, once with 431 080 numbers and once with the 26 010 of
the usual private network. They are trained by DP-SGD (Poisson samples, per-example gradients clipped, privacy loss
distributions for the price) from torch's generator: a baseline, and no product. Learning rates are chosen on 50 000 / 10 000
of the training images at epsilon 2, before a test image is looked at.

*What attributions are worth* is measured, where the paper shows pictures: how much the attributions of two networks agree
that were trained alike, with other noise (an attribution that another run does not repeat tells about the noise), and how
much they agree with those of networks without privacy. The maps' own figures stand beside.

*Shuffled batches.* The paper cuts every epoch's shuffled rows into batches and prices them as Poisson samples. In an epoch
a row is in one batch, so an epoch is one Gaussian sum for it, whatever came before: 20 epochs cost mu = sqrt(20)/sigma at
most, without any credit for the shuffling. From below: the likelihood ratio of Chua et al. ("How Private are DP-SGD
Implementations?", 2024) for rows whose gradients all point to one side but one that points to the other, or counts zero,
simulated; no accounting of shuffled batches can promise less than that.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta as beta_distribution

sys.path.insert(0, str(Path(__file__).resolve().parent))

from locally_linear_images import Work, published

from vitrail.accounting import epsilon_of
from vitrail.vault import map_scores, noise_for, run_epsilon, train_maps
from vitrail.vault.training.run import StepDraws, _Run

DELTA = 1e-5
EPSILONS = (1.19, 2.0, 5.4, math.inf)
SEEDS = 3
BATCH, EPOCHS, CLIP, MOMENTUM = 2000, 20, 0.1, 0.9
RATES = (2.0, 4.0, 8.0)
N_IMAGES = 200
EPOCHS_PUBLISHED, BATCHES_PUBLISHED, SIGMA_PUBLISHED, RATE = 20, 120, 1.3, 500 / 60_000


def network(torch: Any, size: str) -> Any:
    """The paper's M_a and M_b."""
    nn = torch.nn
    if size == "large":
        parts = [nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2)]
        parts += [nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)]
    else:
        parts = [nn.Conv2d(1, 16, 8, stride=2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)]
        parts += [nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, 1)]
        parts += [nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10)]
    net = nn.Sequential(nn.Unflatten(1, (1, 28, 28)), *parts)
    assert sum(p.numel() for p in net.parameters()) == {"large": 431_080, "small": 26_010}[size]
    return net


def clipped_sum(torch: Any, net: Any, x: Any, y: Any) -> list[Any]:
    """The sum over rows of their gradients, each of at most length CLIP; one per parameter, in their order.

    A row's gradient is never held: its length follows from what goes into a layer and what comes back out of it, and the sum
    of the shortened ones is one more product of the two.
    """
    layers: list[tuple[Any, Any, Any]] = []

    def keep(layer: Any, inputs: tuple[Any], output: Any) -> None:
        layers.append((layer, inputs[0].detach(), output))

    hooks = [layer.register_forward_hook(keep) for layer in net if hasattr(layer, "weight")]
    loss = torch.nn.functional.cross_entropy(net(x), y, reduction="sum")
    for hook in hooks:
        hook.remove()
    back = torch.autograd.grad(loss, [output for _, _, output in layers])
    squares, pieces = torch.zeros(len(x), device=x.device), []
    for (layer, inside, _), out in zip(layers, back, strict=True):
        if inside.ndim == 2:
            squares += (out * out).sum(1) * ((inside * inside).sum(1) + 1)
            pieces.append((inside, out))
        else:
            patches = torch.nn.functional.unfold(
                inside, layer.kernel_size, padding=layer.padding, stride=layer.stride
            )  # (rows, inputs of a patch, places)
            each = torch.einsum("nol,nil->noi", out.flatten(2), patches).flatten(1), out.flatten(2).sum(2)
            squares += (each[0] * each[0]).sum(1) + (each[1] * each[1]).sum(1)
            pieces.append(each)
    shares = (CLIP / squares.sqrt().clamp_min(1e-12)).clamp_max(1.0)
    found = []
    for (layer, inside, _), (first, second) in zip(layers, pieces, strict=True):
        if inside.ndim == 2:
            scaled = second * shares[:, None]
            found += [scaled.T @ first, scaled.sum(0)]
        else:
            found += [(shares @ first).reshape(layer.weight.shape), shares @ second]
    return found


def trained(work: Work, x: Any, y: Any, size: str, epsilon: float, rate: float, epochs: int = EPOCHS) -> Any:
    """A network by DP-SGD with momentum; with epsilon inf by Adam, without noise or clipping."""
    torch = work.torch
    net = network(torch, size).to(work.device)
    if math.isinf(epsilon):
        optimiser = torch.optim.Adam(net.parameters(), 1e-3)
        for _ in range(5):
            for rows in torch.randperm(len(x), device=x.device).split(256):
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
                optimiser.step()
        return net
    torch.backends.cuda.matmul.allow_tf32 = True  # a tenth of a per cent of a gradient, which its noise hides
    q, steps = BATCH / len(x), epochs * len(x) // BATCH
    sigma = noise_for(epsilon, DELTA, q, steps)
    weights = list(net.parameters())
    speed = [torch.zeros_like(p) for p in weights]
    for _ in range(steps):
        chosen = torch.nonzero(torch.rand(len(x), device=x.device) < q)[:, 0]
        total = clipped_sum(torch, net, x[chosen], y[chosen])
        with torch.no_grad():
            for weight, old, g in zip(weights, speed, total, strict=True):
                old.mul_(MOMENTUM).add_((g + sigma * CLIP * torch.randn_like(g)) / BATCH)
                weight -= rate * old
    return net


def accuracy(torch: Any, net: Any, x: Any, y: Any) -> float:
    with torch.no_grad():
        return float((net(x).argmax(1) == y).float().mean())


def attributions(torch: Any, net: Any, x: Any, y: Any) -> dict[str, np.ndarray]:
    """Integrated gradients (not multiplied by the image, as in the paper) and SmoothGrad of the true class."""

    def gradient(inputs: Any, label: Any) -> Any:
        inputs = inputs.clone().requires_grad_(True)
        net(inputs)[:, label].sum().backward()
        return inputs.grad.mean(0).cpu().numpy()

    shares = (torch.arange(64, device=x.device) + 0.5)[:, None] / 64
    found: dict[str, list[np.ndarray]] = {"integrated": [], "smoothed": []}
    for one, label in zip(x, y, strict=True):
        found["integrated"].append(gradient(shares * one, label))
        found["smoothed"].append(gradient(one + 0.2 * torch.randn(64, one.numel(), device=x.device), label))
    return {name: np.array(some) for name, some in found.items()}


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Mean over images."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean((one * other).sum(1) / np.maximum(lengths, 1e-12)))


def agreement(runs: list[np.ndarray]) -> float:
    """Mean over pairs of runs of the cosine of their attributions."""
    pairs = [(i, j) for i in range(len(runs)) for j in range(i)]
    return float(np.mean([cosine(runs[i], runs[j]) for i, j in pairs]))


def best_rate(work: Work, size: str) -> float:
    """The learning rate whose network is right most often about the other 10 000 training images."""
    x, y = work.gpu["fashion_x"], work.gpu["fashion_y"]
    told = {}
    for rate in RATES:
        net = trained(work, x[:50_000], y[:50_000], size, 2.0, rate)
        told[rate] = accuracy(work.torch, net, x[50_000:], y[50_000:])
        work.write(part="network_rate", network=size, rate=rate, accuracy=told[rate])
    return max(told, key=lambda rate: told[rate])


def networks(
    images: str, out: Path, size: str, epsilons: Sequence[float], seeds: int, rate: float | None, epochs: int
) -> None:
    """Private and other networks on Fashion-MNIST: accuracy, and what their attributions are worth."""
    work = Work(images, out, f"networks_{size}_{min(epsilons):g}", math.inf)
    torch = work.torch
    x, y, xt, yt = (work.gpu[f"fashion_{end}"] for end in ("x", "y", "xt", "yt"))
    rate = best_rate(work, size) if rate is None else rate

    def runs_of(epsilon: float, count: int) -> tuple[list[float], dict[str, list[np.ndarray]]]:
        told, found = [], dict[str, list[np.ndarray]](integrated=[], smoothed=[])
        for _ in range(count):
            net = trained(work, x, y, size, epsilon, rate, epochs)
            told.append(accuracy(torch, net, xt, yt))
            for name, some in attributions(torch, net, xt[:N_IMAGES], yt[:N_IMAGES]).items():
                found[name].append(some)
        return told, found

    without = runs_of(math.inf, seeds if math.inf in epsilons else 1)
    for epsilon in sorted(epsilons, reverse=True):
        told, found = without if math.isinf(epsilon) else runs_of(epsilon, seeds)
        for name, runs in found.items():
            work.write(
                part="attributions",
                what=name,
                network=size,
                epsilon=epsilon,
                seeds=seeds,
                accuracy=float(np.mean(told)),
                accuracy_std=float(np.std(told, ddof=1)),
                agreement=agreement(runs),
                agreement_free=float(np.mean([cosine(a, b) for a in runs for b in without[1][name] if a is not b])),
            )
        np.savez_compressed(
            out / f"attributions.{size}.{epsilon:g}.npz",
            images=work.data["fashion_xt"][:10],
            labels=work.data["fashion_yt"][:10],
            **{name: runs[0][:10].astype(np.float16) for name, runs in found.items()},
        )


def maps_beside(images: str, out: Path, name: str, width: int | None) -> None:
    """The same figures for weighted average maps of the paper: on pixels, or on random projections."""
    work = Work(images, out, f"maps_{width or 'pixels'}", math.inf)
    yt = work.gpu["fashion_yt"]
    kept: dict[str, np.ndarray] = {}
    free: list[np.ndarray] = []
    for epsilon in sorted(EPSILONS, reverse=True):
        plan = published(
            "fashion", sigma=noise_for(epsilon, DELTA, RATE, 2400) if math.isfinite(epsilon) else 0.0, width=width
        )
        told, runs = [], []
        inputs = work.standardised("fashion", "xt")
        for _ in range(SEEDS):
            found = train_maps(plan, work.standardised("fashion", "x"), work.gpu["fashion_y"])
            told.append(work.accuracy("fashion", found.maps, found.biases, plan.beta, inputs=inputs))
            some = inputs[:N_IMAGES].cpu().numpy().astype(np.float64)
            shares = map_scores(some, found.maps, found.biases, plan.beta).shares
            labels = yt[:N_IMAGES].cpu().numpy()
            rows = np.arange(N_IMAGES)
            runs.append(np.einsum("im,mip->ip", shares[rows, :, labels], found.maps[:, labels]))
        free = free or runs
        work.write(
            part="attributions",
            what=name,
            network="maps",
            epsilon=epsilon,
            seeds=SEEDS,
            accuracy=float(np.mean(told)),
            accuracy_std=float(np.std(told, ddof=1)),
            agreement=agreement(runs),
            agreement_free=float(np.mean([cosine(a, b) for a in runs for b in free if a is not b])),
        )
        kept[f"{name}_{epsilon:g}"] = runs[0][:10].astype(np.float16)
        np.savez_compressed(out / f"attributions.maps_{width or 'pixels'}.npz", **kept)


class ShuffledRun(_Run):
    """The same training, with an epoch's shuffled rows cut into batches instead of Poisson samples."""

    def draws(self, size: int, generator: np.random.Generator) -> Any:
        batch = round(self.training.expected_rows)
        for number, draw in enumerate(super().draws(size, generator)):
            place = number % (self.rows.n_rows // batch)
            if place == 0:
                order = generator.permutation(self.rows.n_rows)
            yield StepDraws(np.sort(order[place * batch : (place + 1) * batch]), draw.noise)


def shuffled(images: str, out: Path) -> None:
    """Accuracy of the paper's settings with shuffled batches, beside Poisson samples of the same noise."""
    from vitrail.vault.training.row_vectors import PublicMatrices, training_vectors

    work = Work(images, out, "shuffled", math.inf)
    work.write(part="shuffled_epsilon", **shuffled_epsilon(work.torch, work.device, 2 * 10**7))
    for dataset in ("fashion", "mnist"):
        for way in ("shuffled batches", "Poisson samples"):
            told = []
            for _ in range(5):
                plan = published(dataset)
                x, y = work.standardised(dataset, "x"), work.gpu[f"{dataset}_y"]
                matrices = PublicMatrices.of(plan.projections, plan.filters, x.shape[1])
                rows = training_vectors(x, y, plan.n_classes, matrices, plan.row_length)
                run = (ShuffledRun if way == "shuffled batches" else _Run)(plan, rows)
                weights = run.weights(None)
                maps, biases = matrices.back_to_features(weights[:, :, :-1]), weights[:, :, -1]
                told.append(work.accuracy(dataset, maps, biases, plan.beta, inputs=work.standardised(dataset, "xt")))
            work.write(
                part="shuffled",
                dataset=dataset,
                batches=way,
                noise_multiplier=SIGMA_PUBLISHED,
                seeds=5,
                accuracy=float(np.mean(told)),
                accuracy_std=float(np.std(told, ddof=1)),
            )


def shuffled_epsilon(torch: Any, device: str, draws: int, sigma: float = SIGMA_PUBLISHED) -> dict[str, float]:
    """What 20 shuffled epochs cost at delta 1e-5: at most, and at least with 99.9 % confidence."""
    at_most = epsilon_of(math.sqrt(EPOCHS_PUBLISHED) / sigma, DELTA)
    there, gone = (ratios(torch, device, draws, sigma, shift) for shift in (2.0, 1.0))
    at_least = max(distance(there, gone, draws), distance(-gone, -there, draws))
    claimed = run_epsilon(sigma, RATE, EPOCHS_PUBLISHED * BATCHES_PUBLISHED, DELTA)
    return {
        "sigma": sigma,
        "epsilon_at_most": at_most,
        "epsilon_at_least": at_least,
        "epsilon_poisson": claimed,
        "draws": draws,
    }


def ratios(torch: Any, device: str, draws: int, sigma: float, shift: float) -> np.ndarray:
    """Log likelihood ratios of "shifted by 2 in one batch of an epoch" over "by 1", drawn where the shift is ``shift``."""
    found, room = [], 2 * 10**6 if device == "cuda" else 10**4
    for start in range(0, draws, room):
        count = min(room, draws - start)
        total = torch.zeros(count, device=device)
        for _ in range(EPOCHS_PUBLISHED):
            seen = sigma * torch.randn(count, BATCHES_PUBLISHED, device=device)
            seen[:, 0] += shift  # which batch it is plays no part: both laws are the same for every order of batches
            two = torch.logsumexp((2 * seen - 2) / sigma**2, 1)
            one = torch.logsumexp((seen - 0.5) / sigma**2, 1)
            total += two - one
        found.append(total.cpu().numpy())
    return np.concatenate(found)


def distance(here: np.ndarray, there: np.ndarray, draws: int, confidence: float = 0.999) -> float:
    """A lower bound of epsilon: the threshold is chosen on one half of the draws and judged on the other."""
    half, error = draws // 2, (1 - confidence) / 2
    thresholds = np.quantile(here[:half], np.linspace(0.02, 0.98, 97))

    def bound(first: np.ndarray, second: np.ndarray, threshold: float) -> float:
        n, hits, alarms = len(first), int((first > threshold).sum()), int((second > threshold).sum())
        least = beta_distribution.ppf(error, hits, n - hits + 1) if hits else 0.0
        most = beta_distribution.ppf(1 - error, alarms + 1, n - alarms)
        return math.log(max(least - DELTA, 1e-300) / most)

    best = max(thresholds, key=lambda threshold: bound(here[:half], there[:half], threshold))
    return bound(here[half:], there[half:], best)


PARTS: dict[str, tuple[Any, ...]] = {
    "large": (networks, "large"),
    "small": (networks, "small"),
    "pixels": (maps_beside, "maps on pixels", None),
    "projections": (maps_beside, "maps, D' = 300", 300),
    "shuffled": (shuffled,),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS, help="of the networks")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of the networks, two or more")
    parser.add_argument("--rate", type=float, help="of the networks, where it was found before")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of the networks")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    multiprocessing.set_start_method("spawn")
    started = time.time()
    running = []
    for name in given.only:
        work, *more = PARTS[name]
        if work is networks:
            more += [given.epsilons, given.seeds, given.rate, given.epochs]
        running.append(multiprocessing.Process(target=work, args=(given.images, given.out, *more)))
        running[-1].start()
    for one in running:
        one.join()
    (given.out / "networks.how.json").write_text(json.dumps({"seconds": round(time.time() - started), "parts": given.only}))


if __name__ == "__main__":
    main()
