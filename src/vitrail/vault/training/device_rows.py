"""Where the rows of a training run lie: read from the vault's source, moved to the device, and nowhere else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ..rows import RowSource
from ..setting import Setting
from .plan_checks import check_products_are_exact
from .row_arithmetic import Array


def on_device(features: NDArray[np.float32], labels: NDArray[np.int64], device: str) -> tuple[Array, Array]:
    """The rows where the work shall be done; see :func:`check_device`."""
    place = check_device(device)
    if place == "cpu":
        return features, labels
    import torch

    where = "cpu" if place == "torch" else place
    return torch.from_numpy(features).to(where), torch.from_numpy(labels).to(where)


def check_device(device: object) -> str:
    """A device that is there: NumPy ("cpu"), "torch", "cuda"; "auto" is an accelerator if there is one. Reads no row."""
    place = _known_device(device)
    check_products_are_exact(place)
    return place


def _known_device(device: object) -> str:
    if device == "auto":
        return "cuda" if _has_cuda() else "cpu"
    if device == "cpu":
        return "cpu"
    if not isinstance(device, str) or (device != "torch" and device.split(":")[0] != "cuda"):
        raise InvalidInput(f"device is {device!r}; choose 'auto', 'cpu', 'torch' or 'cuda'")
    try:
        import torch
    except ImportError as error:
        raise InvalidInput(f"device is {device!r}, which needs torch; install it, or use device='cpu'") from error
    if device != "torch" and not torch.cuda.is_available():
        raise InvalidInput(f"device is {device!r} and torch sees no such accelerator; use device='auto' or 'cpu'")
    return device


def _has_cuda() -> bool:
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def training_rows(source: RowSource, setting: Setting) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features and classes of private rows, for ``train_maps`` and nobody else.

    Rows that the schema lets count zero are left out.
    Each row decides by its own values whether it is left out, so a row more or less is a row more or less here too.
    """
    assert setting.target is not None
    place = setting.schema.column_index(setting.target)
    features, labels = [np.empty((0, setting.feature_schema.n_features), np.float32)], [np.empty(0, np.int64)]
    for chunk in source.chunks(4096):
        raw, valid = setting.schema.complete(chunk)
        raw = raw[valid]
        found, _ = setting.feature_schema.features(np.ascontiguousarray(np.delete(raw, place, axis=1)))
        features.append(found.astype(np.float32))
        labels.append(raw[:, place].astype(np.int64))
    return np.concatenate(features), np.concatenate(labels)
