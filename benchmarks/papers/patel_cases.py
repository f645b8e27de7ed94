"""Text and pictures for the paper's experiments: cases, networks, and exact statistics where features are hundreds.

``exact.statistics`` shares one matrix product among all points, which needs all products of two features at once; with
hundreds of features one product per point is smaller. Both are plain NumPy on all rows, and nothing of the library's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

import bench_data as datasets
import exact
import vitrail as vt
from local_setup import Bench, Cache, Case
from local_stream import PARTS, Third, parts_of
from running import RESULTS
from vitrail.solve.linear.problem import LocalProblem
from vitrail.solve.linear.weights import Weight, stable

TEXT_ROWS_OF_THE_PAPER = 8_765_568 + 50_000
ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class PatelBench(Bench):
    """Where wide sums are computed, by how many processes streams are answered, and on which data a part is measured.

    What a part does not measure now (``sets``) stays as the results file has it, row by row.
    """

    device: str = "cpu"
    workers: int = 1
    sets: tuple[str, ...] = ()

    def measures(self, name: str) -> bool:
        return not self.sets or name in self.sets

    @property
    def machine(self) -> str:
        if self.device == "cpu":
            return "cpu"
        import torch

        return str(torch.cuda.get_device_name())


def kept_rows(part: str, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, object]]:
    """Rows of the results file that are not measured again."""
    path = RESULTS / "patel.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return [
        {key: value for key, value in row.items() if key != "part"} for row in rows if row["part"] == part and wanted(row)
    ]


def points_of(bench: Bench) -> int:
    """The paper explains 1 000 points."""
    return 10 if bench.scale.quick else 1000


_JOBS: list[Callable[[], Any]] = []


def _job(place: int) -> Any:
    return _JOBS[place]()


def in_parallel(jobs: Sequence[Callable[[], Any]], workers: int) -> list[Any]:
    """What the jobs return, in order. Processes are forked: they share the arrays that are there already."""
    if workers == 1:
        return [job() for job in jobs]
    _JOBS[:] = jobs
    with get_context("fork").Pool(workers) as pool:
        return pool.map(_job, range(len(jobs)), chunksize=1)


def text_case(bench: Bench) -> Case:
    """Labels are the true ones, as in the paper; rows that no review has are asked of a logistic regression."""
    from sklearn.linear_model import LogisticRegression

    if "text" not in bench._cases:
        data = datasets.text(bench.cache.arrays("text-words", lambda: datasets.text_words(bench.folder)))
        x = data.x * np.sqrt(data.schema.n_columns)
        estimator = bench.cache.model("text-logistic", lambda: LogisticRegression(C=0.1, max_iter=300).fit(x, data.positive))
        bench._cases["text"] = Case("text", data, estimator, data.positive.astype(float), bench.cache, bench.scale)
    return bench._cases["text"]


def problem_of(case: Case, weight: Weight | None = None) -> LocalProblem:
    return LocalProblem(case.data.schema, case.model, stable(1.0) if weight is None else weight, "hard", intercept=False)


def pixel_problem(size: int) -> LocalProblem:
    """A picture's problem, for its public facts alone: the model is never asked."""
    schema = vt.Schema({f"p{place}": vt.Numeric(0, 1) for place in range(size)})
    model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    return LocalProblem(schema, model, stable(1.0), "hard", intercept=False)


def weights_of(x: np.ndarray, points: np.ndarray, weight: Weight) -> np.ndarray:
    """alpha, (rows, points)."""
    return np.concatenate(
        [
            weight(np.sqrt(exact.squared_distances(x[start : start + ROWS_AT_ONCE], points)))
            for start in range(0, len(x), ROWS_AT_ONCE)
        ]
    )


