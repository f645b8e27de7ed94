"""Private models of pictures (section 6.3, Figures 6 to 8): explanations of CNNs trained with differential privacy.

Faces are FER2013, as in the paper, and give figures only; pictures are shown on Fashion-MNIST (Figure 6), whose licence
allows it. Sums around faces (2 304 pixels) are computed on the device that the benchmark is given.
"""

from __future__ import annotations

import numpy as np

import bench_data as datasets
import exact
from local_setup import Part
from papers.patel_cases import PatelBench, as_images, picture_network, pixel_problem
from papers.patel_streams import histogram
from papers.patel_training import EPSILONS, LOSS_EDGES, NEAREST, correlation
from vitrail.accounting import mu_of
from vitrail.solve.linear.descent import Gradients
from vitrail.solve.linear.weights import stable

DELTA = 1e-5
TRAINING = {"batch": 256, "epochs": 15, "clip": 1.0, "learning_rate": 1e-3}
"""Of all networks here, the private ones and the one beside them; fixed before the runs that count, not tuned."""
PRINTED_ACCURACY = {"f": 0.843, "f_0.5": 0.51, "f_2": 0.62, "f_10": 0.80}
DISTANCE_EDGES = np.linspace(0.0, 2.0, 41)
AT_ONCE = 50


def train_privately(
    pixels: np.ndarray, second: np.ndarray, rows: np.ndarray, epsilon: float | None, epochs: int
) -> dict[str, np.ndarray]:
    """Probabilities on all pictures of a network trained on some, by Opacus' DP-SGD where there is an epsilon."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, labels = as_images(pixels), torch.tensor(second, dtype=torch.float32)
    network = picture_network(pixels.shape[1])
    optimizer: torch.optim.Optimizer = torch.optim.Adam(network.parameters(), lr=TRAINING["learning_rate"])
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images[rows], labels[rows]), batch_size=int(TRAINING["batch"]), shuffle=True
    )
    engine = None
    if epsilon is not None:
        from opacus import PrivacyEngine

        engine = PrivacyEngine(accountant="prv")
        network, optimizer, loader = engine.make_private_with_epsilon(
            module=network,
            optimizer=optimizer,
            data_loader=loader,
            target_epsilon=epsilon,
            target_delta=DELTA,
            epochs=epochs,
            max_grad_norm=TRAINING["clip"],
        )
    loss_of = torch.nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for some, wanted in loader:
            optimizer.zero_grad()
            loss_of(network(some)[:, 0], wanted).backward()
            optimizer.step()
    with torch.no_grad():
        logits = torch.cat([network(some)[:, 0] for some in images.split(512)])
    stated = np.inf if engine is None else float(engine.get_epsilon(DELTA))
    return {"p": torch.sigmoid(logits).numpy().astype(np.float32), "epsilon": np.array(stated)}


def private_models(
    bench: PatelBench, name: str, pixels: np.ndarray, second: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, float], np.ndarray]:
    """Labels +-1 on all pictures by model, what each training states, and the pictures that none was trained on."""
    order = np.random.default_rng(0).permutation(len(pixels))
    train, test = order[: len(order) * 7 // 10], order[len(order) * 7 // 10 :]
    epochs = 1 if bench.scale.quick else int(TRAINING["epochs"])
    labels, stated = {}, {}
    for epsilon in (None, *EPSILONS):
        model = "f" if epsilon is None else f"f_{epsilon:g}"

        def made(epsilon: float | None = epsilon) -> dict[str, np.ndarray]:
            return train_privately(pixels, second, train, epsilon, epochs)

        stored = bench.cache.arrays(f"{name}-{model}-{epochs}", made)
        labels[model], stated[model] = np.where(stored["p"] >= 0.5, 1.0, -1.0), float(stored["epsilon"])
        print("  ", name, model, f"{((labels[model] > 0) == second)[test].mean():.3f}", f"{stated[model]:.3g}", flush=True)
    return labels, stated, test


# --- Figures 7 and 8 for faces ------------------------------------------------------------------------------------------


def face_models(bench: PatelBench) -> Part:
    from papers.patel_wide import Around, Rows, batches, tensor

    pixels, happy = datasets.faces(bench.folder)
    labels, stated, test = private_models(bench, "faces", pixels, happy)
    x = pixels / 255.0 / np.sqrt(pixels.shape[1])
    of = np.random.default_rng(31).choice(len(x), 2 if bench.scale.quick else 500, replace=False)
    near = exact.nearest_others(x, of, NEAREST)
    rows, gradients, mu = Rows.of(x, bench.device), Gradients(pixel_problem(x.shape[1])), mu_of(0.1, DELTA)
    draws = 2
    distances: dict[tuple[str, str], list[np.ndarray]] = {}
    losses: dict[tuple[str, str], list[np.ndarray]] = {}
    for place, alphas, grams in batches(rows, x[of], stable(1.0), AT_ONCE):
        plain = None
        for name, f in labels.items():
            crosses = rows.crosses(tensor(f, bench.device), tensor(x[of][place], bench.device), alphas)
            around = Around.of(grams, crosses, len(x), 71 + place.start)
            plain = around.best if plain is None else plain  # f is the first
            found = {
                "optimum, no noise": around.best[:, :, None],
                "Algorithm 1 as published": around.published(0.1, DELTA, draws, 200),
                "descent": around.descent(gradients, mu, draws),
            }
            for method, phi in found.items():
                away = (phi - plain[:, :, None]).norm(dim=1).T.cpu().numpy()
                distances.setdefault((name, method), []).append(away)
                losses.setdefault((name, method), []).append(around.excess(phi))
    made: list[dict[str, object]] = []
    for (name, method), some in distances.items():
        away, lost = np.concatenate(some, axis=1), np.concatenate(losses[name, method], axis=1)
        wrong = ((labels[name] > 0) != happy)[near].mean(axis=1)
        scattered = [[float(f"{a:.3g}"), float(f"{b:.3g}")] for a, b in zip(wrong, lost.mean(axis=0), strict=True)]
        made.append(
            {
                "model": name,
                "method": method,
                "training_epsilon": None if np.isinf(stated[name]) else stated[name],
                "test_accuracy": float(((labels[name] > 0) == happy)[test].mean()),
                "printed_accuracy": PRINTED_ACCURACY[name],
                "mean_dist": float(away.mean()),
                "mean_excess_loss": float(lost.mean()),
                "correlation_with_errors_nearby": correlation(lost.mean(axis=0), wrong),
                "errors_nearby": float(wrong.mean()),
                "points": away.shape[1],
                "draws": away.shape[0],
                "dist_histogram": histogram(away.ravel(), DISTANCE_EDGES),
                "loss_histogram": histogram(lost.ravel(), LOSS_EDGES),
                "scatter": scattered[:100],
                "machine": bench.machine,
            }
        )
        print("  ", {k: v for k, v in made[-1].items() if not isinstance(v, list)}, flush=True)
    headline = {f"accuracy_{row['model']}": row["test_accuracy"] for row in made if row["method"] == "descent"}
    headline |= {f"dist_{row['model']}": row["mean_dist"] for row in made if row["method"] == "optimum, no noise"}
    how = (
        "FER2013, every sad face and as many happy ones (12 004 of 2 304 pixels), 8 402 / 3 602; the paper's CNN of two "
        f"convolutions trained by Opacus' DP-SGD (Poisson batches, PRV accountant, delta 1e-5, {TRAINING}, not tuned) or, "
        "f, without privacy. Explanations at epsilon 0.1, delta 1e-5 (T = 200 as published) of 500 faces from all 12 004, "
        "labelled by each model, exact sums in float64 plus noise. Dist = |phi - phi*(f)|; 'optimum, no noise' is the part "
        "of it that is the model's. Errors nearby: share of the 50 nearest faces that the model gets wrong"
    )
    return Part(headline, made, how)


# --- Figure 6 -----------------------------------------------------------------------------------------------------------


def private_pictures(bench: PatelBench) -> Part:
    """One picture that all models get wrong, explained for each of them."""
    from papers.patel_wide import Around, Rows, tensor

    pixels, boot = datasets.fashion(bench.folder, (7, 9))
    labels, stated, test = private_models(bench, "fashion", pixels, boot)
    raw = pixels / 255.0
    x = raw / np.sqrt(raw.shape[1])
    wrong = np.all([(f > 0) & ~boot for f in labels.values()], axis=0)
    of = np.flatnonzero(wrong)[:8]
    rows, z = Rows.of(x, bench.device), tensor(x[of], bench.device)
    alphas = rows.weights(z, stable(1.0))
    grams, gradients = rows.grams(z, alphas), Gradients(pixel_problem(x.shape[1]))
    made: list[dict[str, object]] = []
    plain = None
    for name, f in labels.items():
        around = Around.of(grams, rows.crosses(tensor(f, bench.device), z, alphas), len(x), 73)
        plain = around.best if plain is None else plain
        found = {
            "optimum, no noise": around.best[:, :, None],
            "Algorithm 1 as published": around.published(0.1, DELTA, 1, 200),
            "descent": around.descent(gradients, mu_of(0.1, DELTA), 1),
        }
        for method, phi in found.items():
            one = phi[0, :, 0].cpu().numpy()
            alike = (phi[:, :, 0] * plain).sum(1) / (phi[:, :, 0].norm(dim=1) * plain.norm(dim=1)).clamp_min(1e-300)
            made.append(
                {
                    "model": name,
                    "method": method,
                    "training_epsilon": None if np.isinf(stated[name]) else stated[name],
                    "test_accuracy": float(((f > 0) == boot)[test].mean()),
                    "cosine_with_the_optimum_of_f": float(alike.mean()),
                    "mean_excess_loss": float(around.excess(phi).mean()),
                    "points": len(of),
                    "map": np.round(one / np.abs(one).max(), 2).tolist(),
                }
            )
    made.append({"method": "the picture", "map": np.round(raw[of[0]], 2).tolist()})
    headline = {
        f"cosine_{row['model']}": row["cosine_with_the_optimum_of_f"] for row in made if row["method"] == "optimum, no noise"
    }
    how = (
        "Fashion-MNIST in place of faces: sneakers (7) against ankle boots (9), 12 000 pictures of 784 pixels, 8 400 / "
        f"3 600; the same CNN and training as for the faces ({TRAINING}); the first sneakers that every model calls a boot; "
        "explanations at epsilon 0.1, delta 1e-5 (T = 200 as published) from all pictures, labelled by each model; the map "
        "of the first is shown, scaled to its own largest pixel; cosines are over all of them"
    )
    return Part(headline, made, how)
