"""C-CHVAE (Pawelczyk, Broelemann & Kasneci 2020) and REVISE (Joshi et al. 2019), the ideas, in a few lines of our own.

Both learn a variational autoencoder of the rows and look for an answer in its latent space, from where the person lies:

- *C-CHVAE* draws codes in shells around the person's, farther and farther, and takes the nearest decoded row that flips;
- *REVISE* goes down the gradient of the model's loss in the code, with a price on the distance to the person.

Decoded rows are put on the schema before the model is asked. The autoencoder is trained on the rows themselves, without any
privacy. Columns that may not change, which both papers condition on, are not asked for in these benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import vitrail as vt
from peers.cadex import LOOK_EVERY, classes_of, log_probability, on_schema

HIDDEN, LATENT = 32, 16
KL_WEIGHT = 0.05
SHELLS, WIDTH, DRAWN = 40, 0.25, 50
REVISE_STEPS, REVISE_RATE, NEAR = 300, 0.05, 0.1


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """A trained variational autoencoder on a schema's features."""

    schema: vt.Schema
    encoder: Any
    decoder: Any
    latent: int = LATENT

    def encode(self, features: np.ndarray) -> np.ndarray:
        """Means of the codes."""
        import torch

        with torch.no_grad():
            return self.encoder(torch.as_tensor(features, dtype=torch.float32))[:, : self.latent].double().numpy()

    def decode(self, codes: Any) -> Any:
        """Features in [0, 1]: levels of a column add up to 1."""
        import torch

        out = self.decoder(codes)
        if out.shape[1] == self.schema.n_columns:  # numbers only
            return torch.sigmoid(out)
        parts = [
            torch.softmax(out[:, s], dim=1) if s.stop - s.start > 1 else torch.sigmoid(out[:, s])
            for s in self.schema.feature_slices.values()
        ]
        return torch.cat(parts, dim=1)


def trained(
    schema: vt.Schema, features: np.ndarray, *, epochs: int = 20, hidden: int = HIDDEN, latent: int = LATENT, seed: int = 0
) -> Autoencoder:
    """Train by Adam on batches of 256: cross-entropy of every feature, and a small Kullback-Leibler term."""
    import torch

    torch.manual_seed(seed)
    size = features.shape[1]
    encoder = torch.nn.Sequential(torch.nn.Linear(size, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 2 * latent))
    decoder = torch.nn.Sequential(torch.nn.Linear(latent, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, size))
    made = Autoencoder(schema, encoder, decoder, latent)
    x = torch.as_tensor(features, dtype=torch.float32)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    order = np.random.default_rng(seed)
    for _ in range(epochs):
        for some in torch.as_tensor(order.permutation(len(x))).split(256):
            optimizer.zero_grad()
            both = encoder(x[some])
            mean, log_variance = both[:, :latent], both[:, latent:].clamp(-8, 4)
            codes = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
            out = made.decode(codes).clamp(1e-6, 1 - 1e-6)
            error = torch.nn.functional.binary_cross_entropy(out, x[some], reduction="none").sum(dim=1)
            divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1)
            (error + KL_WEIGHT * divergence).mean().backward()
            optimizer.step()
    return made


def by_shells(of: Autoencoder, module: object, queries: np.ndarray, wanted: np.ndarray, total: int = 1) -> np.ndarray:
    """C-CHVAE: ``total`` answers for each encoded query, (queries, total, features), NaN where there are fewer."""
    import torch

    generator, centres = np.random.default_rng(0), of.encode(queries)
    found = np.full((len(queries), total, queries.shape[1]), np.nan)
    open_ = np.arange(len(queries))
    for shell in range(SHELLS):
        if not len(open_):
            break
        directions = generator.normal(size=(len(open_), DRAWN, of.latent))
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        radius = (shell + generator.random((len(open_), DRAWN, 1))) * WIDTH
        codes = (centres[open_, None, :] + radius * directions).reshape(-1, of.latent)
        with torch.no_grad():
            decoded = of.decode(torch.as_tensor(codes, dtype=torch.float32)).double().numpy()
        rows = on_schema(of.schema, decoded)
        flipped = (classes_of(module, rows) == np.repeat(wanted[open_], DRAWN)).reshape(len(open_), DRAWN)
        rows = rows.reshape(len(open_), DRAWN, -1)
        for line in np.flatnonzero(flipped.any(axis=1)):
            fill(found[open_[line]], rows[line][flipped[line]], queries[open_[line]])
        open_ = open_[np.isnan(found[open_, -1, 0])]
    return found


def fill(answers: np.ndarray, rows: np.ndarray, query: np.ndarray) -> None:
    """Put the nearest different rows where answers are NaN still, in place."""
    have = [row for row in answers if not np.isnan(row[0])]
    for row in rows[np.argsort(np.linalg.norm(rows - query, axis=1), kind="stable")]:
        if len(have) == len(answers):
            break
        if not any((row == other).all() for other in have):
            answers[len(have)] = row
            have.append(row)


def by_descent(
    of: Autoencoder,
    module: object,
    queries: np.ndarray,
    wanted: np.ndarray,
    start: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """REVISE: an answer for each encoded query, NaN where none was found; ``start`` moves the codes that it begins with."""
    import torch

    first = of.encode(queries)
    codes = torch.as_tensor(first if start is None else start(first), dtype=torch.float32).requires_grad_(True)
    q, place = torch.as_tensor(queries, dtype=torch.float32), torch.as_tensor(wanted, dtype=torch.int64)
    optimizer = torch.optim.Adam([codes], lr=REVISE_RATE)
    found = np.full(queries.shape, np.nan)
    for step in range(1, REVISE_STEPS + 1):
        optimizer.zero_grad()
        x = of.decode(codes)
        loss = -log_probability(module, x, place) + NEAR * (x - q).abs().sum(dim=1)
        loss.sum().backward()
        optimizer.step()
        if step % LOOK_EVERY:
            continue
        open_ = np.flatnonzero(np.isnan(found[:, 0]))
        if not len(open_):
            break
        with torch.no_grad():
            tried = on_schema(of.schema, of.decode(codes).double().numpy()[open_])
        flipped = classes_of(module, tried) == wanted[open_]
        found[open_[flipped]] = tried[flipped]
    return found