def wide_grams(x: np.ndarray, points: np.ndarray, weight: Weight) -> np.ndarray:
    """A of every point, (points, n, n): means of alpha (x - z)(x - z)^T over the rows."""
    alphas = weights_of(x, points, weight)
    grams = np.empty((len(points), x.shape[1], x.shape[1]))
    for gram, z, alpha in zip(grams, points, alphas.T, strict=True):
        root = np.sqrt(alpha)[:, None]
        gram[...] = 0.0
        for start in range(0, len(x), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            scaled = (x[rows] - z) * root[rows]
            gram += scaled.T @ scaled
    return grams / len(x)


def wide_crosses(x: np.ndarray, f: np.ndarray, points: np.ndarray, weight: Weight) -> np.ndarray:
    """b of every point, (points, n): means of alpha f (x - z) over the rows."""
    weighted = weights_of(x, points, weight) * f[:, None]
    return (weighted.T @ x - weighted.sum(axis=0)[:, None] * points) / len(x)


def bordered(
    x: np.ndarray, f: np.ndarray, points: np.ndarray, weight: Weight, grams: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(A, b) of u = (1, x - z) from the grams of x - z."""
    alphas = weights_of(x, points, weight)
    mass, weighted = alphas.mean(axis=0), alphas * f[:, None]
    means = alphas.T @ x / len(x) - mass[:, None] * points
    whole = np.empty((len(points), x.shape[1] + 1, x.shape[1] + 1))
    whole[:, 1:, 1:], whole[:, 0, 0] = grams, mass
    whole[:, 0, 1:] = whole[:, 1:, 0] = means
    crosses = weighted.T @ x / len(x) - weighted.mean(axis=0)[:, None] * points
    return whole, np.concatenate((weighted.mean(axis=0)[:, None], crosses), axis=1)


def wide_third(cache: Cache, name: str, x: np.ndarray, f: np.ndarray, raw: np.ndarray, points: np.ndarray, m: int) -> Third:
    """The truth around points, with the noise of ``m`` rows; grams from the cache."""
    digest = hashlib.sha256(points.tobytes() + len(x).to_bytes(8, "little")).hexdigest()[:16]
    stored = cache.arrays(f"grams-{name}-{digest}", lambda: {"a": wide_grams(x, points, stable(1.0))})
    return Third(m, raw, points, stored["a"], wide_crosses(x, f, points, stable(1.0)))


def text_thirds(bench: PatelBench, queries: int, further: int) -> list[tuple[Third, Third]]:
    """Three disjoint parts of the reviews with queries and further ones; the noise is that of the paper's row count."""
    case = text_case(bench)
    part_of, rng = parts_of(case.m)
    found = []
    for part in range(PARTS):
        rows = np.flatnonzero(part_of == part)
        of = rng.choice(case.m, queries + further, replace=False)
        some = [wide_part(case, rows, which, bench.device) for which in (of[:queries], of[queries:])]
        found.append((some[0], some[1]))
    return found


def wide_part(case: Case, rows: np.ndarray, of: np.ndarray, device: str) -> Third:
    """The truth around rows ``of`` from some of the rows, its optimum included."""
    from papers.patel_wide import Rows, batches, solve_in_ball, tensor

    x, z, n = Rows.of(case.data.x[rows], device), case.data.x[of], case.n
    f, a = tensor(case.hard[rows], device), np.empty((len(of), n, n))
    b, best = np.empty((len(of), n)), np.empty((len(of), n))
    for place, alphas, grams in batches(x, z, stable(1.0), 100):
        crosses = x.crosses(f, tensor(z[place], device), alphas)
        a[place], b[place] = grams.cpu().numpy(), crosses.cpu().numpy()
        best[place] = solve_in_ball(grams, crosses).cpu().numpy()
    third = Third(TEXT_ROWS_OF_THE_PAPER // PARTS, case.data.raw[of], z, a, b)
    vars(third)["best"] = best  # found on the device; ``exact.optimum`` would take minutes
    return third


# --- networks -----------------------------------------------------------------------------------------------------------


def as_images(pixels: np.ndarray) -> Any:
    """Pixels 0..255 as a tensor of square pictures."""
    import torch

    side = int(np.sqrt(pixels.shape[1]))
    return torch.tensor(pixels.reshape(-1, 1, side, side) / 255.0, dtype=torch.float32)


def picture_network(size: int) -> Any:
    """Two 5x5 convolutions with pooling, one dense layer."""
    import torch

    left = ((int(np.sqrt(size)) - 4) // 2 - 4) // 2
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(16 * left * left, 1),
    )  # fmt: skip


def train_pictures(pixels: np.ndarray, second: np.ndarray, *, epochs: int, seed: int = 0) -> np.ndarray:
    """Probabilities of the second class on the pictures themselves."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    images, network = as_images(pixels), picture_network(pixels.shape[1])
    labels = torch.tensor(second, dtype=torch.float32)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    loss_of = torch.nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for places in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss_of(network(images[places])[:, 0], labels[places]).backward()
            optimizer.step()
    with torch.no_grad():
        logits = torch.cat([network(some)[:, 0] for some in images.split(512)])
    return torch.sigmoid(logits).double().numpy()


def train_words(
    x: np.ndarray, positive: np.ndarray, rows: np.ndarray, epsilon: float | None, *, delta: float = 1e-5, seed: int = 0
) -> tuple[np.ndarray, float | None]:
    """Probabilities of a small dense network on all reviews, trained on some, and the epsilon its accountant states.

    With an epsilon the training is Opacus' DP-SGD (Poisson batches, per-example clipping, PRV accountant).
    """
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    inputs = torch.tensor(x, dtype=torch.float32)
    labels = torch.tensor(positive, dtype=torch.float32)
    network: torch.nn.Module = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    )  # fmt: skip
    optimizer: torch.optim.Optimizer = torch.optim.Adam(network.parameters(), lr=TRAINING["learning_rate"])
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(inputs[rows], labels[rows]), batch_size=int(TRAINING["batch"]), shuffle=True
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
            target_delta=delta,
            epochs=int(TRAINING["epochs"]),
            max_grad_norm=TRAINING["clip"],
        )
    loss_of = torch.nn.BCEWithLogitsLoss()
    for _ in range(int(TRAINING["epochs"])):
        for some, wanted in loader:
            optimizer.zero_grad()
            loss_of(network(some)[:, 0], wanted).backward()
            optimizer.step()
    with torch.no_grad():
        logits = torch.cat([network(some)[:, 0] for some in inputs.split(4096)])
    return torch.sigmoid(logits).double().numpy(), None if engine is None else float(engine.get_epsilon(delta))


TRAINING = {"batch": 1024, "epochs": 8, "clip": 1.0, "learning_rate": 0.01}
"""Fixed before the runs that count; not tuned."""


def agreement(first: Iterable[int], second: Iterable[int]) -> int:
    """How many of two lists of words are shared."""
    return len(set(first) & set(second))


def strongest_present(phi: np.ndarray, present: np.ndarray, count: int = 5) -> list[int]:
    """The words with the longest coefficients among those a review has."""
    order = np.argsort(-np.abs(np.where(present, phi, 0.0)), kind="stable")
    return [int(place) for place in order[:count] if present[place]]
