"""The file of a synopsis: a zip of ``synopsis.json`` and one plain .npy array per part. Nothing in it is executed."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...accounting import Cost
from ...errors import InvalidInput
from ...guarantee import Guarantee
from ...schema import Schema
from ...solve.linear.weights import Weight, exponential, inverse_quadratic, polynomial, stable

if TYPE_CHECKING:
    from ...results.synopsis import Synopsis

FORMAT = "vitrail-synopsis/1"
HEADER = "synopsis.json"
MOST_BYTES = 2**31
"""A file that claims to hold more is refused before it is unpacked."""
_WEIGHTS = {"stable": stable, "polynomial": polynomial, "exponential": exponential, "inverse-quadratic": inverse_quadratic}
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def write_synopsis(synopsis: Synopsis, path: str | Path) -> None:
    """Write the file; the same synopsis gives the same bytes."""
    cost = synopsis.cost
    header = {
        "format": FORMAT,
        "dataset": synopsis.dataset,
        "schema": synopsis.schema.to_json(),
        "weight": synopsis.weight.to_json(),
        "labels": synopsis.labels,
        "intercept": synopsis.intercept,
        "output_range": list(synopsis.output_range),
        "cells": list(synopsis.cells),
        "scales": dict(synopsis.scales),
        "sigma": synopsis.sigma,
        "n_rows_public": synopsis.n_rows_public,
        "guarantee": synopsis.guarantee.to_json(),
        "cost": [cost.pico_mu_squared, cost.pico_epsilon, str(cost.quecto_delta)],
        "parts": len(synopsis.parts),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, _FIXED_DATE), json.dumps(header, indent=1, allow_nan=False))
        for index, part in enumerate(synopsis.parts):
            buffer = io.BytesIO()
            np.save(buffer, part, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"part_{index}.npy", _FIXED_DATE), buffer.getvalue())


def read_synopsis(path: str | Path, weight: Weight | None = None) -> dict[str, Any]:
    """The fields of a stored synopsis, or an error that says why the file is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise InvalidInput(f"{str(path)!r} claims to hold more than {MOST_BYTES >> 30} GB; that is no synopsis")
            header: dict[str, Any] = json.loads(archive.read(HEADER))
            if header.get("format") != FORMAT:
                raise InvalidInput(f"{str(path)!r} has the format {header.get('format')!r}; this version reads {FORMAT!r}")
            parts = tuple(_array(archive.read(f"part_{index}.npy")) for index in range(int(header["parts"])))
        return _fields(header, parts, weight)
    except InvalidInput:
        raise
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{str(path)!r} is not a synopsis as Synopsis.save writes it: {error}") from error


def _array(stored: bytes) -> NDArray[np.float64]:
    array = np.load(io.BytesIO(stored), allow_pickle=False)
    if array.dtype != np.float64 or array.ndim != 2 or not np.isfinite(array).all():
        raise ValueError("a part is no matrix of finite numbers")
    return np.asarray(array, dtype=np.float64)


def _fields(header: dict[str, Any], parts: tuple[NDArray[np.float64], ...], weight: Weight | None) -> dict[str, Any]:
    if header["labels"] not in ("soft", "hard"):
        raise ValueError(f"labels are {header['labels']!r}")
    low, high = (float(end) for end in header["output_range"])
    pico_mu_squared, pico_epsilon, quecto_delta = (int(amount) for amount in header["cost"])
    return {
        "schema": Schema.from_json(header["schema"]),
        "weight": _weight_of(header["weight"]) if weight is None else weight,
        "labels": header["labels"],
        "intercept": header["intercept"] is True,
        "output_range": (low, high),
        "cells": tuple(str(name) for name in header["cells"]),
        "scales": {str(name): float(scale) for name, scale in header["scales"].items()},
        "parts": parts,
        "sigma": float(header["sigma"]),
        "n_rows_public": int(header["n_rows_public"]),
        "guarantee": Guarantee.from_json(header["guarantee"]),
        "cost": Cost(pico_mu_squared, pico_epsilon, quecto_delta),
        "dataset": str(header["dataset"]),
    }


def _weight_of(fields: dict[str, Any]) -> Weight:
    name = fields.pop("name")
    if name not in _WEIGHTS:
        raise InvalidInput(f"the stored weight {name!r} is a function of its author's own; give it again with weight=")
    return _WEIGHTS[name](**{str(key): float(value) for key, value in fields.items()})
