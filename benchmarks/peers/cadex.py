"""CADEX (Moore, Hammerla & Watkins 2019), the idea, in a few lines of our own: gradient steps from the person, few columns.

Adam walks from the person's features towards the wanted class, in the columns whose gradient is largest at the start and no
others; after every few steps the row is put on the schema (one level of each, whole numbers) and shown to the model, and the
first one that flips is the answer. The authors' code is for Keras models of its time, so this is written from the paper. It
reads no rows but the person's own, and has no privacy to lose but the model's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import vitrail as vt

STEPS, RATE, LOOK_EVERY = 300, 0.02, 5


def log_probability(module: Any, x: Any, wanted: Any) -> Any:
    """Log probability of each row's wanted class, by a torch module of probabilities (of class 1, or of all)."""
    import torch

    said = module(x).reshape(len(x), -1)
    if said.shape[1] == 1:
        said = torch.cat([1 - said, said], dim=1)
    return torch.log(said.gather(1, wanted[:, None]).clamp_min(1e-30))[:, 0]


def classes_of(module: object, features: np.ndarray) -> np.ndarray:
    """The class that a torch module of probabilities puts each row in."""
    import torch

    with torch.no_grad():
        said = module(torch.as_tensor(features, dtype=torch.float32)).numpy().reshape(len(features), -1)
    return np.asarray(said.argmax(axis=1) if said.shape[1] > 1 else said[:, 0] >= 0.5).astype(np.int64)


def on_schema(schema: vt.Schema, features: np.ndarray) -> np.ndarray:
    """The features of the nearest rows of the schema."""
    return schema.features(schema.unfeature(features))[0]


def counterfactuals(
    schema: vt.Schema, module: object, queries: np.ndarray, wanted: np.ndarray, columns: int | None = 5, loose: bool = False
) -> np.ndarray:
    """An answer for each encoded query, on the schema; NaN where none was found.

    Parameters
    ----------
    columns : int or None
        How many columns may change; None: all.
    loose : bool
        Leave answers anywhere in [0, 1], as gradients lead: bits are rarely moved past a half before the model agrees.
    """
    import torch

    start = torch.as_tensor(queries, dtype=torch.float32)
    place = torch.as_tensor(wanted, dtype=torch.int64)
    x = start.clone().requires_grad_(True)
    log_probability(module, x, place).sum().backward()
    mask = largest_columns(schema, x.grad.numpy(), queries, columns)
    may = torch.as_tensor(mask, dtype=torch.float32)
    moved = torch.zeros_like(start, requires_grad=True)
    optimizer = torch.optim.Adam([moved], lr=RATE)
    found = np.full(queries.shape, np.nan)
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        (-log_probability(module, start + moved * may, place).sum()).backward()
        optimizer.step()
        with torch.no_grad():
            moved.copy_((start + moved).clamp(0, 1) - start)
        if step % LOOK_EVERY:
            continue
        open_ = np.flatnonzero(np.isnan(found[:, 0]))
        if not len(open_):
            break
        tried = np.where(mask, (start + moved * may).detach().double().numpy(), queries)[open_]
        tried = tried if loose else on_schema(schema, tried)
        flipped = classes_of(module, tried) == wanted[open_]
        found[open_[flipped]] = tried[flipped]
    return found


def largest_columns(schema: vt.Schema, gradient: np.ndarray, queries: np.ndarray, count: int | None) -> np.ndarray:
    """A mask over features: those of the columns whose gradient is largest, of what can still move that way in [0, 1].

    >>> schema = vt.Schema({"a": vt.Numeric(0, 1), "b": vt.Numeric(0, 1)})
    >>> largest_columns(schema, np.array([[5.0, 1.0]]), np.array([[1.0, 0.5]]), 1).tolist()  # a is at its end already
    [[False, True]]
    """
    can = np.where(gradient > 0, queries < 1, queries > 0)
    sizes = np.abs(gradient) * can
    slices = list(schema.feature_slices.values())
    if count is None or count >= len(slices):
        return np.ones(queries.shape, dtype=bool)
    by_column = np.stack([sizes[:, s].max(axis=1) for s in slices], axis=1)
    chosen = np.argsort(-by_column, axis=1, kind="stable")[:, :count]
    mask = np.zeros(queries.shape, dtype=bool)
    for number, s in enumerate(slices):
        mask[:, s] = (chosen == number).any(axis=1)[:, None]
    return mask


def second_choices(module: Any, features: np.ndarray) -> np.ndarray:
    """The class that comes after each row's own, by a torch module of several probabilities."""
    import torch

    with torch.no_grad():
        said = module(torch.as_tensor(features, dtype=torch.float32)).numpy()
    return np.asarray(np.argsort(-said, axis=1, kind="stable")[:, 1]).astype(np.int64)
